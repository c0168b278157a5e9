/** Invented answers to `measure`. */

import type { FaithfulnessPart, Question } from "../src/wire/protocol";
import type { Token } from "../src/wire/types";
import { random } from "./synthetic";

const METRICS = [
  { id: "comprehensiveness", title: "Comprehensiveness", better: "higher" },
  { id: "sufficiency", title: "Sufficiency", better: "lower" },
  { id: "aopc", title: "AOPC", better: "higher" },
  { id: "log_odds", title: "Log-odds", better: "lower" },
] as const;

export function measuredParts(question: Question, tokens: Token[]): FaithfulnessPart[] {
  const methods = Object.keys(question.runs);
  const removable = tokens.filter((token) => !token.special).map((token) => token.index);
  const n = removable.length;
  const points = Math.min(n + 1, 21);
  const counts = Array.from({ length: points }, (_, k) => Math.round((k * n) / (points - 1)));
  const shares = counts.map((count) => count / n);
  const fall = (speed: number, seed: number) => {
    const draw = random(seed);
    return shares.map((share, k) => {
      const jitter = k === 0 || k === points - 1 ? 0 : 0.08 * (draw() - 0.5);
      return Math.min(Math.max(0.93 - 0.45 * share ** (1 / speed) + jitter, 0), 1);
    });
  };
  const parts: FaithfulnessPart[] = [
    {
      part: "start",
      methods,
      target: "positive",
      probability: 0.93,
      removable,
      counts,
      shares,
      seeds: 20,
      metrics: [...METRICS],
    },
  ];
  methods.forEach((method, i) => {
    const draw = random(i + 3);
    const order = [...removable].sort(() => draw() - 0.5);
    parts.push({
      part: "curve",
      method,
      order,
      probabilities: fall([4, 2, 0.8, 0.5][i] ?? 1, i + 1),
      metrics: { comprehensiveness: 0.4 - 0.1 * i, sufficiency: 0.1, aopc: 0.3, log_odds: -1.2 },
    });
    if (i > 0) return;
    const mean = fall(1, 9).map((value, k) => (k === 0 ? value : value - 0.01));
    const wide = shares.map((share) => 0.3 * share * (1 - share));
    const spread = { mean: 0.12, low: 0.02, high: 0.3 };
    parts.push({
      part: "random",
      seeds: 20,
      mean,
      low: mean.map((value, k) => Math.max(value - (wide[k] ?? 0), 0)),
      high: mean.map((value, k) => Math.min(value + (wide[k] ?? 0), 1)),
      metrics: Object.fromEntries(METRICS.map(({ id }) => [id, spread])),
    });
  });
  if (methods.length > 1) {
    const matrix = (other: number) =>
      methods.map((_, r) => methods.map((_, c) => (r === c ? 1 : other)));
    parts.push({ part: "agreement", methods, spearman: matrix(-0.31), jaccard: matrix(0.4) });
  }
  const text =
    "On this text, removing the tokens ALTI ranks highest lowers the probability of “positive” more than all 20 random orders (comprehensiveness 0.40, all random orders 0.02 to 0.30).";
  const judged = Object.fromEntries(
    methods.map((method, i) => [
      method,
      {
        level: (["partly", "confirmed", "chance"] as const)[i % 3] ?? "partly",
        headline: ["Partly confirmed.", "Confirmed.", "No better than chance here."][i % 3] ?? "",
        text: "Without “never” the answer flips. One measure of four is clear of chance, three are not.",
        beats: Object.fromEntries(
          METRICS.map(({ id }, k) => [id, [19 - 3 * k, 20] as [number, number]]),
        ),
      },
    ]),
  );
  parts.push({ part: "verdict", text, methods: { [methods[0] ?? ""]: text }, judged });
  return parts;
}
