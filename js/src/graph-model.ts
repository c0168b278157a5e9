/** The graph as numbers: columns, weights between levels, and the edges that are drawn. */

import { stepOf, type Trace, traceFrom } from "./flow";
import type { State } from "./state";
import type { Combine } from "./types";

export interface Column {
  text: string;
  tokens: number[];
  /** The unit it stands for; -1 for a fold of several. */
  unit: number;
  units: number[];
  segment: number;
}

export interface Edges {
  count: number;
  /** Layer of the map, upper column, lower column, weight: one entry per edge. */
  layer: Int16Array;
  upper: Int16Array;
  lower: Int16Array;
  weight: Float32Array;
  strongest: number;
  /** The strongest that lies between two different tokens. */
  between: number;
  /** How many would have been drawn without the limit. */
  found: number;
}

export const MOST_EDGES = 6000;

/** Steps of the rollout, per layer; undefined where a map is not there yet. */
export function stepsOf(
  maps: (Float32Array | undefined)[],
  n: number,
  combine: Combine,
): (Float64Array | undefined)[] {
  return maps.map((map) => map && stepOf(map, n, combine));
}

/** Traced down from a node, if every map below it is there. */
export function trace(
  steps: (Float64Array | undefined)[],
  n: number,
  layer: number,
  starts: number[],
): Trace | null {
  const used = steps.slice(0, layer + 1);
  if (used.length !== layer + 1 || used.some((step) => !step)) return null;
  return traceFrom(used as Float64Array[], n, starts);
}

/** How much each unit matters in the picture: what decides which are folded away. */
export function importance(
  state: State,
  steps: (Float64Array | undefined)[],
  traced: Trace | null,
): Float64Array {
  const { n, layout } = state;
  const byToken = new Float64Array(n);
  if (traced) {
    for (const level of traced.nodes) {
      level.forEach((share, j) => {
        byToken[j] = Math.max(byToken[j] as number, share);
      });
    }
  } else {
    for (const step of steps) {
      if (!step) continue;
      for (let i = 0; i < n; i++) {
        for (let j = 0; j < n; j++) {
          if (i !== j) byToken[j] = (byToken[j] as number) + (step[i * n + j] as number);
        }
      }
    }
  }
  const out = new Float64Array(layout.units.length);
  byToken.forEach((value, token) => {
    const unit = layout.unitOf[token] as number;
    out[unit] = (out[unit] as number) + value;
  });
  return out;
}

/** Shown units as columns; those of little weight are folded together where they are many. */
export function columnsOf(
  state: State,
  weights: Float64Array,
  room: number,
  opened: ReadonlySet<number>,
): Column[] {
  const { rows, units, focus } = state.layout;
  const kept = new Set(rows);
  if (rows.length > room) {
    const order = [...rows].sort((a, b) => (weights[b] as number) - (weights[a] as number));
    kept.clear();
    for (const unit of order.slice(0, room)) kept.add(unit);
    kept.add(focus);
    for (const unit of opened) kept.add(unit);
  }
  const columns: Column[] = [];
  for (const unit of rows) {
    const { text, tokens, segment } = units[unit] as (typeof units)[number];
    const last = columns[columns.length - 1];
    if (kept.has(unit)) columns.push({ text, tokens: [...tokens], unit, units: [unit], segment });
    else if (last && last.unit === -1 && last.segment === segment) {
      last.tokens.push(...tokens);
      last.units.push(unit);
      last.text = `⋯${last.units.length}`;
    } else columns.push({ text: "⋯1", tokens: [...tokens], unit: -1, units: [unit], segment });
  }
  // A fold of one saves nothing.
  return columns.map((column) => {
    const only = column.units[0] as number;
    if (column.unit >= 0 || column.units.length > 1) return column;
    return { ...column, unit: only, text: units[only]?.text ?? "" };
  });
}

/** Weights between columns of one layer: what is given is added, what is taken is averaged. */
export function columnWeights(step: Float64Array, n: number, columns: Column[]): Float64Array {
  const count = columns.length;
  const columnOf = new Int32Array(n).fill(-1);
  columns.forEach((column, c) => {
    for (const token of column.tokens) columnOf[token] = c;
  });
  const out = new Float64Array(count * count);
  columns.forEach((column, k) => {
    let total = 0;
    for (const i of column.tokens) {
      let row = 0;
      for (let j = 0; j < n; j++) row += step[i * n + j] as number;
      if (row <= 0) continue;
      for (let j = 0; j < n; j++) {
        const c = columnOf[j] as number;
        if (c < 0) continue;
        const part = (step[i * n + j] as number) / row;
        out[k * count + c] = (out[k * count + c] as number) + part;
        total += part;
      }
    }
    // Rows sum to 1 again where special tokens are hidden.
    if (total > 0)
      for (let c = 0; c < count; c++) out[k * count + c] = (out[k * count + c] as number) / total;
  });
  return out;
}

