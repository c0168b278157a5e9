/** A chat by its turns, and the answer to it. */

import type { ChatMessage, Json, TargetChoice, Traits } from "../wire/types";
import { isOwn, type Reading, shareOf } from "./reading";
import type { State } from "./state";

export const WHOLE = "the whole answer";

export const isChat = (text: Traits["text"]): text is ChatMessage[] => Array.isArray(text);

/** Whether the text is shown as turns. */
export const inTurns = ({ traits }: State) => isChat(traits.text) || traits.reply.state !== "";

/** Whether there is an answer to look at, or one could be written. */
export const answersIn = (traits: Readonly<Traits>) =>
  traits.reply.offer || traits.reply.state !== "" || isChat(traits.text);

export type Kind = "system" | "template" | "reply" | "turn" | "text";

export interface Turn {
  kind: Kind;
  /** Whose it is. */
  name: string;
  /** Units of the text. */
  units: number[];
}

/** The text by its turns, in their order; all that the template writes is one of them. */
export function turnsOf(state: State): Turn[] {
  const { tokens, traits, layout } = state;
  const chat = isChat(traits.text);
  const turns: Turn[] = [];
  const known = new Map<string, Turn>();
  const into = (key: string, kind: Kind, name: string, unit: number) => {
    let turn = known.get(key);
    if (!turn) {
      turn = { kind, name, units: [] };
      known.set(key, turn);
      turns.push(turn);
    }
    turn.units.push(unit);
  };
  for (const unit of layout.rows) {
    const index = layout.units[unit]?.index ?? 0;
    const token = tokens[index];
    if (isOwn(state, index)) into("reply", "reply", "reply so far", unit);
    else if (!chat) into("text", "text", "text", unit);
    else if (token?.message == null) into("template", "template", "chat template", unit);
    else {
      const role = token.role ?? "";
      into(`${token.message}`, role === "system" ? "system" : "turn", role, unit);
    }
  }
  number(turns);
  return turns;
}

/** Who speaks more than once is numbered. */
function number(turns: Turn[]): void {
  const often = new Map<string, number>();
  for (const { name } of turns) often.set(name, (often.get(name) ?? 0) + 1);
  const seen = new Map<string, number>();
  for (const turn of turns) {
    if ((often.get(turn.name) ?? 0) < 2) continue;
    const place = (seen.get(turn.name) ?? 0) + 1;
    seen.set(turn.name, place);
    turn.name = `${turn.name} ${place}`;
  }
}

export interface Sum {
  turn: Turn;
  /** Of the scores, as they are. */
  value: number;
  /** Of all sizes, 0 to 1. */
  part: number;
}

/** What each turn comes to. Of a whole answer its own words stand apart: `own` is their share. */
export function sumsOf(state: State, reading: Reading): { sums: Sum[]; own: Sum | null } {
  const sums = turnsOf(state).map((turn): Sum => {
    let value = 0;
    let part = 0;
    for (const unit of turn.units) {
      const c = state.layout.columnOf[unit] ?? -1;
      if (c < 0) continue;
      value += reading.values[c] ?? 0;
      part += shareOf(reading, c);
    }
    return { turn, value, part };
  });
  const own = state.whole ? sums.find(({ turn }) => turn.kind === "reply") : undefined;
  return { sums: sums.filter((one) => one !== own), own: own ?? null };
}

/** The likeliest tokens at the place that is asked about, what was said first. */
export function choicesOf({ traits }: State): TargetChoice[] {
  const said = traits.reply.tokens[traits.step ?? -1];
  if (!said || said.id === undefined) return [];
  return [{ value: said.id, label: said.text, probability: said.probability }, ...said.others];
}

/** What a target of the user's is called. */
export function labelOf(traits: Readonly<Traits>): string {
  const said = traits.reply.tokens[traits.step ?? -1];
  const known = [
    ...traits.model_info.targets,
    ...(said ? [{ value: said.id ?? null, label: said.text }, ...said.others] : []),
  ];
  const name = (value: Json) => known.find((one) => one.value === value)?.label ?? `${value}`;
  const { target } = traits;
  return Array.isArray(target) ? target.map(name).join(" rather than ") : name(target);
}

/** What the editor holds: the text, or the last question of a chat. */
export function questionOf(text: Traits["text"]): string {
  return isChat(text) ? (text[askedAt(text)]?.content ?? "") : text;
}

const askedAt = (chat: ChatMessage[]) =>
  chat.reduce((last, one, at) => (one.role === "assistant" ? last : at), -1);

/** Another question in the place of the last one: what was said after it is not said to this. */
export function withQuestion(text: Traits["text"], question: string): Traits["text"] {
  if (!isChat(text)) return question;
  const at = askedAt(text);
  return at < 0
    ? [...text, { role: "user", content: question }]
    : [...text.slice(0, at), { ...(text[at] as ChatMessage), content: question }];
}

/** What is asked of Python for the model's own answer. */
export const written = (text: Traits["text"]): Partial<Traits> => ({
  text: isChat(text) ? text.slice(0, askedAt(text) + 1) : text,
  text_pair: "",
  answer: true,
  step: null,
  target: null,
});

/** A text as one line. */
export const inLine = (text: Traits["text"]) =>
  isChat(text) ? text.map((one) => one.content).join(" / ") : text;
