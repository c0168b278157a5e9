/** Tokens as they are shown: single or merged to words, with or without special tokens. */

import type { Token } from "../wire/types";

export interface Unit {
  /** What a reader sees. */
  text: string;
  /** Positions of its tokens in the model's input. */
  tokens: number[];
  /** Its first token: what `focus` is set to when it is clicked. */
  index: number;
  special: boolean;
  segment: number;
  /** Continues the word before it: no space between them. */
  glued: boolean;
}

export interface Layout {
  units: Unit[];
  /** Units that may be sources: special tokens only if they are shown. */
  cols: number[];
  /** Unit -> its place in `cols`, or -1. */
  columnOf: number[];
  /** Units that may be targets: as `cols`, and the focus in any case. */
  rows: number[];
  /** Token position -> unit. */
  unitOf: number[];
  /** The unit that holds the focus token. */
  focus: number;
}

const INVISIBLE = /^[\s\u200b\u00ad\u2060\ufeff]*$/u;

/** A text that can be seen: line breaks and blanks get signs of their own. */
export function visibleText(token: Token): string {
  const text = token.text;
  if (!INVISIBLE.test(text)) return text.trim();
  if (text.includes("\n")) return "⏎";
  if (text.includes("\t")) return "⇥";
  if (text !== "") return "␣";
  return token.piece === "" ? "∅" : token.piece;
}

export function layOut(
  tokens: Token[],
  unit: "tokens" | "words",
  special: boolean,
  focusToken: number,
): Layout {
  const units: Unit[] = [];
  const unitOf: number[] = [];
  tokens.forEach((token, position) => {
    const before = tokens[position - 1];
    const glued =
      before !== undefined &&
      token.word !== null &&
      !token.special &&
      !before.special &&
      before.word === token.word &&
      before.segment === token.segment;
    const last = units[units.length - 1];
    if (unit === "words" && glued && last) {
      last.text += visibleText(token);
      last.tokens.push(position);
    } else {
      units.push({
        text: visibleText(token),
        tokens: [position],
        index: position,
        special: token.special,
        segment: token.segment,
        glued,
      });
    }
    unitOf.push(units.length - 1);
  });
  const focus = unitOf[focusToken] ?? 0;
  const all = units.map((_, i) => i);
  const ordinary = all.filter((i) => !units[i]?.special);
  const cols = special || ordinary.length === 0 ? all : ordinary;
  const columnOf = new Array<number>(units.length).fill(-1);
  cols.forEach((unit, column) => {
    columnOf[unit] = column;
  });
  const rows = all.filter((i) => (columnOf[i] as number) >= 0 || i === focus);
  return { units, cols, columnOf, rows, unitOf, focus };
}

export interface Shares {
  values: Float32Array;
  /** Share of the mass that lies on hidden tokens; 0 if none is hidden. */
  hidden: number;
}

/** Columns of tokens -> shown units: merged by adding, the rest brought to the same total. */
export function mergeColumns(row: ArrayLike<number>, layout: Layout, signed: boolean): Shares {
  const { units, cols } = layout;
  const values = new Float32Array(cols.length);
  let kept = 0;
  cols.forEach((unit, c) => {
    let sum = 0;
    for (const token of units[unit]?.tokens ?? []) sum += row[token] ?? 0;
    values[c] = sum;
    kept += sum;
  });
  if (cols.length === units.length || signed) return { values, hidden: 0 };
  let total = 0;
  for (let i = 0; i < row.length; i++) total += row[i] as number;
  if (kept > 0 && total > 0) {
    for (let c = 0; c < values.length; c++) values[c] = ((values[c] as number) * total) / kept;
  }
  return { values, hidden: total > 0 ? 1 - kept / total : 0 };
}

/** A map of tokens -> shown units: columns added, rows averaged. */
export function mergeMap(
  map: Float32Array,
  n: number,
  layout: Layout,
  signed: boolean,
): Float32Array {
  const { units, cols, rows } = layout;
  const plain = units.length === n && cols.length === n;
  if (plain) return map;
  const out = new Float32Array(rows.length * cols.length);
  rows.forEach((unit, r) => {
    out.set(meanRow(map, n, units[unit]?.tokens ?? [], layout, signed).values, r * cols.length);
  });
  return out;
}

/** The mean of some tokens' rows, columns merged. */
export function meanRow(
  map: Float32Array,
  n: number,
  tokens: number[],
  layout: Layout,
  signed: boolean,
): Shares {
  const mean = new Float32Array(n);
  for (const token of tokens) {
    for (let j = 0; j < n; j++) {
      mean[j] = (mean[j] as number) + (map[token * n + j] as number) / tokens.length;
    }
  }
  return mergeColumns(mean, layout, signed);
}

/** What units are called: with their position (the first token is 0) where a text occurs again. */
export function namesOf({ units, rows }: Layout): string[] {
  const often = new Map<string, number>();
  for (const unit of rows) {
    const text = units[unit]?.text ?? "";
    often.set(text, (often.get(text) ?? 0) + 1);
  }
  return units.map(({ text, index }) => ((often.get(text) ?? 0) > 1 ? `${text} (${index})` : text));
}
