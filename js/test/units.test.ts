import { expect, test } from "vitest";
import { layOut, mergeColumns, mergeMap, visibleText } from "../src/state/units";
import type { Token } from "../src/wire/types";

const token = (text: string, index: number, word: number | null, segment = 0): Token => ({
  piece: text,
  text,
  index,
  special: word === null,
  word,
  segment,
});
const TOKENS = [
  token("[CLS]", 0, null),
  token("act", 1, 0),
  token("ors", 2, 0),
  token("laugh", 3, 1),
  token("[SEP]", 4, null),
];

test("subwords merge to words, special tokens stay apart", () => {
  const { units, unitOf, focus } = layOut(TOKENS, "words", true, 2);
  expect(units.map((unit) => unit.text)).toEqual(["[CLS]", "actors", "laugh", "[SEP]"]);
  expect(unitOf).toEqual([0, 1, 1, 2, 3]);
  expect(focus).toBe(1);
});

test("words with the same number in two texts are two words", () => {
  const pair = [token("yes", 0, 0, 0), token("no", 1, 0, 1)];
  expect(layOut(pair, "words", true, 0).units).toHaveLength(2);
});

test("hidden special tokens leave the columns, the focus keeps its row", () => {
  const layout = layOut(TOKENS, "tokens", false, 0);
  expect(layout.cols).toEqual([1, 2, 3]);
  expect(layout.rows).toEqual([0, 1, 2, 3]);
});

test("a text of special tokens only is still shown", () => {
  expect(layOut([token("[CLS]", 0, null)], "tokens", false, 0).cols).toEqual([0]);
});

test("columns are added, and scaled to the same total where special tokens are hidden", () => {
  const row = [0.4, 0.1, 0.2, 0.1, 0.2];
  const words = mergeColumns(row, layOut(TOKENS, "words", true, 0), false);
  expect([...words.values].map((v) => Number(v.toFixed(4)))).toEqual([0.4, 0.3, 0.1, 0.2]);
  const hidden = mergeColumns(row, layOut(TOKENS, "words", false, 0), false);
  expect(hidden.values[0]).toBeCloseTo(0.75);
  expect(hidden.values[1]).toBeCloseTo(0.25);
  expect(hidden.hidden).toBeCloseTo(0.6);
});

test("signed scores are not scaled", () => {
  const { values } = mergeColumns([5, 1, -1, 2, 5], layOut(TOKENS, "tokens", false, 0), true);
  expect([...values]).toEqual([1, -1, 2]);
});

test("rows of a word are averaged, columns added", () => {
  const map = Float32Array.from({ length: 25 }, (_, i) => i);
  const merged = mergeMap(map, 5, layOut(TOKENS, "words", true, 0), false);
  // row "actors" = mean of rows 1 and 2; column "actors" = columns 1 and 2 added
  expect(merged[1 * 4 + 1]).toBe((6 + 7 + 11 + 12) / 2);
  expect(merged[0]).toBe(0);
});

test("nothing is invisible", () => {
  expect(visibleText(token("\n", 0, 0))).toBe("⏎");
  expect(visibleText(token(" ", 0, 0))).toBe("␣");
  expect(visibleText({ ...token("", 0, 0), piece: "▁" })).toBe("▁");
});
