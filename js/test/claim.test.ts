/** The claim in words that are true for every kind of method. */

import { expect, test } from "vitest";
import { sceneHost } from "../dev/kernel";
import { scene } from "../dev/synthetic";
import { claimOf, inText } from "../src/state/claim";
import { points, share, signed } from "../src/state/format";
import { readingOf } from "../src/state/reading";
import { derive, type State } from "../src/state/state";
import { createStore } from "../src/wire/store";
import type { MethodEntry, Traits } from "../src/wire/types";

const WORDS = ["[CLS]", "it", "is", "never", "boring", "[SEP]"];

function stateOf(traits: Partial<Traits>): State {
  const made = scene("review", { layers: 4, heads: 2 });
  const tokens = WORDS.map((text, index) => ({
    piece: text,
    text,
    index,
    special: text.startsWith("["),
    word: index,
    segment: 0,
  }));
  Object.assign(made.traits, { tokens, ...traits });
  const host = sceneHost(made);
  return derive(host, createStore(host, new AbortController().signal));
}

type Kind = Partial<MethodEntry>;
const MADE: Kind = { says: "made", family: "contributions", yields: "maps" };
const ATTENTION: Kind = { says: "attention", family: "attention", yields: "maps" };
const FOR_CLASS: Kind = {
  says: "weight",
  family: "relevance",
  yields: "maps",
  class_specific: true,
};
const SLOPE: Kind = { says: "slope", family: "gradients", yields: "scores", class_specific: true };
const ADDS: Kind = {
  says: "adds",
  family: "class activation",
  yields: "layer_scores",
  class_specific: true,
  signed: true,
};
const PASSED: Kind = { ...ADDS, family: "relevance", passed: true };
const REMOVAL: Kind = { ...ADDS, says: "removal", yields: "scores" };
const SHAPLEY: Kind = { ...REMOVAL, says: "adds" };

function said(kind: Kind, values: number[], traits: Partial<Traits> = {}): string {
  const state = stateOf({ method: "alti", ...traits });
  const method = { ...(state.method as MethodEntry), signed: false, ...kind };
  const reading = readingOf(state, method, Float32Array.from(values));
  if (!reading) throw new Error("There is no reading.");
  return inText(claimOf(state, reading));
}

const SHARES = [0.54, 0.02, 0.03, 0.25, 0.08, 0.08];

