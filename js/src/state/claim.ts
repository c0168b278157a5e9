/** One sentence on what a row of scores shows, with its unit, true of the method that made it. */

import type { MethodEntry, Says } from "../wire/types";
import { number, points, share, signed } from "./format";
import { isOwn, type Reading, shareOf } from "./reading";
import type { State } from "./state";
import { namesOf } from "./units";

/** Words; those in bold are of the text. */
export type Said = { text: string; strong?: boolean }[];

/** Less than this is not worth a word of its own. */
const LEAST = 0.005;
const strong = (text: string) => ({ text, strong: true });
const plain = (text: string) => ({ text });

/** What is read: the answer, or a token that is looked at. */
function subject(state: State): { row: string; answer: boolean; target: string } {
  const answer = !state.away && state.targetLabel !== "";
  return { row: state.focusLabel, answer, target: state.targetLabel || "the prediction" };
}

export function claimOf(state: State, reading: Reading): Said {
  const kind = reading.method.says;
  if (kind === "nothing")
    return [plain("These scores are drawn at random: they say nothing about the text.")];
  if (reading.sink >= 0) return sinkWords(state, reading);
  const [c] = reading.order;
  if (c === undefined || !(reading.peak > 0))
    return [plain("No word has any score here: there is nothing to tell them apart by.")];
  if (kind === "adds" || kind === "removal") return signedWords(state, reading, kind);
  return shareWords(state, reading, kind);
}

/** With its place where a word occurs again. */
const nameOf = (state: State, column: number) =>
  namesOf(state.layout)[state.layout.cols[column] ?? 0] ?? "";

function sinkWords(state: State, reading: Reading): Said {
  const column = state.layout.columnOf[reading.sink] ?? 0;
  const name = state.label(reading.sink);
  const part = share(shareOf(reading, column), true);
  const own = reading.sink === state.layout.focus;
  const template = share(reading.template, true);
  const why = reading.template
    ? `What the template writes takes ${template}, most of it ${name} (${part}).`
    : own
      ? `${name} itself keeps ${part} of what is read there.`
      : `${name} takes ${part}, whatever the text: an attention sink.`;
  return [
    strong("This method says nothing here."),
    plain(` ${why} Colours are not stretched over the rest.`),
  ];
}

function shareWords(state: State, reading: Reading, kind: Says): Said {
  const { row, answer, target } = subject(state);
  const { aggregate } = state.traits;
  const layered = reading.method.yields !== "scores";
  const layer = state.reached(reading.method.id);
  const whole = layer === state.layers - 1;
  const alone = layered && aggregate === "layer";
  const [first = 0, second] = reading.order;
  const name = strong(nameOf(state, first));
  const part = share(shareOf(reading, first));
  const upTo = !layered || whole || alone ? "" : ` up to layer ${layer}`;
  const words: Said = [];
  if (alone) words.push(plain(`In layer ${layer} alone, `));
  else if (layered && aggregate === "sum" && kind !== "weight" && state.layers > 1)
    words.push(plain(`Added up over layers 0 to ${layer}, `));
  if (kind === "made") {
    const read = state.whole
      ? "what the whole answer is read from"
      : "what the answer is read from";
    const of = answer && whole && !alone ? read : `${row}${upTo}`;
    words.push(name, plain(` makes up ${part} of ${of}`));
  } else if (kind === "attention") {
    const of = alone ? `the attention of ${row}` : `the attention followed back from ${row}`;
    words.push(name, plain(` gets ${part} of ${of}${upTo}`));
  } else if (kind === "slope") {
    const who = state.whole ? "The whole answer" : target;
    words.push(plain(`${who} leans most on `), name, plain(`: ${part} of all gradient scores`));
  } else {
    words.push(name, plain(` carries ${part} of the method’s weight for ${target}${upTo}`));
  }
  if (second !== undefined && shareOf(reading, second) >= LEAST)
    words.push(
      plain(", "),
      strong(nameOf(state, second)),
      plain(` ${share(shareOf(reading, second))}`),
    );
  words.push(plain(asideWords(state, reading)));
  return words;
}

/** Of a whole answer its own words stand together beside the scale. */
const isOwnUnit = (state: State, unit: number) =>
  state.whole && isOwn(state, state.layout.units[unit]?.index ?? -1);

