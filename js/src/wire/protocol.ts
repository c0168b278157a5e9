/** Messages between browser and kernel. This file and mixwidget/protocol.py alone spell them. */

import type { Aggregate, Json } from "./types";

export const VERSION = 1;

export type What =
  | "layer"
  | "rollout"
  | "sum"
  | "rows"
  | "layer_scores"
  | "scores"
  | "overview"
  | "heads"
  | "head_stats"
  | "head_scores"
  | "head_sums"
  | "mixing";

export interface Want {
  run: string;
  what: What;
  layer?: number;
  of?: Aggregate;
  focus?: number;
}

export type Request =
  | { kind: "need"; id: string; v: number; wants: Want[] }
  | { kind: "cancel"; id: string; v: number; run?: string; request?: string }
  | ({ kind: "measure"; id: string; v: number } & Question)
  | { kind: "rerun"; id: string; v: number; method?: string }
  | { kind: "export"; id: string; v: number; format: string };

/** What is to be measured: runs name text, method and options; the one in front comes first. */
export interface Question {
  runs: Record<string, string>;
  target: Json;
  focus: number | null;
  /** As long as it takes; otherwise only what is quick is measured. */
  whole?: boolean;
}

export interface Spread {
  mean: number | null;
  low: number | null;
  high: number | null;
  /** Of each random order. */
  values?: number[];
}

/** What a test says of one method on one text. */
export interface Judged {
  level: "confirmed" | "partly" | "chance" | "unclear";
  headline: string;
  text: string;
  /** How many random orders it beats by each measure, of how many. */
  beats: Record<string, [number, number]>;
}

/** The parts of an answer to `measure`, as docs/architecture.md lists them. */
export interface StartPart {
  part: "start";
  methods: string[];
  target: string;
  probability: number;
  removable: number[];
  counts: number[];
  shares: number[];
  seeds: number;
  metrics: { id: string; title: string; better: "higher" | "lower" }[];
}
export interface CurvePart {
  part: "curve";
  method: string;
  order: number[];
  probabilities: number[];
  metrics: Record<string, number | null>;
  error?: undefined;
}
export interface RandomPart {
  part: "random";
  seeds: number;
  mean: number[];
  low: number[];
  high: number[];
  metrics: Record<string, Spread>;
}
export interface AgreementPart {
  part: "agreement";
  methods: string[];
  spearman: (number | null)[][];
  jaccard: (number | null)[][];
}
export interface VerdictPart {
  part: "verdict";
  text: string;
  methods: Record<string, string>;
  judged?: Record<string, Judged>;
}
export type FaithfulnessPart =
  | StartPart
  | CurvePart
  | { part: "curve"; method: string; error: string }
  | RandomPart
  | AgreementPart
  | { part: "budget"; seconds: number }
  | VerdictPart;

export interface ArrayMessage extends Want {
  kind: "array";
  id: string;
  seq: number;
  dtype: Dtype;
  shape: number[];
  scale: number;
}

export type Answer =
  | ArrayMessage
  | ({ kind: "faithfulness"; id: string } & FaithfulnessPart)
  | { kind: "file"; id: string; name: string; mime: string }
  | { kind: "done"; id: string; missing: Want[] }
  | { kind: "error"; id: string; message: string; hint: string }
  | { kind: "cancelled"; id: string };

export type Dtype = "f4" | "f2" | "u1";

/** Numbers with their shape; values are row-major. */
export interface Tensor {
  shape: number[];
  values: Float32Array;
}

const BYTES: Record<Dtype, number> = { f4: 4, f2: 2, u1: 1 };
const BY_LAYER: ReadonlySet<What> = new Set([
  "layer",
  "rollout",
  "sum",
  "layer_scores",
  "overview",
  "heads",
  "head_scores",
]);

export const need = (id: string, wants: Want[]): Request => ({
  kind: "need",
  id,
  v: VERSION,
  wants,
});

export const cancel = (id: string, run?: string): Request =>
  run === undefined ? { kind: "cancel", id, v: VERSION } : { kind: "cancel", id, v: VERSION, run };

/** Stop what another request has begun. */
export const cancelRequest = (id: string, request: string): Request => ({
  kind: "cancel",
  id,
  v: VERSION,
  request,
});

export const measure = (id: string, question: Question): Request => ({
  kind: "measure",
  id,
  v: VERSION,
  ...question,
});

export const rerun = (id: string, method?: string): Request =>
  method === undefined
    ? { kind: "rerun", id, v: VERSION }
    : { kind: "rerun", id, v: VERSION, method };

export const exportAs = (id: string, format: string): Request => ({
  kind: "export",
  id,
  v: VERSION,
  format,
});

/** The name an array goes by: only the fields that matter for what it holds. */
export function keyOf(want: Want): string {
  const layer = BY_LAYER.has(want.what) ? (want.layer ?? "") : "";
  const of = want.what === "rows" || want.what === "overview" ? (want.of ?? "") : "";
  const focus = want.what === "rows" ? (want.focus ?? "") : "";
  return `${want.run}|${want.what}|${layer}|${of}|${focus}`;
}

/** A message as it came, or null if it is none of ours (another version, another shape). */
export function readAnswer(content: unknown): Answer | null {
  if (typeof content !== "object" || content === null) return null;
  const message = content as { kind?: unknown; id?: unknown; v?: unknown };
  if (message.v !== undefined && message.v !== VERSION) return null;
  switch (message.kind) {
    case "array":
    case "faithfulness":
    case "file":
    case "done":
    case "error":
    case "cancelled":
      return { ...message, id: String(message.id ?? "") } as Answer;
    default:
      return null;
  }
}

export type Bytes = ArrayBuffer | ArrayBufferView;

/** Bytes with their own offset and length: a buffer may be a window into a larger one. */
export function bytesOf(buffer: Bytes): Uint8Array {
  return ArrayBuffer.isView(buffer)
    ? new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength)
    : new Uint8Array(buffer);
}

export function decode(message: ArrayMessage, buffer: Bytes): Tensor {
  const size = message.shape.reduce((product, length) => product * length, 1);
  const bytes = bytesOf(buffer);
  const width = BYTES[message.dtype];
  if (width === undefined) throw new Error(`The array has an unknown type, ${message.dtype}.`);
  if (bytes.byteLength !== size * width) {
    throw new Error(
      `The array ${keyOf(message)} has ${bytes.byteLength} bytes for ${size} values.`,
    );
  }
  const values = new Float32Array(size);
  const scale = message.scale ?? 1;
  if (message.dtype === "f4") readFloats(bytes, values);
  else if (message.dtype === "f2") readHalves(bytes, values);
  else values.set(bytes);
  if (scale !== 1) for (let i = 0; i < size; i++) values[i] = (values[i] as number) * scale;
  return { shape: [...message.shape], values };
}

/** A DataView reads at any offset and in little-endian order whatever the machine. */
function readFloats(bytes: Uint8Array, into: Float32Array): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let i = 0; i < into.length; i++) into[i] = view.getFloat32(4 * i, true);
}

function readHalves(bytes: Uint8Array, into: Float32Array): void {
  for (let i = 0; i < into.length; i++) {
    const half = (bytes[2 * i] as number) | ((bytes[2 * i + 1] as number) << 8);
    const exponent = (half >> 10) & 0x1f;
    const fraction = half & 0x3ff;
    const sign = half & 0x8000 ? -1 : 1;
    if (exponent === 0) into[i] = sign * fraction * 2 ** -24;
    else if (exponent === 31) into[i] = fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY;
    else into[i] = sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  }
}