test.each<[string, Kind, number[], Partial<Traits>, string]>([
  [
    "a mix of tokens",
    MADE,
    SHARES,
    {},
    "never makes up 25 % of what the answer is read from, boring 8 %; 54 % is [CLS] itself, 8 % is [SEP], not coloured.",
  ],
  [
    "up to a layer",
    MADE,
    SHARES,
    { layer: 1 },
    "never makes up 25 % of [CLS] up to layer 1, boring 8 %; 54 % is [CLS] itself, 8 % is [SEP], not coloured.",
  ],
  [
    "one layer alone",
    MADE,
    SHARES,
    { layer: 2, aggregate: "layer" },
    "In layer 2 alone, never makes up 25 % of [CLS], boring 8 %; 54 % is [CLS] itself, 8 % is [SEP], not coloured.",
  ],
  [
    "another row",
    MADE,
    [0.02, 0.05, 0.6, 0.25, 0.06, 0.02],
    { focus: 2 },
    "never makes up 25 % of is, boring 6 %; 60 % is is itself, not coloured.",
  ],
  [
    "rows that are no shares are read as shares of their sum",
    MADE,
    SHARES.map((value) => 7 * value),
    {},
    "never makes up 25 % of what the answer is read from, boring 8 %; 54 % is [CLS] itself, 8 % is [SEP], not coloured.",
  ],
  [
    "attention",
    ATTENTION,
    SHARES,
    {},
    "never gets 25 % of the attention followed back from [CLS], boring 8 %; 54 % is [CLS] itself, 8 % is [SEP], not coloured.",
  ],
  [
    "maps that know the class",
    FOR_CLASS,
    SHARES,
    {},
    "never carries 25 % of the method’s weight for positive, boring 8 %; 54 % is [CLS] itself, 8 % is [SEP], not coloured.",
  ],
  [
    "gradients",
    SLOPE,
    [0.02, 0.01, 0.02, 0.6, 0.33, 0.02],
    {},
    "positive leans most on never: 60 % of all gradient scores, boring 33 %.",
  ],
  [
    "what is added, and what is taken",
    ADDS,
    [0.36, 0, 0.01, 0.13, 0.04, 0],
    {},
    "never adds +0.13 to the score of positive, boring +0.04; [CLS] (+0.36) is not coloured.",
  ],
  [
    "the strongest against it",
    ADDS,
    [0, 0.04, 0, -0.13, -0.05, 0],
    {},
    "never takes −0.13 from the score of positive, boring −0.05; it adds +0.04.",
  ],
  [
    "what some layers add",
    ADDS,
    [0, 0, 0, 0.13, 0.04, 0],
    { layer: 1 },
    "In layers 0 to 1, never adds +0.13 to the score of positive, boring +0.04.",
  ],
  [
    "relevance that layers pass on is never added up",
    PASSED,
    [0, 0, 0, 0.13, 0.04, 0],
    { layer: 1 },
    "never adds +0.13 to the score of positive, boring +0.04.",
  ],
  [
    "relevance at a layer",
    PASSED,
    [0, 0, 0, 0.13, 0.04, 0],
    { layer: 1, aggregate: "layer" },
    "At layer 1, never adds +0.13 to the score of positive, boring +0.04.",
  ],
  [
    "what is lost by removing it",
    REMOVAL,
    [0, 0, -0.03, 0.92, 0.05, 0],
    {},
    "Without never, positive falls by 92 points, without boring by 5 points; without is it rises by 3 points.",
  ],
  [
    "what a word adds in any order",
    SHAPLEY,
    [0, 0, -0.3, 1.92, 0.05, 0],
    {},
    "never adds +1.92 to the score of positive, boring +0.05; is takes −0.30.",
  ],
  [
    "one word alone",
    REMOVAL,
    [0, 0, 0, 0.01, 0, 0],
    {},
    "Without never, positive falls by 1 point.",
  ],
  [
    "a sink",
    ATTENTION,
    [0.99997, 0.00001, 0, 0.00001, 0.00001, 0],
    {},
    "This method says nothing here. [CLS] itself keeps 99.997 % of what is read there. Colours are not stretched over the rest.",
  ],
  [
    "no score at all",
    SLOPE,
    [0, 0, 0, 0, 0, 0],
    {},
    "No word has any score here: there is nothing to tell them apart by.",
  ],
  [
    "random",
    { says: "nothing", family: "baseline", yields: "scores" },
    SHARES,
    {},
    "These scores are drawn at random: they say nothing about the text.",
  ],
])("%s", (_, kind, values, traits, wanted) => {
  expect(said(kind, values, traits)).toBe(wanted);
});

test("a method that does not know the answer is never said to give any of it", () => {
  for (const kind of [MADE, ATTENTION])
    for (const layer of [0, 1, 2, 3])
      for (const aggregate of ["layer", "rollout", "sum"] as const)
        expect(said(kind, SHARES, { layer, aggregate })).not.toMatch(/positive|adds|gives/);
});

test("the last token of a language model stands beside the scale, first tokens when they take most", () => {
  const info = { ...stateOf({}).traits.model_info, answer: 4 };
  const traits = { focus: 4, model_info: info };
  const state = stateOf(traits);
  const method = { ...(state.method as MethodEntry), ...MADE };
  const values = Float32Array.from([0.1, 0.1, 0.1, 0.2, 0.4, 0.1]);
  expect([...(readingOf(state, method, values)?.aside ?? [])].sort()).toEqual([0, 4, 5]);
  expect(readingOf(state, method, values)?.sink).toBe(-1);
});

test("numbers in sentences", () => {
  expect([0, 0.0002, 0.004, 0.0095, 0.081, 0.254, 1].map((part) => share(part))).toEqual([
    "0 %",
    "< 0.1 %",
    "0.4 %",
    "1 %",
    "8 %",
    "25 %",
    "100 %",
  ]);
  expect(share(0.99997, true)).toBe("99.997 %");
  expect([0.13, -0.0412, 0.0004, -3.2].map(signed)).toEqual(["+0.13", "−0.04", "+0.0004", "−3.20"]);
  expect([0.92, -0.01, 0.004, 0.0001].map(points)).toEqual([
    "92 points",
    "1 point",
    "0.4 points",
    "< 0.1 points",
  ]);
});
