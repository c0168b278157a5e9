import { expect, test } from "vitest";
import { random } from "../dev/synthetic";
import { stepOf, traceFrom } from "../src/state/flow";
import { type Column, columnFlow, columnShares } from "../src/state/graph-model";
import type { Combine } from "../src/wire/types";

const N = 7;
const LAYERS = 5;

function maps(seed: number, unnormalised: boolean): Float64Array[] {
  const next = random(seed);
  return Array.from({ length: LAYERS }, () => {
    const map = Float64Array.from({ length: N * N }, () => next() ** 3);
    for (let r = 0; r < N; r++) {
      let total = 0;
      for (let c = 0; c < N; c++) total += map[r * N + c] as number;
      const scale = unnormalised ? 1000 * next() : 1 / total;
      for (let c = 0; c < N; c++) map[r * N + c] = (map[r * N + c] as number) * scale;
    }
    return map;
  });
}

/** The plain definition: R^l = M^l R^(l-1), rows brought to sum 1 at the end. */
function rolloutRow(steps: Float64Array[], row: number): number[] {
  let product: number[][] = Array.from({ length: N }, (_, i) =>
    Array.from({ length: N }, (_, j) => (i === j ? 1 : 0)),
  );
  for (const step of steps) {
    product = product.map((_, i) =>
      product.map((_, j) => {
        let sum = 0;
        for (let k = 0; k < N; k++)
          sum += (step[i * N + k] as number) * ((product[k] as number[])[j] as number);
        return sum;
      }),
    );
  }
  const values = product[row] as number[];
  const total = values.reduce((a, b) => a + b, 0);
  return values.map((value) => value / total);
}

const cases: [Combine, boolean][] = [
  ["product", false],
  ["product", true],
  ["normalised", true],
  ["with_identity", false],
];

test.each(cases)(
  "the traced input row is the rollout row: %s, unnormalised %s",
  (combine, unnormalised) => {
    const steps = maps(3, unnormalised).map((map) => stepOf(map, N, combine));
    for (const top of [1, 3, LAYERS]) {
      for (const start of [0, 4]) {
        const used = steps.slice(0, top);
        const { nodes } = traceFrom(used, N, [start]);
        const wanted = rolloutRow(used, start);
        wanted.forEach((value, j) => {
          expect((nodes[0] as Float64Array)[j]).toBeCloseTo(value, 12);
        });
      }
    }
  },
);

test("every level carries the whole of the node, and nodes are what their edges bring", () => {
  const steps = maps(5, true);
  const { nodes, edges } = traceFrom(steps, N, [2]);
  for (const level of nodes) expect(level.reduce((a, b) => a + b, 0)).toBeCloseTo(1, 12);
  edges.forEach((flow, l) => {
    for (let k = 0; k < N; k++) {
      let out = 0;
      let into = 0;
      for (let j = 0; j < N; j++) {
        out += flow[k * N + j] as number;
        into += flow[j * N + k] as number;
      }
      expect(out).toBeCloseTo((nodes[l + 1] as Float64Array)[k] as number, 12);
      expect(into).toBeCloseTo((nodes[l] as Float64Array)[k] as number, 12);
    }
  });
});

test("a word's trace is the mean of its tokens' rollout rows, columns added", () => {
  const steps = maps(8, true);
  const { nodes, edges } = traceFrom(steps, N, [1, 2]);
  const [a, b] = [rolloutRow(steps, 1), rolloutRow(steps, 2)];
  const columns = [[0], [1, 2], [3], [4], [5], [6]].map(
    (tokens, unit): Column => ({ text: "", tokens, unit, units: [unit], segment: 0 }),
  );
  const merged = columnShares(nodes[0] as Float64Array, columns);
  const mean = a.map((value, j) => (value + (b[j] as number)) / 2);
  expect(merged[1]).toBeCloseTo((mean[1] as number) + (mean[2] as number), 12);
  expect(merged[3]).toBeCloseTo(mean[4] as number, 12);
  const flow = columnFlow(edges[0] as Float64Array, N, columns);
  expect(flow.reduce((x, y) => x + y, 0)).toBeCloseTo(1, 12);
});

test("a node without any flow gives zeros, not NaN", () => {
  const { nodes } = traceFrom([new Float64Array(N * N)], N, [0]);
  expect([...(nodes[0] as Float64Array)]).toEqual(new Array(N).fill(0));
});

test("the ways of all tokens add up to the trace, and those of one to its share", () => {
  const n = 6;
  const next = random(11);
  const steps = Array.from({ length: 4 }, () => Float64Array.from({ length: n * n }, () => next()));
  const { nodes, edges, ways } = traceFrom(steps, n, [2]);
  const all = Array.from({ length: n }, (_, token) => ways([token]));
  edges.forEach((flow, l) => {
    flow.forEach((value, e) => {
      const sum = all.reduce((total, one) => total + (one[l]?.[e] ?? 0), 0);
      expect(sum).toBeCloseTo(value, 12);
    });
    all.forEach((one, token) => {
      const through = [...(one[l] ?? [])].reduce((total, value) => total + value, 0);
      expect(through).toBeCloseTo(nodes[0]?.[token] ?? 0, 12);
    });
  });
  expect([...(ways([0, 1, 2, 3, 4, 5])[1] ?? [])]).toEqual(
    [...(edges[1] ?? [])].map((value) => expect.closeTo(value, 12)),
  );
});
