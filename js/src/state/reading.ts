/** A row of scores as it is read: which words are on the scale, and what stands beside it. */

import type { MethodEntry } from "../wire/types";
import { share, signed } from "./format";
import type { State } from "./state";

export interface Reading {
  method: MethodEntry;
  /** Of shown columns. */
  values: Float32Array;
  /** Sum of all sizes: what shares are of. */
  total: number;
  /** Units beside the scale: special tokens, and where the answer is read. */
  aside: ReadonlySet<number>;
  /** Columns on the scale, strongest first. */
  order: number[];
  /** The largest size on the scale. */
  peak: number;
  /** A token beside the scale that takes nearly everything; -1 if none does. */
  sink: number;
  /** Where the template of a chat takes nearly everything together: its share, else 0. */
  template: number;
}

/** Whether a token is one of the answer's own. */
export function isOwn({ traits }: State, token: number): boolean {
  const { start, tokens } = traits.reply;
  return token >= start && token < start + tokens.length;
}

/** A first or special token with so much is set beside the scale. */
const MOST = 0.5;
/** Beyond this the method says nothing about the words. */
const ALL = 0.95;

export function readingOf(
  state: State,
  method: MethodEntry,
  values: Float32Array | undefined,
): Reading | null {
  if (!values) return null;
  const { layout, layers, layer } = state;
  const { cols, units } = layout;
  let total = 0;
  for (const value of values) total += Math.abs(value);
  const first = cols[0];
  const shareOf = (c: number) => (total > 0 ? Math.abs(values[c] as number) / total : 0);
  const aside = new Set<number>();
  cols.forEach((unit, c) => {
    const strong = !method.signed && shareOf(c) > MOST && unit === first;
    const own = state.whole && isOwn(state, units[unit]?.index ?? -1);
    if (units[unit]?.special || unit === layout.focus || strong || own) aside.add(unit);
  });
  // Words are compared with words, unless there are none.
  if (cols.every((unit) => aside.has(unit))) aside.clear();
  const order = cols.map((_, c) => c).filter((c) => !aside.has(cols[c] as number));
  order.sort((a, b) => Math.abs(values[b] as number) - Math.abs(values[a] as number));
  const whole =
    method.yields === "scores" || (state.traits.aggregate !== "layer" && layer === layers - 1);
  let sink = -1;
  let template = 0;
  if (whole && !method.signed && cols.length > 2) {
    let most = 0;
    let strongest = -1;
    cols.forEach((unit, c) => {
      const index = units[unit]?.index ?? -1;
      if (aside.has(unit) && shareOf(c) > ALL && !(state.whole && isOwn(state, index))) sink = unit;
      if (!units[unit]?.special || unit === layout.focus) return;
      template += shareOf(c);
      if (shareOf(c) > most) {
        most = shareOf(c);
        strongest = unit;
      }
    });
    // In a chat the template's pieces share what a first token takes elsewhere.
    const shared = sink < 0 && Array.isArray(state.traits.text) && template > ALL;
    if (shared) sink = strongest;
    else template = 0;
  }
  return {
    method,
    values,
    total,
    aside,
    order,
    peak: Math.abs(values[order[0] ?? -1] ?? 0),
    sink,
    template,
  };
}

/** How the reading's numbers are written: shares in percent, what has a sign as it is. */
export const writing = ({ method, total }: Reading) =>
  method.signed ? signed : (value: number) => share(total > 0 ? value / total : 0);

/** Share of the whole, 0 to 1, of a column. */
export const shareOf = ({ values, total }: Reading, column: number) =>
  total > 0 ? Math.abs(values[column] ?? 0) / total : 0;
