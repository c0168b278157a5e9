import { expect, test } from "vitest";
import { random, scene } from "../dev/synthetic";
import { paint, palette } from "../src/kit/colour";
import { traceFrom } from "../src/state/flow";
import { type Column, flowEdges, MOST_RIBBONS } from "../src/state/graph-model";
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

test("the ways of a word are found within a frame: 128 tokens, 12 layers", () => {
  const next = random(1);
  const n = 128;
  const columns = Array.from(
    { length: n },
    (_, unit): Column => ({ text: "token", tokens: [unit], unit, units: [unit], segment: 0 }),
  );
  const maps = Array.from({ length: 12 }, () =>
    Float64Array.from({ length: n * n }, () => next() / n),
  );
  const traced = traceFrom(maps, n, [0]);
  const ms = quickest(() => flowEdges(traced.ways([5]), columns, n));
  expect(ms).toBeLessThan(16);
  expect(flowEdges(traced.edges, columns, n).count).toBeLessThanOrEqual(MOST_RIBBONS);
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
