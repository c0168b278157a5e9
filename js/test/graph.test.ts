import { expect, test } from "vitest";
import { random } from "../dev/synthetic";
import { limitWords } from "../src/kit/graph-words";
import { type Column, type Edges, selectEdges } from "../src/state/graph-model";

const columnsOf = (count: number) =>
  Array.from(
    { length: count },
    (_, unit): Column => ({ text: "token", tokens: [unit], unit, units: [unit], segment: 0 }),
  );
const apart = (edges: Edges) =>
  Array.from(edges.upper).filter((upper, e) => upper !== edges.lower[e]).length;

test("what a token keeps of itself takes no place among its strongest edges", () => {
  const own = [0.8, 0.15, 0.05, 0.1, 0.7, 0.2, 0.3, 0.1, 0.6];
  const edges = selectEdges([Float64Array.from(own)], columnsOf(3), 0.1, 1);
  const between = Array.from({ length: edges.count }, (_, e) => [edges.upper[e], edges.lower[e]])
    .filter(([upper, lower]) => upper !== lower)
    .sort();
  expect(between).toEqual([
    [0, 1],
    [1, 2],
    [2, 0],
  ]);
  expect(edges.count).toBe(6); // and the upright lines
});

/** Maps with nothing to see: every edge is about as strong as the next. */
function diffuse(count: number, layers: number): Float64Array[] {
  const next = random(4);
  return Array.from({ length: layers }, (_, l) =>
    Float64Array.from({ length: count * count }, () => (0.5 + 0.5 * next()) / (1 + 9 * l)),
  );
}

test("maps with too many edges are thinned out, and it is said", () => {
  const weights = diffuse(49, 6);
  const all = 6 * 49 * 48;
  const usual = selectEdges(weights, columnsOf(49), 0.1, 0);
  expect([apart(usual), usual.found]).toEqual([usual.drawn, all]);
  expect(usual.drawn).toBeGreaterThan(700);
  expect(usual.drawn).toBeLessThan(800);
  expect(limitWords(usual, 0)).toContain(`Only the ${usual.drawn} strongest of 14,112 edges`);
  // Layers with small numbers keep their share of the lines.
  expect(new Set(usual.layer).size).toBe(6);
  const more = selectEdges(weights, columnsOf(49), 0.02, 0);
  expect(apart(more)).toBeGreaterThan(2 * usual.drawn);
  const fewer = selectEdges(weights, columnsOf(49), 0.98, 0);
  expect(fewer.found).toBeLessThan(usual.drawn);
  expect([apart(fewer), limitWords(fewer, 0)]).toEqual([fewer.found, ""]);
  expect(apart(selectEdges(weights, columnsOf(49), 0.1, 10))).toBe(6 * 49 * 10);
});

test("a map of some tokens is drawn whole", () => {
  const next = random(9);
  const weights = Array.from({ length: 4 }, () =>
    Float64Array.from({ length: 13 * 13 }, () => next() ** 4),
  );
  const edges = selectEdges(weights, columnsOf(13), 0.1, 0);
  const wanted = weights.flatMap((layer) => {
    const between = [...layer].filter((_, at) => Math.floor(at / 13) !== at % 13);
    const least = 0.1 * Math.max(...between);
    return [...layer].filter((value) => value >= least);
  });
  expect(edges.count).toBe(wanted.length);
  expect(limitWords(edges, 0)).toBe("");
});
