/** The graph as numbers: columns, weights between levels, and the edges that are drawn. */

import { type Combine, DEFAULTS } from "../wire/types";
import { stepOf, type Trace, traceFrom } from "./flow";
import type { State } from "./state";

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
  /** How many between two tokens would be drawn without the limit. */
  found: number;
  /** How many between two tokens are drawn. */
  drawn: number;
  /** How many ribbons they make: what a word keeps from layer to layer is one. */
  ribbons: number;
  /** Which edges are routes: 1 or 0; null where all are alike. */
  routes: Uint8Array | null;
}

type Edge = [layer: number, upper: number, lower: number, weight: number];

/** Trained models stay below it in sentences of 30 tokens; 6,000 equal edges are a slab. */
const ROOM_PER_LAYER = 125;
const MOST_EDGES = 6000;

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

/** Shown units as columns; those of little weight are folded together where there is no room. */
export function columnsOf(
  state: State,
  weights: Float64Array,
  room: number,
  opened: ReadonlySet<number>,
): Column[] {
  const { rows, focus } = state.layout;
  if (rows.length <= room) return folded(state, new Set(rows));
  const order = [...rows].sort((a, b) => (weights[b] as number) - (weights[a] as number));
  for (let count = Math.floor(room); ; ) {
    const columns = folded(state, new Set([...order.slice(0, count), focus, ...opened]));
    if (columns.length <= room || count <= 1) return columns;
    count -= Math.max(1, Math.floor((columns.length - room) / 2));
  }
}

function folded(state: State, kept: ReadonlySet<number>): Column[] {
  const { rows, units } = state.layout;
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
  const columnOf = new Int32Array(n).fill(-1);
  columns.forEach((column, c) => {
    for (const token of column.tokens) columnOf[token] = c;
  });
  const out = new Float64Array(count * count);
  for (let i = 0; i < n; i++) {
    const k = columnOf[i] as number;
    if (k < 0) continue;
    for (let j = 0; j < n; j++) {
      const value = flow[i * n + j] as number;
      const c = columnOf[j] as number;
      if (value === 0 || c < 0) continue;
      out[k * count + c] = (out[k * count + c] as number) + value;
    }
  }
  return out;
}

export function columnShares(nodes: Float64Array, columns: Column[]): Float64Array {
  return Float64Array.from(columns, ({ tokens }) =>
    tokens.reduce((sum, token) => sum + (nodes[token] as number), 0),
  );
}

/** Less than this of the whole is not drawn, and never more than so many at once. */
const LEAST_FLOW = 0.004;
export const MOST_RIBBONS = 60;

/**
 * The edges of one flow that are worth drawing, weak first. `routes` are drawn before all others.
 * What a word keeps in layers on end is one ribbon, so that it leaves room for what moves.
 */
export function flowEdges(
  flows: Float64Array[],
  columns: Column[],
  n: number,
  routes: Uint8Array[] | null = null,
): Edges {
  const count = columns.length;
  const found: Edge[] = [];
  const main = flows.map((_, l) => routes && columnRoutes(routes[l] as Uint8Array, n, columns));
  flows.forEach((flow, l) => {
    const weights = columnFlow(flow, n, columns);
    for (let at = 0; at < weights.length; at++) {
      const weight = weights[at] as number;
      if (weight >= LEAST_FLOW) found.push([l, Math.floor(at / count), at % count, weight]);
    }
  });
  const isRoute = ([l, k, j]: Edge) => main[l]?.[k * count + j] ?? 0;
  found.sort((a, b) => isRoute(b) - isRoute(a) || b[3] - a[3]);
  const { drawn, ribbons } = ribboned(found, count, flows.length);
  drawn.sort((a, b) => a[3] - b[3]);
  const between = drawn.filter((edge) => edge[1] !== edge[2]);
  return {
    ...packed(drawn),
    strongest: drawn.at(-1)?.[3] ?? 0,
    between: between.at(-1)?.[3] ?? 0,
    found: found.length,
    drawn: drawn.length,
    ribbons,
    routes: routes && Uint8Array.from(drawn, isRoute),
  };
}

/** The first edges that make no more ribbons than may be drawn. */
function ribboned(found: Edge[], count: number, layers: number) {
  const stays = Array.from({ length: layers + 1 }, () => new Uint8Array(count));
  const drawn: Edge[] = [];
  let ribbons = 0;
  for (const edge of found) {
    const [l, k, j] = edge;
    let more = 1;
    if (k === j) {
      // It begins a ribbon, makes one longer, or joins two.
      more -= (stays[l + 1]?.[k] ?? 0) + (l > 0 ? (stays[l - 1]?.[k] ?? 0) : 0);
    }
    if (ribbons + more > MOST_RIBBONS) continue;
    if (k === j) (stays[l] as Uint8Array)[k] = 1;
    ribbons += more;
    drawn.push(edge);
  }
  return { drawn, ribbons };
}

/** Edges of the layers' maps that lead on from some tokens of the last layer downward, with more
 * than `least` of what a token takes: as `Explanation.routes` has them. */
export function routesFrom(
  maps: ArrayLike<number>[],
  n: number,
  starts: readonly number[],
  least: number,
): Uint8Array[] {
  const routes = maps.map(() => new Uint8Array(n * n));
  let reached = new Set(starts);
  for (let l = maps.length - 1; l >= 0; l--) {
    const below = new Set<number>();
    for (const i of reached)
      for (let j = 0; j < n; j++) {
        if (((maps[l] as ArrayLike<number>)[i * n + j] as number) <= least) continue;
        (routes[l] as Uint8Array)[i * n + j] = 1;
        below.add(j);
      }
    reached = below;
  }
  return routes;
}

