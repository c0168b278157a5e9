import { expect, test } from "vitest";
import { random, scene } from "../dev/synthetic";
import { paint, palette } from "../src/kit/colour";
import { edgeAt, measureGraph, nodeAt } from "../src/kit/graph-draw";
import { type Column, selectEdges } from "../src/state/graph-model";
import { layOut, mergeMap } from "../src/state/units";

/** The quickest of some tries, in ms: other work on the machine does not count. */
function quickest(work: () => void, tries = 7): number {
  let best = Number.POSITIVE_INFINITY;
  for (let i = 0; i < tries; i++) {
    const begin = performance.now();
    work();
    best = Math.min(best, performance.now() - begin);
  }
  return best;
}

test("finding what is under the pointer takes a part of a frame: 128 tokens, 5,000 edges", () => {
  const next = random(1);
  const columns = Array.from(
    { length: 128 },
    (_, unit): Column => ({ text: "token", tokens: [unit], unit, units: [unit], segment: 0 }),
  );
  const weights = Array.from({ length: 12 }, () =>
    Float64Array.from({ length: 128 * 128 }, () => next()),
  );
  const edges = selectEdges(weights, columns, 0, 4);
  expect(edges.count).toBeGreaterThan(5000);
  const inks = {
    text: "",
    muted: "",
    line: "",
    accent: "",
    ground: "",
    edge: "",
    font: "",
    size: 12,
  };
  const g = measureGraph(columns, 13, 1200, inks, null);
  const ms = quickest(() => {
    for (let i = 0; i < 10; i++) {
      nodeAt(g, 128, 100 + 90 * i, 25 + 30 * i, 0);
      edgeAt(g, edges, 100 + 90 * i, 25 + 30 * i, 0);
    }
  });
  expect(ms / 10).toBeLessThan(4);
});

test("a map of 512 tokens is merged and coloured well within 50 ms", () => {
  const { traits } = scene("long512");
  const layout = layOut(traits.tokens ?? [], "words", false, 0);
  const next = random(2);
  const map = Float32Array.from({ length: 512 * 512 }, () => next());
  const scale = palette("blues", "light").scale(false, 1);
  const pixels = new Uint32Array(512 * 512);
  expect(quickest(() => paint(map, scale, pixels))).toBeLessThan(25);
  expect(quickest(() => mergeMap(map, 512, layout, false))).toBeLessThan(50);
});