/** What stands beside the scale and matters. */
function asideWords(state: State, reading: Reading): string {
  const { cols, focus } = state.layout;
  const itself = (unit: number) =>
    unit === focus && reading.method.yields === "maps" && !state.whole ? " itself" : "";
  let own = 0;
  const named = cols
    .map((unit, c) => ({ unit, part: shareOf(reading, c) }))
    .filter(({ unit, part }) => {
      if (!reading.aside.has(unit)) return false;
      if (isOwnUnit(state, unit)) own += part;
      else return part >= 0.05;
      return false;
    })
    .sort((a, b) => b.part - a.part)
    .slice(0, 2)
    .map(({ unit, part }) => `${share(part)} is ${state.label(unit)}${itself(unit)}`);
  if (own >= LEAST) named.push(`${share(own)} is the answer’s own words`);
  if (named.length === 0) return ".";
  return `; ${named.join(", ")}, not coloured.`;
}

function signedWords(state: State, reading: Reading, kind: "adds" | "removal"): Said {
  const { target } = subject(state);
  const { values, order } = reading;
  const value = (c: number) => values[c] as number;
  const [first = 0] = order;
  const next = order.find((c) => c !== first && value(c) * value(first) > 0);
  const against = order.find((c) => value(c) * value(first) < 0);
  const small = (c: number) => Math.abs(value(c)) < 0.02 * reading.peak;
  const words: Said = [];
  const name = (c: number) => strong(nameOf(state, c));
  // Of a whole answer it is the log probability that falls.
  const by = (c: number) => (state.whole ? number(Math.abs(value(c))) : points(value(c)));
  const what = state.whole ? `the log probability of ${target}` : target;
  if (kind === "removal") {
    const moves = (c: number) => (value(c) > 0 ? "falls" : "rises");
    words.push(plain("Without "), name(first));
    words.push(plain(`, ${what} ${moves(first)} by ${by(first)}`));
    if (next !== undefined && !small(next))
      words.push(plain(", without "), name(next), plain(` by ${by(next)}`));
    if (against !== undefined && !small(against))
      words.push(
        plain("; without "),
        name(against),
        plain(` it ${moves(against)} by ${by(against)}`),
      );
  } else {
    const does = (c: number) => (value(c) > 0 ? "adds" : "takes");
    const to = (c: number) => (value(c) > 0 ? "to" : "from");
    const layer = state.reached(reading.method.id);
    words.push(plain(layersOf(state, reading.method, layer)));
    words.push(name(first));
    words.push(
      plain(` ${does(first)} ${signed(value(first))} ${to(first)} the score of ${target}`),
    );
    if (next !== undefined && !small(next))
      words.push(plain(", "), name(next), plain(` ${signed(value(next))}`));
    if (against !== undefined && !small(against))
      words.push(plain("; "), name(against), plain(` ${does(against)} ${signed(value(against))}`));
  }
  const beside = state.layout.cols
    .map((unit, c) => ({ unit, c }))
    .filter(({ unit, c }) => reading.aside.has(unit) && Math.abs(value(c)) >= 0.1 * reading.peak)
    .filter(({ unit }) => !isOwnUnit(state, unit))
    .slice(0, 2)
    .map(({ unit, c }) => `${state.label(unit)} (${signed(value(c))})`);
  const own = state.layout.cols.reduce(
    (sum, unit, c) => sum + (isOwnUnit(state, unit) ? value(c) : 0),
    0,
  );
  const ownToo = Math.abs(own) >= 0.1 * reading.peak;
  const stand = ownToo || beside.length > 1 ? "are" : "is";
  if (ownToo) beside.push(`the answer’s own words (${signed(own)})`);
  const tail = beside.length > 0 ? `; ${beside.join(" and ")} ${stand} not coloured.` : ".";
  words.push(plain(tail));
  return words;
}

/** Which layers a sum is over, where not all of them. */
function layersOf(state: State, method: MethodEntry, layer: number): string {
  const alone = state.traits.aggregate === "layer";
  if (method.yields === "scores") return "";
  if (method.passed) return alone ? `At layer ${layer}, ` : "";
  if (alone) return `In layer ${layer} alone, `;
  return layer < state.layers - 1 ? `In layers 0 to ${layer}, ` : "";
}

export const inText = (said: Said) => said.map(({ text }) => text).join("");
