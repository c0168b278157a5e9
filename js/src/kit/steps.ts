/** Moving the layer. */

import type { State } from "../state/state";
import type { Context } from "./context";

export function moveLayer(state: State, context: Context, by: number): void {
  const next = Math.min(Math.max(state.layer + by, 0), Math.max(state.layers - 1, 0));
  if (next !== state.traits.layer) context.set({ layer: next });
}

/** Hold the next shown word; the first step begins at the row that is read. */
export function moveWord(state: State, context: Context, by: number): void {
  const { rows, focus, units, unitOf } = state.layout;
  const at = rows.indexOf(unitOf[context.marks.pin ?? -1] ?? focus);
  const next = units[rows[Math.min(Math.max(at + by, 0), rows.length - 1)] ?? focus];
  if (next) context.marks.hold(next.index);
  context.redraw();
}