/** Columns between which at least one route leads. */
function columnRoutes(routes: Uint8Array, n: number, columns: Column[]): Uint8Array {
  const count = columns.length;
  const out = new Uint8Array(count * count);
  columns.forEach((upper, k) => {
    columns.forEach((lower, c) => {
      const some = upper.tokens.some((i) => lower.tokens.some((j) => routes[i * n + j] === 1));
      out[k * count + c] = some ? 1 : 0;
    });
  });
  return out;
}

function packed(edges: Edge[]) {
  return {
    count: edges.length,
    layer: Int16Array.from(edges, (edge) => edge[0]),
    upper: Int16Array.from(edges, (edge) => edge[1]),
    lower: Int16Array.from(edges, (edge) => edge[2]),
    weight: Float32Array.from(edges, (edge) => edge[3]),
  };
}

/**
 * The edges to draw: the k strongest of each upper node to other tokens, or all above a share of
 * the strongest between two tokens of their layer. What a token keeps of itself counts neither as
 * one of the k nor towards the limit: in most maps it would leave no room for the others. Folds
 * stay out: they would outshine every single token.
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
  const there = shown.filter((layer) => layer !== undefined).length;
  const room = topK > 0 ? Number.POSITIVE_INFINITY : roomFor(threshold, there);
  const asked = Math.max(threshold, 1e-6);
  const near = topK > 0 ? null : shareFor(shown, peaks, count, asked, room);
  const kept: Edge[] = [];
  let between: Edge[] = [];
  shown.forEach((layer, l) => {
    if (!layer) return;
    const peak = peaks[l] as number;
    for (let k = 0; k < count; k++) {
      const row = layer.subarray(k * count, (k + 1) * count);
      const least = near ? asked * peak : kthLargest(row, topK, k);
      if ((row[k] as number) > 0 && (row[k] as number) >= least)
        kept.push([l, k, k, row[k] as number]);
      const enough = near ? near.share * peak : least;
      let taken = 0;
      for (let j = 0; j < count; j++) {
        const value = row[j] as number;
        if (j === k || value <= 0 || value < enough || (topK > 0 && taken >= topK)) continue;
        between.push([l, k, j, value]);
        taken++;
      }
    }
  });
  const found = near ? near.found : between.length;
  // By their share of the layer's strongest, as the threshold goes: no layer is left blank.
  between = thinned(between, ([l, , , value]) => value / (peaks[l] as number), room);
  const drawn = [...kept, ...between].sort((a, b) => a[3] - b[3]); // the strongest on top
  return {
    ...packed(drawn),
    strongest,
    between: Math.max(...peaks, 0),
    found,
    drawn: between.length,
    ribbons: drawn.length,
    routes: null,
  };
}

/**
 * How much is drawn before lines run together: every edge takes as much as its share of the
 * layer's strongest. Who lowers the threshold wants to see more all the same.
 */
function roomFor(threshold: number, layers: number): number {
  const lowered = Math.max(0, 1 - threshold / DEFAULTS.threshold);
  return ROOM_PER_LAYER * layers * (1 + 3 * lowered);
}

/** The strongest that there is room for. */
function thinned(edges: Edge[], shareOf: (edge: Edge) => number, room: number): Edge[] {
  const order = edges.sort((a, b) => shareOf(b) - shareOf(a));
  let taken = 0;
  let count = 0;
  for (const edge of order) {
    taken += shareOf(edge);
    if (taken > room || count === MOST_EDGES) break;
    count++;
  }
  return order.slice(0, count);
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

/**
 * A share above which hardly more edges between tokens lie than are drawn, found without sorting
 * them; and how many lie above the share that is asked for.
 */
function shareFor(
  weights: (Float64Array | undefined)[],
  peaks: number[],
  count: number,
  from: number,
  room: number,
): { share: number; found: number } {
  const bins = new Float64Array(512);
  const counts = new Uint32Array(512);
  const span = Math.max(-Math.log(from), 1e-9);
  let found = 0;
  weights.forEach((layer, l) => {
    const peak = peaks[l] as number;
    layer?.forEach((value, at) => {
      // Compared as where edges are picked, so that both count the same.
      if (value <= 0 || value < from * peak || Math.floor(at / count) === at % count) return;
      const bin = Math.floor((Math.log(value / peak / from) / span) * 512);
      const inside = Math.min(Math.max(bin, 0), 511);
      bins[inside] = (bins[inside] as number) + value / peak;
      counts[inside] = (counts[inside] as number) + 1;
      found++;
    });
  });
  let above = 0;
  let number = 0;
  for (let bin = 511; bin >= 0; bin--) {
    above += bins[bin] as number;
    number += counts[bin] as number;
    // One step lower, for what rounding has put beyond it.
    if (above >= room || number >= MOST_EDGES)
      return { share: from * Math.exp((span * Math.max(bin - 1, 0)) / 512), found };
  }
  return { share: from, found };
}

/** The k-th largest of a row, without what the token keeps of itself. */
function kthLargest(row: Float64Array, k: number, itself: number): number {
  if (k >= row.length - 1) return 0;
  const others = Float64Array.from(row);
  others[itself] = Number.NEGATIVE_INFINITY;
  return others.sort()[row.length - k] as number;
}
