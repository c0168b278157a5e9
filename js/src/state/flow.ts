/**
 * Tracing: how much of a node passes through every node and edge below it.
 *
 * With M^l the map of layer l (row k takes from columns j of the layer below), a path from
 * node (t, i) down to the input has the product of its entries as weight; the paths that end
 * in j add up to R^t[i, j], the rollout. So with
 *
 *   down^t = e_i,   down^(l-1) = down^l M^l        weight of the paths from (t, i) to a node
 *   up^0   = 1,     up^l = M^l up^(l-1)            weight of the paths from a node to the input
 *
 * node (l, k) carries down^l[k] up^l[k] and edge (l, k) -> (l-1, j) carries
 * down^l[k] M^l[k, j] up^(l-1)[j]. Both add up to the same total at every level,
 * sum_j R^t[i, j]; divided by it they are shares, and those of the input are the rollout's
 * row brought to sum 1. Rows of M need not sum to 1. Levels may be rescaled freely, since
 * every level is divided by its own total.
 */

import type { Combine } from "../wire/types";

export interface Trace {
  /** [levels][n]: share of the node that passes through each; level 0 is the input. */
  nodes: Float64Array[];
  /** [levels - 1][n * n]: edges[l][k * n + j] leads from (l + 1, k) down to (l, j). */
  edges: Float64Array[];
  /** The part of every edge that began in some tokens of the input: like `edges`, and these of
   * all tokens add up to `edges`. */
  ways(sources: readonly number[]): Float64Array[];
}

/** A layer's map as the rollout uses it. */
export function stepOf(map: ArrayLike<number>, n: number, combine: Combine): Float64Array {
  const step = Float64Array.from(map);
  if (combine === "with_identity") {
    for (let i = 0; i < n; i++) step[i * n + i] = (step[i * n + i] as number) + 1;
  } else if (combine === "normalised" || combine === "flow") {
    for (let r = 0; r < n; r++) {
      let total = 0;
      for (let c = 0; c < n; c++) total += step[r * n + c] as number;
      if (total !== 0)
        for (let c = 0; c < n; c++) step[r * n + c] = (step[r * n + c] as number) / total;
    }
  }
  return step;
}

/**
 * @param steps maps of layers 0 .. t as the rollout uses them, each [n, n]
 * @param starts the tokens of the clicked node: one, or those of a word (their mean)
 */
export function traceFrom(steps: Float64Array[], n: number, starts: number[]): Trace {
  const top = steps.length;
  const up: Float64Array[] = [new Float64Array(n).fill(1)];
  const sizes = [1];
  for (let l = 1; l <= top; l++) {
    const here = raised(steps[l - 1] as Float64Array, up[l - 1] as Float64Array, n);
    const size = largest(here);
    sizes.push(size);
    up.push(here.map((value) => value / size));
  }
  // Every token of a word counts alike, whatever the total of its row.
  let down: Float64Array = new Float64Array(n);
  for (const i of starts) {
    const total = (up[top] as Float64Array)[i] as number;
    if (total > 0) down[i] = 1 / (starts.length * total);
  }
  const nodes: Float64Array[] = new Array(top + 1);
  const edges: Float64Array[] = new Array(top);
  nodes[top] = shares(down, up[top] as Float64Array);
  const downs: Float64Array[] = new Array(top + 1);
  const totals: number[] = new Array(top + 1);
  for (let l = top; l >= 1; l--) {
    const step = steps[l - 1] as Float64Array;
    const below = up[l - 1] as Float64Array;
    const flow = new Float64Array(n * n);
    const next = new Float64Array(n);
    let total = 0;
    for (let k = 0; k < n; k++) {
      const weight = down[k] as number;
      if (weight === 0) continue;
      for (let j = 0; j < n; j++) {
        const part = weight * (step[k * n + j] as number);
        next[j] = (next[j] as number) + part;
        const through = part * (below[j] as number);
        flow[k * n + j] = through;
        total += through;
      }
    }
    if (total > 0) for (let e = 0; e < flow.length; e++) flow[e] = (flow[e] as number) / total;
    edges[l - 1] = flow;
    downs[l] = down;
    totals[l] = total;
    const size = largest(next);
    down = next.map((value) => value / size);
    nodes[l - 1] = shares(down, below);
  }

  function ways(sources: readonly number[]): Float64Array[] {
    let below = new Float64Array(n);
    for (const source of sources) below[source] = 1;
    return steps.map((step, at) => {
      const down = downs[at + 1] as Float64Array;
      const total = totals[at + 1] as number;
      const flow = new Float64Array(n * n);
      for (let k = 0; k < n; k++) {
        const weight = total > 0 ? (down[k] as number) / total : 0;
        if (weight === 0) continue;
        for (let j = 0; j < n; j++)
          flow[k * n + j] = weight * (step[k * n + j] as number) * (below[j] as number);
      }
      const size = sizes[at + 1] as number;
      below = raised(step, below, n).map((value) => value / size);
      return flow;
    });
  }
  return { nodes, edges, ways };
}

/** step @ below */
function raised(step: Float64Array, below: Float64Array, n: number): Float64Array<ArrayBuffer> {
  const here = new Float64Array(n);
  for (let k = 0; k < n; k++) {
    let sum = 0;
    for (let j = 0; j < n; j++) sum += (step[k * n + j] as number) * (below[j] as number);
    here[k] = sum;
  }
  return here;
}

function largest(values: Float64Array): number {
  let peak = 0;
  for (const value of values) peak = Math.max(peak, Math.abs(value));
  return peak > 0 ? peak : 1;
}

function shares(down: Float64Array, up: Float64Array): Float64Array {
  const product = down.map((value, k) => value * (up[k] as number));
  let total = 0;
  for (const value of product) total += value;
  return total > 0 ? product.map((value) => value / total) : product;
}
