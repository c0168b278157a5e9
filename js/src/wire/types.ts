/** The synced state, as docs/architecture.md lists it. Field names are those of Python. */

export type ViewName =
  | "text"
  | "layers"
  | "map"
  | "graph"
  | "multiples"
  | "compare"
  | "faithfulness"
  | "heads"
  | "answer";

export type Aggregate = "layer" | "rollout" | "sum";
export type ScaleName = "blues" | "viridis" | "cividis" | "greys";
export type Yields = "maps" | "layer_scores" | "scores";
export type Combine = "product" | "normalised" | "with_identity" | "flow" | "whole";
export type RunStage = "waiting" | "computing" | "ready" | "cancelled" | "error";
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface Token {
  piece: string;
  text: string;
  index: number;
  special: boolean;
  word: number | null;
  segment: number;
  /** In a chat: whose message it belongs to and which; null for what the template writes. */
  role?: string | null;
  message?: number | null;
}

export interface ChatMessage {
  role: string;
  content: string;
  [more: string]: Json;
}

/** A token of an answer, with what the model gave it and the likeliest others. */
export interface ReplyToken {
  text: string;
  piece: string;
  word: number | null;
  id?: number;
  probability: number | null;
  others: TargetChoice[];
  /** How much it needed the prompt: log probability with it minus that without. */
  needed: number | null;
}

/** The answer: as it is written, and when it is there. `state` is "" where there is none. */
export interface Reply {
  state: "" | "writing" | "ready" | "stopped" | "full";
  /** The model could write one; it wrote this one. */
  offer: boolean;
  own: boolean;
  /** How many tokens stand before it. */
  start: number;
  text: string;
  tokens: ReplyToken[];
  problem: string;
}

export interface TargetChoice {
  value: Json;
  label: string;
  probability: number | null;
}

export interface ModelInfo {
  name: string;
  task: string;
  layers: number;
  /** What layers are called where their number does not say it: an encoder-decoder's. */
  layer_names?: string[];
  heads: number;
  labels: string[];
  prediction: { label: string; index: number; probability: number | null } | null;
  targets: TargetChoice[];
  adds_up: number[];
  limit: number | null;
  /** The token at which the answer is read; absent where nothing is predicted. */
  answer?: number | null;
  /** A whole answer is explained, not one prediction. */
  whole?: boolean;
  /** Seconds of one pass of the model on this text. */
  seconds?: number | null;
  /** How many tokens of the text were left out because the model cannot take more. */
  cut?: number;
  /** Methods to begin with, the recommended one first, and in few words what each tells. */
  first?: { id: string; why: string }[];
}

export interface MethodOption {
  name: string;
  default: Json;
  choices: Json[] | null;
  help: string;
}

/** What a state is made of, attention, a weight for a target, a slope, what is added to a target's
 * score, what removing takes from its probability, nothing. */
export type Says = "made" | "attention" | "weight" | "slope" | "adds" | "removal" | "nothing";

export interface MethodEntry {
  id: string;
  title: string;
  family: string;
  yields: Yields;
  combine: Combine;
  /** Layers pass on the same relevance: they are not added up. */
  passed?: boolean;
  signed: boolean;
  /** What a score is a score of. */
  says: Says;
  class_specific: boolean;
  /** Its scores are the same whatever the focus token. */
  any_focus?: boolean;
  paper: string;
  year: number;
  link: string;
  measures: string;
  /** TeX. */
  formula: string;
  /** The same as MathML, line by line; none where it could not be read. */
  mathml?: string[];
  ignores: string;
  cost: number | null;
  available: boolean;
  reason: string;
  options: MethodOption[];
}

export interface RunInfo {
  run: string;
  state: RunStage;
  progress: number;
  seconds_left: number | null;
  message: string;
  done_layers: number[] | number;
  /** How far target = inputs + biases + softmax is from holding, and the function without a rule
   * that kept most; of methods that share the prediction out. */
  balance?: { error: number; unmet: string };
  /** Heads that pass relevance on, [layers][heads] of 0 and 1, and where they come from. */
  mask?: number[][];
  mask_note?: string;
}

export interface Status {
  state: "computing" | "ready" | "error";
  message: string;
  hint: string;
}

export interface Traits {
  text: string | ChatMessage[];
  text_pair: string;
  method: string;
  compared: string[];
  params: Record<string, Record<string, Json>>;
  view: ViewName;
  layer: number;
  aggregate: Aggregate;
  focus: number;
  target: Json;
  /** What a language model says: a text, ids, true for what it writes; null for none. */
  answer: Json;
  /** The answer's token that is asked about; null: all of it. */
  step: number | null;
  max_new_tokens: number;
  shade: "probability" | "dependence";
  threshold: number;
  top_k: number;
  unit: "tokens" | "words";
  special: boolean;
  colours: ScaleName;
  head: number;
  tokens: Token[];
  reply: Reply;
  model_info: ModelInfo;
  catalogue: MethodEntry[];
  runs: Record<string, RunInfo>;
  status: Status;
}

/** What stands in for a trait that the kernel has not sent. */
export const DEFAULTS: Readonly<Traits> = Object.freeze({
  text: "",
  text_pair: "",
  method: "",
  compared: [],
  params: {},
  view: "text",
  layer: 0,
  aggregate: "rollout",
  focus: 0,
  target: null,
  answer: null,
  step: null,
  max_new_tokens: 64,
  shade: "probability",
  threshold: 0.1,
  top_k: 0,
  unit: "tokens",
  special: true,
  colours: "blues",
  head: -1,
  tokens: [],
  reply: { state: "", offer: false, own: false, start: 0, text: "", tokens: [], problem: "" },
  model_info: {
    name: "",
    task: "",
    layers: 0,
    heads: 0,
    labels: [],
    prediction: null,
    targets: [],
    adds_up: [],
    limit: null,
  },
  catalogue: [],
  runs: {},
  status: { state: "computing", message: "", hint: "" },
}) as Readonly<Traits>;

export const TRAIT_NAMES = Object.keys(DEFAULTS) as (keyof Traits)[];
