/** Invented models and texts, for the development page and the tests. */

import type { Dtype, Want } from "../src/wire/protocol";
import type { MethodEntry, Says, Token, Traits } from "../src/wire/types";
import { DEFAULTS } from "../src/wire/types";

/** A small generator of random numbers with a seed (mulberry32). */
export function random(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export interface Scene {
  traits: Partial<Traits>;
  /** The array that a want asks for, as float64 with its shape; null if there is none. */
  answer(want: Want): { shape: number[]; values: Float64Array } | null;
}

const SENTENCES = {
  review:
    "[CLS] the plot is not half as clever as it thinks it is , but the two lead act ##ors are so warm ##ly funny that you will for ##give it . [SEP]",
  hostile:
    '[CLS] <img src=x onerror=alert(1)> </script> <script>alert(2)</script> "quoted" &amp; \u202Eright-to-left שלום مرحبا 🙂 a_very_long_token_without_any_break_in_it_that_goes_on_and_on [SEP]',
};

function tokensOf(pieces: string[], pair = -1): Token[] {
  let word = -1;
  return pieces.map((piece, index) => {
    const special = /^(\[[A-Z]+\]|<\/?s>)$/.test(piece);
    const glued = piece.startsWith("##");
    if (!special && !glued) word++;
    return {
      piece,
      text: glued ? piece.slice(2) : piece,
      index,
      special,
      word: special ? null : word,
      segment: pair >= 0 && index >= pair ? 1 : 0,
    };
  });
}

function saysOf(given: Partial<MethodEntry> & { id: string }): Says {
  if (given.family === "baseline") return "nothing";
  if (given.id === "blank_out") return "removal";
  if (given.signed) return "adds";
  if (given.family === "gradients") return "slope";
  if (given.class_specific) return "weight";
  return (given.family ?? "attention") === "attention" ? "attention" : "made";
}

const mathOf = (inner: string) =>
  `<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">${inner}</math>`;
const M_IJ = "<msub><mi>M</mi><mrow><mi>i</mi><mi>j</mi></mrow></msub>";
const FORMULA = mathOf(
  `<mrow>${M_IJ}<mo>=</mo><munder><mo>∑</mo><mi>h</mi></munder><msubsup><mi>A</mi><mrow><mi>i</mi><mi>j</mi></mrow><mi>h</mi></msubsup><mo>/</mo><mi>H</mi></mrow>`,
);

const entry = (given: Partial<MethodEntry> & { id: string; title: string }): MethodEntry => ({
  family: "attention",
  yields: "maps",
  combine: "product",
  signed: false,
  says: saysOf(given),
  class_specific: false,
  any_focus: given.yields !== undefined && given.yields !== "maps",
  paper: "Someone and Other: A Paper",
  year: 2022,
  link: "https://example.org/paper",
  measures: "How much each token takes from each other.",
  formula: String.raw`M_{ij} = \sum_h A^h_{ij} / H`,
  mathml: given.formula ? [] : [FORMULA],
  ignores: "The feed-forward part.",
  cost: 0.5,
  available: true,
  reason: "",
  options: [],
  ...given,
});

export const CATALOGUE: MethodEntry[] = [
  entry({
    id: "raw_attention",
    title: "Raw attention",
    measures: "How much each token attends to each other, averaged over heads.",
    ignores: "What is attended to: values, residual connection, norms and feed-forward.",
    cost: 0.05,
  }),
  entry({
    id: "attention_rollout",
    title: "Attention rollout",
    measures: "Attention followed through the layers, half of each token kept by the residual.",
    formula: String.raw`M = \tfrac12 W + \tfrac12 I, \quad R^l = M^l R^{l-1}`,
  }),
  entry({ id: "attention_flow", title: "Attention flow", combine: "flow", cost: 40 }),
  entry({ id: "attention_residual", title: "Attention, measured residual" }),
  entry({
    id: "attn_norm",
    title: "Vector norms",
    family: "vector norms",
    formula: String.raw`N_{ij} = \Big\| \sum_h A^h_{ij} f^h_j \Big\|`,
  }),
  entry({ id: "attn_norm_res", title: "Norms with residual", family: "vector norms" }),
  entry({
    id: "globenc",
    title: "GlobEnc",
    family: "vector norms",
    formula: String.raw`N^{enc}_{ij} = \left\| \gamma_2 \odot \frac{c(t_{ij})}{\sqrt{\mathrm{var}(q_i) + \epsilon}} \right\|`,
  }),
  entry({
    id: "alti",
    title: "ALTI",
    family: "contributions",
    measures:
      "How much closer each token's part brings the sum to the token that the layer puts out.",
    formula: String.raw`M_{ij} \propto \max\big(0, d_{ij})`,
    mathml: [
      mathOf(
        `<mrow>${M_IJ}<mo>∝</mo><mi>max</mi><mo>(</mo><mn>0</mn><mo>,</mo><mi>d</mi><mo>)</mo></mrow>`,
      ),
    ],
    ignores: "The feed-forward part and the second norm.",
    cost: 1.6,
    options: [{ name: "p", default: 1, choices: [1, 2], help: "The distance: 1 or 2." }],
  }),
  entry({ id: "value_zeroing", title: "Value Zeroing", family: "contributions", cost: 40 }),
  entry({
    id: "gradient_x_input",
    title: "Gradient × input",
    family: "gradients",
    yields: "scores",
    class_specific: true,
  }),
  entry({
    id: "integrated_gradients",
    title: "Integrated gradients",
    family: "gradients",
    yields: "scores",
    class_specific: true,
    available: false,
    reason: "captum is not installed.",
  }),
  entry({
    id: "attcat",
    title: "AttCAT",
    family: "class activation",
    yields: "layer_scores",
    signed: true,
    class_specific: true,
    measures:
      "How much each token's features, weighed by attention, speak for or against the class.",
  }),
  entry({
    id: "blank_out",
    title: "Blank-out",
    family: "perturbation",
    yields: "scores",
    signed: true,
    class_specific: true,
    measures: "How much the probability falls when a token is masked.",
    formula: String.raw`s_j = p_c(x) - p_c(x_{\setminus j})`,
    cost: 30,
  }),
  entry({
    id: "gae",
    title: "GAE",
    family: "relevance",
    combine: "with_identity",
    class_specific: true,
  }),
  entry({
    id: "mask_lrp",
    title: "Mask-LRP",
    family: "relevance",
    combine: "with_identity",
    class_specific: true,
  }),
  entry({
    id: "logit",
    title: "Direct logit contributions",
    family: "contributions",
    yields: "layer_scores",
    signed: true,
    class_specific: true,
  }),
  entry({ id: "random", title: "Random", family: "baseline", yields: "scores" }),
];

export interface Shape {
  layers: number;
  heads: number;
  seed?: number;
}

/** Scenes by name: review, pair, hostile, long128, long512. */
export function scene(name: string, shape: Shape = { layers: 12, heads: 12 }): Scene {
  const next = random(shape.seed ?? 7);
  let pieces = SENTENCES.review.split(" ");
  let pair = -1;
  if (name === "hostile") {
    pieces = SENTENCES.hostile.split(/ (?!src|onerror)/);
  } else if (name === "pair") {
    const first = "[CLS] a man in a red coat is play ##ing the violin on the street . [SEP]".split(
      " ",
    );
    pair = first.length;
    pieces = [...first, ..."someone is mak ##ing music outdoors . [SEP]".split(" ")];
  } else if (name.startsWith("long")) {
    const n = Number(name.slice(4));
    const words =
      "the a of to and film story actor scene was is it never quite slow dull bright funny".split(
        " ",
      );
    pieces = Array.from({ length: n }, () => words[Math.floor(next() * words.length)] as string);
    pieces[0] = "[CLS]";
    pieces[n - 1] = "[SEP]";
  }
  const tokens = tokensOf(pieces, pair);
  const runs: Traits["runs"] = {};
  const runOf = (id: string) => ({
    run: `run-${id}`,
    state: "ready" as const,
    progress: 1,
    seconds_left: 0,
    message: "",
    done_layers: Array.from({ length: shape.layers }, (_, l) => l),
  });
  for (const method of CATALOGUE) if (method.available) runs[method.id] = runOf(method.id);
  const traits: Partial<Traits> = {
    ...DEFAULTS,
    text: tokens
      .filter((t) => !t.special && t.segment === 0)
      .map((t) => t.text)
      .join(" "),
    text_pair: tokens
      .filter((t) => !t.special && t.segment === 1)
      .map((t) => t.text)
      .join(" "),
    method: "alti",
    compared: ["globenc", "attention_rollout"],
    layer: shape.layers - 1,
    tokens,
    catalogue: CATALOGUE,
    runs,
    model_info: {
      name: "demo",
      task: "classification",
      layers: shape.layers,
      heads: shape.heads,
      labels: ["negative", "positive"],
      prediction: { label: "positive", index: 1, probability: 0.913 },
      targets: [
        { value: 0, label: "negative", probability: 0.087 },
        { value: 1, label: "positive", probability: 0.913 },
      ],
      adds_up: Array.from({ length: shape.layers }, (_, l) => 1e-7 + l * 1e-8),
      limit: 512,
      answer: 0,
      first: [
        { id: "alti", why: "what points the same way as the result" },
        { id: "gradient_x_input", why: "what the score would lose, to first order" },
        { id: "blank_out", why: "what happens without the word" },
      ],
    },
    status: { state: "ready", message: "Ready: ALTI, 12 layers in 0.4 s.", hint: "" },
  };
  return { traits, answer: answers(tokens, shape) };
}

function answers(tokens: Token[], shape: Shape): Scene["answer"] {
  const n = tokens.length;
  const kept = new Map<string, Float64Array>();
  const keep = (key: string, make: () => Float64Array) => {
    const known = kept.get(key) ?? make();
    kept.set(key, known);
    return known;
  };
  const weights = tokens.map((t, i) =>
    t.special ? 0.4 : /^(the|a|is|it|of|to|,|\.)$/.test(t.text) ? 0.25 : 0.6 + ((i * 37) % 11) / 6,
  );
  const layerMap = (run: string, layer: number) =>
    keep(`${run} ${layer}`, () => {
      const next = random([...run].reduce((a, c) => a * 31 + c.charCodeAt(0), layer + 1));
      const out = new Float64Array(n * n);
      for (let i = 0; i < n; i++) {
        let total = 0;
        for (let j = 0; j < n; j++) {
          const near = Math.exp(-Math.abs(i - j) / (1.2 + layer / 3)) * 0.9;
          const own = i === j ? 3.5 - layer * 0.15 : 0;
          const value = (near + (weights[j] as number) * (0.02 + next() ** 6)) * 0.6 + own;
          out[i * n + j] = value;
          total += value;
        }
        const unnormalised = /norm|globenc/.test(run) ? 1 + 3 * next() : 1;
        for (let j = 0; j < n; j++)
          out[i * n + j] = ((out[i * n + j] as number) / total) * unnormalised;
      }
      return out;
    });
  const rollout = (run: string, layer: number): Float64Array =>
    keep(`rollout ${run} ${layer}`, () => {
      const step = layerMap(run, layer);
      if (layer === 0) return normalised(step, n);
      const below = rollout(run, layer - 1);
      const out = new Float64Array(n * n);
      for (let i = 0; i < n; i++) {
        for (let k = 0; k < n; k++) {
          const weight = step[i * n + k] as number;
          for (let j = 0; j < n; j++)
            out[i * n + j] = (out[i * n + j] as number) + weight * (below[k * n + j] as number);
        }
      }
      return normalised(out, n);
    });
  const summed = (run: string, layer: number) => {
    const out = new Float64Array(n * n);
    for (let l = 0; l <= layer; l++)
      layerMap(run, l).forEach((v, i) => {
        out[i] = (out[i] as number) + v;
      });
    return out;
  };
  const aggregate = (run: string, of: string, layer: number) =>
    of === "layer" ? layerMap(run, layer) : of === "sum" ? summed(run, layer) : rollout(run, layer);
  const signedScores = (run: string, layer: number) => {
    const next = random([...run].reduce((a, c) => a * 31 + c.charCodeAt(0), layer + 99));
    const signed = /attcat|blank/.test(run);
    return Float64Array.from(weights, (w, j) => {
      const sign = signed && (j * 13) % 7 < 3 ? -0.6 : 1;
      return sign * w * (0.2 + next()) * 0.1;
    });
  };
  return (want) => {
    const { run, what } = want;
    const layer = want.layer ?? 0;
    switch (what) {
      case "layer":
      case "rollout":
      case "sum":
        return { shape: [n, n], values: aggregate(run, what, layer) };
      case "rows": {
        const values = new Float64Array(shape.layers * n);
        for (let l = 0; l < shape.layers; l++) {
          const map = aggregate(run, want.of ?? "rollout", l);
          values.set(map.subarray((want.focus ?? 0) * n, ((want.focus ?? 0) + 1) * n), l * n);
        }
        return { shape: [shape.layers, n], values };
      }
      case "layer_scores":
        return { shape: [n], values: signedScores(run, layer) };
      case "scores":
        return { shape: [n], values: signedScores(run, shape.layers) };
      case "overview":
        return reduced(aggregate(run, want.of ?? "layer", layer), n);
      case "heads": {
        const values = new Float64Array(shape.heads * n * n);
        for (let head = 0; head < shape.heads; head++) {
          values.set(normalised(layerMap(`head ${head}`, layer), n), head * n * n);
        }
        return { shape: [shape.heads, n, n], values };
      }
      case "head_stats": {
        const next = random(5);
        const values = Float64Array.from(
          { length: shape.layers * shape.heads * 6 },
          () => next() ** 3,
        );
        return { shape: [shape.layers, shape.heads, 6], values };
      }
      case "head_sums":
      case "head_scores": {
        const next = random(7);
        const across = want.what === "head_sums" ? [shape.layers, shape.heads] : [shape.heads, n];
        const [rows = 0, cols = 0] = across;
        return {
          shape: across,
          values: Float64Array.from({ length: rows * cols }, () => next() - 0.4),
        };
      }
      default:
        return null;
    }
  };
}

function normalised(map: Float64Array, n: number): Float64Array {
  const out = Float64Array.from(map);
  for (let i = 0; i < n; i++) {
    let total = 0;
    for (let j = 0; j < n; j++) total += out[i * n + j] as number;
    for (let j = 0; j < n; j++) out[i * n + j] = (out[i * n + j] as number) / total;
  }
  return out;
}

function reduced(map: Float64Array, n: number): { shape: number[]; values: Float64Array } {
  const m = Math.min(n, 96);
  const values = new Float64Array(m * m);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < n; j++) {
      const at = Math.floor((i * m) / n) * m + Math.floor((j * m) / n);
      values[at] = Math.max(values[at] as number, map[i * n + j] as number);
    }
  }
  return { shape: [m, m], values };
}

/** Bytes as the kernel would send them. */
export function encode(
  values: ArrayLike<number>,
  dtype: Dtype,
): { buffer: ArrayBuffer; scale: number } {
  if (dtype === "u1") {
    let peak = 0;
    for (let i = 0; i < values.length; i++) peak = Math.max(peak, values[i] as number);
    const scale = peak / 255 || 1;
    return {
      buffer: Uint8Array.from(values, (v) => Math.round(v / scale)).buffer as ArrayBuffer,
      scale,
    };
  }
  return { buffer: Float32Array.from(values).buffer as ArrayBuffer, scale: 1 };
}
