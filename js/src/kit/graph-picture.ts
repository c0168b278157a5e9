/** From maps to the picture of the graph. */

import {
  type Column,
  columnFlow,
  columnShares,
  columnsOf,
  columnWeights,
  importance,
  selectEdges,
  stepsOf,
  trace,
} from "../state/graph-model";
import type { State } from "../state/state";
import { largestSize } from "../state/stats";
import type { Picture } from "./graph-draw";

/** Each stage is done again only when what it depends on has changed. */
export function createPictures() {
  let mapsKey: (Float32Array | undefined)[] = [];
  let steps: (Float64Array | undefined)[] = [];
  let pictureKey = "";
  let kept: Picture | null = null;
  let unitsKey: unknown;
  return (
    state: State,
    maps: (Float32Array | undefined)[],
    combine: Parameters<typeof stepsOf>[2],
    tracing: boolean,
    room: number,
    opened: ReadonlySet<number>,
    opening: string,
    scaleFor: (size: number) => Picture["scale"],
  ): Picture => {
    const { n, layout, traits } = state;
    const same = maps.length === mapsKey.length && maps.every((map, i) => map === mapsKey[i]);
    if (!same) {
      steps = stepsOf(maps, n, combine);
      mapsKey = maps;
    }
    const key = [
      tracing ? `${state.layer} ${traits.focus}` : "",
      room,
      opening,
      traits.threshold,
      traits.top_k,
      traits.unit,
      traits.special,
      layout.rows.length,
      layout.rows.includes(layout.focus) ? layout.focus : "",
    ].join("|");
    if (!same || key !== pictureKey || traits.tokens !== unitsKey || !kept) {
      const starts = layout.units[layout.focus]?.tokens ?? [0];
      const traced = tracing ? trace(steps, n, state.layer, starts) : null;
      const columns = columnsOf(state, importance(state, steps, traced), room, opened);
      const weights = traced
        ? traced.edges.map((flow) => columnFlow(flow, n, columns))
        : steps.map((step) => step && columnWeights(step, n, columns));
      const edges = selectEdges(weights, columns, traits.threshold, traits.top_k);
      const shares = traced ? traced.nodes.map((level) => columnShares(level, columns)) : null;
      if (shares?.[0]) rescaleShown(shares[0]);
      kept = {
        columns,
        edges,
        shares,
        traced: traced !== null,
        chosen: { level: 0, column: 0 },
        scale: scaleFor(shares?.[0] ? largestSize(singles(shares[0], columns)) : 1),
      };
      pictureKey = key;
      unitsKey = traits.tokens;
    }
    const column = kept.columns.findIndex((c) => c.units.includes(layout.focus));
    const scale = scaleFor(kept.scale.max);
    kept = { ...kept, scale, chosen: { level: state.layer + 1, column } };
    return kept;
  };
}

/** Hidden tokens are left out of the input's shares, as in the text. */
function rescaleShown(shares: Float64Array): void {
  let total = 0;
  for (const share of shares) total += share;
  if (total > 0) for (let i = 0; i < shares.length; i++) shares[i] = (shares[i] as number) / total;
}

/** Shares of single tokens: folds do not set the scale. */
const singles = (shares: Float64Array, columns: Column[]) =>
  shares.filter((_, c) => (columns[c]?.unit ?? -1) >= 0);
