/** A chat as blocks of its turns, and the answer's tokens, to be asked about. */

import { inTurns, type Turn, turnsOf } from "../state/answer";
import { percent, plural, share, signed } from "../state/format";
import { type Reading, shareOf } from "../state/reading";
import type { State } from "../state/state";
import { visibleText } from "../state/units";
import type { Reply, ReplyToken } from "../wire/types";
import type { Scale } from "./colour";
import { h, setAttributes, setText, show, sync } from "./dom";
import { CLOSING, directionOf, drawTokens, type TokenHooks } from "./tokens";

export const ANSWER_TOKEN = '[data-part="answer-token"]';

/** Turns that fold, unless they are opened. */
const FOLDS: ReadonlySet<Turn["kind"]> = new Set(["system", "template"]);
/** Of a folded turn so much is read, in letters. */
const BEGINNING = 40;
/** At so many nats the line under a token that needed the prompt is darkest. */
const DARKEST = 4;

export interface TurnHooks extends TokenHooks {
  opened: ReadonlySet<string>;
  /** Only the answer. */
  bare: boolean;
}

/** Draw the turns; the answer stands in a row of its own at the end. */
export function drawTurns(
  parent: HTMLElement,
  state: State,
  reading: Reading | null,
  scale: Scale | null,
  hooks: TurnHooks,
): void {
  const all = hooks.bare ? [] : turnsOf(state).filter(({ kind }) => kind !== "reply");
  const template = all.find(({ kind }) => kind === "template");
  // Folded away it stands beside a system message.
  const beside = all.some(({ kind }) => kind === "system") && !hooks.opened.has("chat template");
  const turns = all.filter((turn) => turn !== template);
  if (template && !beside) turns.unshift(template);
  sync(parent, [...turns, null], makeTurn, (row, turn) => {
    if (turn === null) drawReply(row, state, reading, scale);
    else drawTurn(row, turn, beside && turn.kind === "system" ? template : undefined);
  });

  function drawTurn(row: HTMLElement, turn: Turn, more: Turn | undefined): void {
    const [who, said] = row.children as unknown as [HTMLElement, HTMLElement];
    const [first, tokens, folds] = said.children as unknown as [
      HTMLElement,
      HTMLElement,
      HTMLElement,
    ];
    const folded = FOLDS.has(turn.kind) && !hooks.opened.has(turn.name);
    setAttributes(row, { "data-turn": turn.kind, "data-folded": folded });
    show(row, true); // it may have been the row of an answer that was not there yet
    setAttributes(tokens, { "data-part": null, "data-shade": null });
    setText(who, turn.kind === "template" ? "template" : turn.name);
    const text = turn.units.map((unit) => state.layout.units[unit]);
    const beginning = folded && turn.kind === "system" ? beginningOf(state, turn) : "";
    setText(first, beginning);
    show(first, beginning !== "");
    show(tokens, !folded);
    if (folded) tokens.replaceChildren();
    else {
      setAttributes(tokens, {
        role: "listbox",
        "aria-orientation": "horizontal",
        "aria-label": turn.name,
        dir: directionOf(text.filter((unit) => unit !== undefined)),
      });
      drawTokens(tokens, state, turn.units, reading, scale, hooks);
    }
    const buttons = [turn, more].filter((one) => one && FOLDS.has(one.kind)) as Turn[];
    sync(
      folds,
      buttons,
      () => h("button", { type: "button", class: "mix-fold" }),
      (button, one) => drawFold(button, one, state, reading, !hooks.opened.has(one.name)),
    );
  }
}

/** Every row has the same parts, so that each can become any. */
const makeTurn = () =>
  h(
    "div",
    { class: "mix-turn" },
    h("span", { class: "mix-who", dir: "auto" }),
    h(
      "div",
      { class: "mix-said" },
      h("span", { class: "mix-beginning", dir: "auto" }),
      h("div", { class: "mix-tokens" }),
      h("span", { class: "mix-folds" }),
    ),
  );

function beginningOf(state: State, turn: Turn): string {
  let text = "";
  for (const unit of turn.units) {
    const one = state.layout.units[unit];
    if (!one) continue;
    text += (one.glued || CLOSING.test(one.text) || !text ? "" : " ") + one.text;
    if (text.length > BEGINNING) return `${text.slice(0, BEGINNING).trimEnd()} …`;
  }
  return text;
}