/** Traced flow between columns of one layer: everything is added. */
export function columnFlow(flow: Float64Array, n: number, columns: Column[]): Float64Array {
  const count = columns.length;
  const out = new Float64Array(count * count);
  columns.forEach((upper, k) => {
    columns.forEach((lower, c) => {
      let sum = 0;
      for (const i of upper.tokens) for (const j of lower.tokens) sum += flow[i * n + j] as number;
      out[k * count + c] = sum;
    });
  });
  return out;
}

export function columnShares(nodes: Float64Array, columns: Column[]): Float64Array {
  return Float64Array.from(columns, ({ tokens }) =>
    tokens.reduce((sum, token) => sum + (nodes[token] as number), 0),
  );
}

/**
 * The edges to draw: the k strongest of each upper node, or all above a share of the strongest
 * between two tokens of their layer. Folds stay out: they would outshine every single token.
 */
export function selectEdges(
  weights: (Float64Array | undefined)[],
  columns: Column[],
  threshold: number,
  topK: number,
): Edges {
  const count = columns.length;
  const single = columns.map((column) => column.unit >= 0);
  const shown = weights.map((layer) => layer && withoutFolds(layer, single));
  const peaks = shown.map((layer) => (layer ? strongestBetween(layer, count) : 0));
  let strongest = 0;
  for (const layer of shown)
    for (const value of layer ?? []) if (value > strongest) strongest = value;
  const share = topK > 0 ? 0 : shareFor(shown, peaks, Math.max(threshold, 1e-6));
  const picked: [number, number, number, number][] = [];
  shown.forEach((layer, l) => {
    if (!layer) return;
    for (let k = 0; k < count; k++) {
      const row = layer.subarray(k * count, (k + 1) * count);
      const least = topK > 0 ? kthLargest(row, topK) : share * (peaks[l] as number);
      let taken = 0;
      for (let j = 0; j < count; j++) {
        const value = row[j] as number;
        if (value <= 0 || value < least || (topK > 0 && taken >= topK)) continue;
        picked.push([l, k, j, value]);
        taken++;
      }
    }
  });
  const found = picked.length;
  picked.sort((a, b) => a[3] - b[3]); // the strongest are drawn last, on top
  const drawn = found > MOST_EDGES ? picked.slice(found - MOST_EDGES) : picked;
  return {
    count: drawn.length,
    layer: Int16Array.from(drawn, (edge) => edge[0]),
    upper: Int16Array.from(drawn, (edge) => edge[1]),
    lower: Int16Array.from(drawn, (edge) => edge[2]),
    weight: Float32Array.from(drawn, (edge) => edge[3]),
    strongest,
    between: Math.max(...peaks, 0),
    found,
  };
}

/** The strongest edge between two tokens: what tokens keep of themselves would hide all others. */
function strongestBetween(layer: Float64Array, count: number): number {
  let peak = 0;
  layer.forEach((value, at) => {
    if (value > peak && Math.floor(at / count) !== at % count) peak = value;
  });
  return peak;
}

function withoutFolds(layer: Float64Array, single: boolean[]): Float64Array {
  const count = single.length;
  if (single.every(Boolean)) return layer;
  return layer.map((value, at) =>
    single[Math.floor(at / count)] && single[at % count] ? value : 0,
  );
}

/** A share above which not many more edges lie than are drawn; found without sorting them. */
function shareFor(weights: (Float64Array | undefined)[], peaks: number[], from: number): number {
  if (from >= 1) return from;
  const bins = new Uint32Array(512);
  const span = -Math.log(from);
  weights.forEach((layer, l) => {
    const peak = peaks[l] as number;
    for (const value of layer ?? []) {
      const share = Math.min(value / peak, 1);
      if (!(share >= from)) continue;
      const bin = Math.min(511, Math.floor((Math.log(share / from) / span) * 512));
      bins[bin] = (bins[bin] as number) + 1;
    }
  });
  let above = 0;
  for (let bin = 511; bin >= 0; bin--) {
    above += bins[bin] as number;
    if (above > 2 * MOST_EDGES) return from * Math.exp((span * (bin + 1)) / 512);
  }
  return from;
}

function kthLargest(row: Float64Array, k: number): number {
  if (k >= row.length) return 0;
  return Float64Array.from(row).sort()[row.length - k] as number;
}
