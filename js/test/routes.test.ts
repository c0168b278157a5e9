import { expect, test } from "vitest";
import { traceFrom } from "../src/state/flow";
import { type Column, flowEdges, MOST_RIBBONS, routesFrom } from "../src/state/graph-model";

const columnsOf = (count: number) =>
  Array.from(
    { length: count },
    (_, unit): Column => ({ text: "w", tokens: [unit], unit, units: [unit], segment: 0 }),
  );

test("routes are the edges above the share that hang together with the answer", () => {
  const lower = [1, 0, 0, 0.5, 0.5, 0, 0.02, 0.08, 0.9];
  const upper = [1, 0, 0, 0.9, 0.1, 0, 0.03, 0.07, 0.9];
  const routes = routesFrom([lower, upper], 3, [2], 0.04);
  // From token 2 of the last layer: 0.03 is too little; below, token 1 leads on to 0 and 1.
  expect([...(routes[1] as Uint8Array)]).toEqual([0, 0, 0, 0, 0, 0, 0, 1, 1]);
  expect([...(routes[0] as Uint8Array)]).toEqual([0, 0, 0, 1, 1, 0, 0, 1, 1]);
});

test("routes are drawn before what is stronger and no route", () => {
  const columns = columnsOf(3);
  const flow = [Float64Array.from([0, 0, 0, 0, 0, 0, 0.6, 0.1, 0.3])];
  const main = [Uint8Array.from([0, 0, 0, 0, 0, 0, 0, 1, 0])];
  const edges = flowEdges(flow, columns, 3, main);
  const at = Array.from(edges.lower).indexOf(1);
  expect(edges.routes?.[at]).toBe(1);
  expect(edges.routes?.reduce((sum, one) => sum + one, 0)).toBe(1);
});

test("what words keep leaves room for what moves: a ribbon goes on through the layers", () => {
  const [n, layers] = [14, 30];
  const step = Float64Array.from({ length: n * n }, (_, at) => {
    const [i, j] = [Math.floor(at / n), at % n];
    return i === j ? 0.85 : 0.15 / (n - 1);
  });
  const maps = Array.from({ length: layers }, () => step);
  const edges = flowEdges(traceFrom(maps, n, [0]).edges, columnsOf(n), n);
  const moving = Array.from(edges.upper).filter((upper, e) => upper !== edges.lower[e]).length;
  expect(edges.ribbons).toBe(MOST_RIBBONS);
  expect(moving).toBeGreaterThan(20);
  // 30 layers of one word are one ribbon: pieces of what stays are more than the ribbons of it.
  expect(edges.count - moving).toBeGreaterThan(edges.ribbons - moving);
});
