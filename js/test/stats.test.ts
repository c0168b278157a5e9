import { expect, test } from "vitest";
import { random, scene } from "../dev/synthetic";
import { contrast, levelOf, mapScale, paint, palette, parseHex, rowScale } from "../src/kit/colour";
import { cost, duration, number, percent } from "../src/state/format";
import { quantileOfSize, ranks, spearman, unitMass } from "../src/state/stats";

test("ranks begin at 1 and ties share the better place", () => {
  expect(ranks([0.1, 0.5, 0.5, 0.2])).toEqual([4, 1, 1, 3]);
});

test("Spearman: order only, ties by mean rank, undefined for constants", () => {
  expect(spearman([1, 2, 3], [10, 20, 400])).toBeCloseTo(1);
  expect(spearman([1, 2, 3], [3, 2, 1])).toBeCloseTo(-1);
  // scipy.stats.spearmanr([1, 2, 2, 4], [1, 3, 2, 4]) gives 0.9486832980505138
  expect(spearman([1, 2, 2, 4], [1, 3, 2, 4])).toBeCloseTo(0.9486832980505138, 12);
  expect(spearman([1, 1, 1], [1, 2, 3])).toBeNull();
});

test("sizes sum to 1", () => {
  expect([...unitMass([1, -3])]).toEqual([0.25, -0.75]);
});

test("quantiles of sizes", () => {
  expect(quantileOfSize([-4, 1, 2, 3], 0.99)).toBe(4);
  expect(quantileOfSize([], 0.5)).toBe(0);
  expect(quantileOfSize([0, 0, Number.NaN], 0.9)).toBe(0);
  const sizes = Float32Array.from({ length: 1000 }, (_, i) => Math.sin(i) * 10 ** ((i % 9) - 6));
  const sorted = sizes.map(Math.abs).sort();
  for (const share of [0, 0.1, 0.5, 0.77, 0.999, 1])
    expect(quantileOfSize(sizes, share)).toBe(sorted[Math.min(999, Math.floor(1000 * share))]);
});

/** Strong on the diagonal, weak and uneven beside it. */
function diagonal(n: number, copies = 1): Float32Array {
  const next = random(n);
  return Float32Array.from({ length: copies * n * n }, (_, i) =>
    (i % (n * n)) % (n + 1) === 0 ? 0.3 : 0.01 * next(),
  );
}

// Lengths at which even steps met the diagonal always, or never.
test.each([119, 142, 200, 284, 355])("a diagonal of %d does not set the scale", (n) => {
  const blues = palette("blues", "light");
  const one = mapScale(blues, diagonal(n), false, n);
  const layers = mapScale(blues, diagonal(n, 12), false, n);
  expect(one.clipped && layers.clipped).toBe(true);
  expect(one.max).toBeGreaterThan(0.0155);
  expect(one.max).toBeLessThan(0.0161);
  expect(Math.abs(one.max / layers.max - 1)).toBeLessThan(0.01);
});

test("the scale of a map is that of its reduced picture, closely", () => {
  const blues = palette("blues", "light");
  const { answer } = scene("long355", { layers: 2, heads: 1 });
  const [full, small] = (["rollout", "overview"] as const).map((what) => {
    const found = answer({ run: "run-alti", what, of: "rollout", layer: 1 });
    if (!found) throw new Error(`There is no ${what}.`);
    return mapScale(blues, found.values, false, found.shape[1] ?? 0).max;
  }) as [number, number];
  expect(Math.max(full / small, small / full)).toBeLessThan(1.5);
});

test("ink is readable on every colour of every scale", () => {
  const rgb = (css: string) => (css.match(/\d+/g) ?? []).map(Number) as [number, number, number];
  for (const theme of ["light", "dark"] as const) {
    for (const name of ["blues", "viridis", "cividis", "greys"] as const) {
      for (const signed of [false, true]) {
        const scale = palette(name, theme).scale(signed, 1);
        for (let i = 0; i <= 40; i++) {
          const value = scale.min + ((scale.max - scale.min) * i) / 40;
          expect(contrast(rgb(scale.css(value)), rgb(scale.ink(value)))).toBeGreaterThan(4.2);
        }
      }
    }
  }
});

test("unsigned scales are ordered: stronger is darker on light, lighter on dark", () => {
  const light = (css: string) =>
    (css.match(/\d+/g) ?? [])
      .map(Number)
      .reduce((a, b, i) => a + b * ([0.21, 0.72, 0.07][i] ?? 0), 0);
  for (const name of ["blues", "viridis", "cividis", "greys"] as const) {
    for (const [theme, sign] of [
      ["light", -1],
      ["dark", 1],
    ] as const) {
      const scale = palette(name, theme).scale(false, 1);
      for (let i = 1; i <= 20; i++) {
        const step = light(scale.css(i / 20)) - light(scale.css((i - 1) / 20));
        expect(Math.sign(step)).toBe(sign);
      }
    }
  }
});

test("values become pixels; what is not computed is see-through", () => {
  const scale = palette("greys", "light").scale(false, 1);
  const into = new Uint32Array(4);
  paint([0, 1, Number.NaN, 99], scale, into);
  expect(into[0]).toBe(0xffffffff);
  expect(into[2]).toBe(0);
  expect(into[3]).toBe(into[1]);
  expect(levelOf(0, -1, 1)).toBe(128);
  expect(parseHex("#0a0b0c")).toEqual([10, 11, 12]);
});

test("a scale says when it clips: one value far above all others", () => {
  const blues = palette("blues", "light");
  const values = new Float32Array(1000).fill(0.1);
  values[0] = 5;
  const scale = mapScale(blues, values, false, 100);
  expect(scale.clipped).toBe(true);
  expect(scale.max).toBeCloseTo(0.16);
  const row = rowScale(blues, [0.8, 0.05, 0.04], false);
  expect([row.clipped, row.max]).toEqual([true, 0.05 * 1.6]);
  // Next to nothing is left for the others: it is not drawn as much.
  expect(rowScale(blues, [0.98, 0.005, 0.004], false).max).toBeCloseTo(0.098);
  const even = rowScale(blues, [0.3, 0.25, 0.04], false);
  expect([even.clipped, even.max]).toEqual([false, 0.3]);
  expect(rowScale(blues, [0, 0], false).max).toBe(1);
});

test("numbers in words", () => {
  expect(number(0)).toBe("0");
  expect(number(-0.12345)).toBe("−0.123");
  expect(number(1e-7)).toBe("1.0e−7");
  expect(number(-4.2e-4)).toBe("−4.2e−4");
  expect(number(Number.NaN)).toBe("not a number");
  expect(percent(0.1234)).toBe("12 %");
  expect(percent(0.0004)).toBe("< 0.1 %");
  expect(duration(0.2)).toBe("less than a second");
  expect(duration(12.4)).toBe("12 s");
  expect(cost(40)).toBe("about 40 passes of the model");
  expect(cost(null)).toBe("not known");
});