function drawFold(
  button: HTMLElement,
  turn: Turn,
  state: State,
  reading: Reading | null,
  folded: boolean,
): void {
  setAttributes(button, {
    "data-part": "turn-fold",
    "data-fold": turn.name,
    "aria-expanded": String(!folded),
    title: folded ? "Show it" : "Fold it",
  });
  let carried = 0;
  let value = 0;
  let count = 0;
  for (const unit of turn.units) {
    const c = state.layout.columnOf[unit] ?? -1;
    count += state.layout.units[unit]?.tokens.length ?? 0;
    if (!reading || c < 0) continue;
    carried += shareOf(reading, c);
    value += reading.values[c] ?? 0;
  }
  const name = turn.kind === "template" ? "template, " : "";
  const part = reading ? `, ${reading.method.signed ? signed(value) : share(carried, true)}` : "";
  setText(button, folded ? `${name}${plural(count, "token")}${part}` : "fold");
}

/** How dark the line under a token is, 0 to 1. */
function weightOf(token: ReplyToken, shade: string): number | null {
  if (shade !== "dependence") return token.probability;
  return token.needed === null ? null : Math.min(Math.max(token.needed / DARKEST, 0), 1);
}

/** What is said of a token of the answer. */
export function aboutReply(reply: Reply, t: number): string[] {
  const token = reply.tokens[t];
  if (!token) return [];
  const lines = [wordOf(token)];
  if (token.probability !== null) lines.push(`${percent(token.probability)} likely`);
  if (token.needed !== null) {
    const much = Math.abs(token.needed).toFixed(1);
    lines.push(
      token.needed >= 0
        ? `log probability ${much} higher with the prompt`
        : `log probability ${much} lower with the prompt`,
    );
  }
  return lines;
}

const wordOf = ({ text, piece, word }: ReplyToken) =>
  visibleText({ text, piece, word, index: 0, special: false, segment: 0 });

function drawReply(
  row: HTMLElement,
  state: State,
  reading: Reading | null,
  scale: Scale | null,
): void {
  const { reply, step, model_info: info, shade } = state.traits;
  const [who, said] = row.children as unknown as [HTMLElement, HTMLElement];
  const [first, tokens, folds] = said.children as unknown as [
    HTMLElement,
    HTMLElement,
    HTMLElement,
  ];
  setAttributes(row, { "data-turn": "reply", "data-folded": null });
  setText(who, info.name || "answer");
  show(row, inTurns(state) && (reply.tokens.length > 0 || reply.state === "writing"));
  show(first, false);
  folds.replaceChildren();
  show(tokens, true);
  setAttributes(tokens, {
    role: "listbox",
    "aria-orientation": "horizontal",
    "aria-label": "The answer: choose a token to ask about it",
    "data-part": "answer-tokens",
    "data-shade": shade,
    "data-writing": reply.state === "writing",
    "data-whole": state.whole,
    dir: directionOf(
      reply.tokens.map(
        ({ text }) => ({ text, special: false }) as Parameters<typeof directionOf>[0][number],
      ),
    ),
  });
  for (const one of [...tokens.children]) if (!one.matches(ANSWER_TOKEN)) one.remove();
  let before: ReplyToken | undefined;
  sync(
    tokens,
    reply.tokens,
    () => h("span", { class: "mix-token mix-reply", "data-part": "answer-token", dir: "auto" }),
    (span, token, t) => {
      const text = wordOf(token);
      setText(span, text);
      const glued = before !== undefined && (before.word === token.word || CLOSING.test(text));
      span.classList.toggle("mix-glued", glued);
      before = token;
      const weight = weightOf(token, shade);
      span.style.setProperty("--weight", String(weight ?? 0));
      const place = reply.start + t;
      const unit = state.layout.unitOf[place] ?? -1;
      const c = state.layout.columnOf[unit] ?? -1;
      const single = state.layout.units[unit]?.tokens.length === 1;
      const onScale = single && c >= 0 && reading !== null && !reading.aside.has(unit);
      const value = onScale ? (reading.values[c] ?? 0) : 0;
      const coloured = scale !== null && reading !== null && Math.abs(value) > 0.03 * reading.peak;
      span.style.backgroundColor = coloured ? scale.css(value) : "";
      span.style.color = coloured ? scale.ink(value) : "";
      setAttributes(span, {
        role: "option",
        "data-index": t,
        "data-token": place,
        "data-probability": token.probability,
        "aria-selected": String(step === t),
        "aria-label": aboutReply(reply, t).join(", "),
      });
    },
  );
}
