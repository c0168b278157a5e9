/** What a picture needs to know, derived from traits and arrays. Built anew for every frame. */

import type { Host } from "../wire/host";
import type { Measured } from "../wire/measures";
import type { Tensor, What } from "../wire/protocol";
import type { Store } from "../wire/store";
import {
  type Aggregate,
  DEFAULTS,
  type MethodEntry,
  type RunInfo,
  type Token,
  TRAIT_NAMES,
  type Traits,
} from "../wire/types";
import { answersIn, labelOf, WHOLE } from "./answer";
import { type Layout, layOut, mergeColumns, mergeMap, type Shares } from "./units";

/** So many methods are shown at a time. */
const MOST_SHOWN = 4;

/** Up to here the kernel pushes every map by itself; longer texts are asked for. */
export const PUSHED_TOKENS = 192;

export interface Grid {
  rows: number;
  cols: number;
  values: Float32Array;
  /** A reduced picture of a larger map, shown until the full one arrives. */
  coarse: boolean;
}

export interface State {
  readonly traits: Readonly<Traits>;
  readonly live: boolean;
  readonly tokens: Token[];
  readonly n: number;
  readonly layers: number;
  /** `layer`, within bounds. */
  readonly layer: number;
  readonly layout: Layout;
  /** The method in front; undefined before the catalogue has come. */
  readonly method: MethodEntry | undefined;
  entry(id: string): MethodEntry | undefined;
  run(id: string): RunInfo | undefined;
  /** The method in front and those ticked, in that order, at most four. */
  readonly compared: MethodEntry[];
  /** Those that are ticked too, but are one too many. */
  readonly leftOut: MethodEntry[];
  /** Column labels, row labels, the focus in words. */
  label(unit: number): string;
  readonly focusLabel: string;
  readonly targetLabel: string;
  /** Of what is explained, if it has one. */
  readonly probability: number | null;
  /** The token at which the answer is read. */
  readonly answer: number;
  /** Another row than the answer's is looked at. */
  readonly away: boolean;
  /** There is an answer to look at, or one could be written. */
  readonly answers: boolean;
  /** A whole answer is explained: the rows that predict it are read together. */
  readonly whole: boolean;
  /** Tokens whose rows are read, of maps. */
  readonly read: number[];
  /** Scores of shown units for the focus, as the layer and aggregate say. */
  scores(id: string, layer?: number, aggregate?: Aggregate): Shares | undefined;
  map(id: string, aggregate: Aggregate, layer: number): Grid | undefined;
  /** The small picture of a map, or the map itself where it is there. */
  thumbnail(id: string, aggregate: Aggregate, layer: number): Grid | undefined;
  /** Whether sums have thumbnails: of long texts there are reduced pictures, but none of sums. */
  readonly smallSums: boolean;
  /** Maps of single layers by token, as far as they are there; `undefined` where not. */
  tokenMaps(id: string, upTo: number): (Float32Array | undefined)[];
  shared(what: "heads" | "head_stats" | "mixing", layer?: number): Tensor | undefined;
  /** What heads score by a method: all of them summed over tokens, or a layer's by token. */
  byHead(id: string, layer?: number): Tensor | undefined;
  doneLayers(id: string): Set<number>;
  /** The faithfulness of the compared methods for the answer's row; asks for it, once their runs
   * are known. */
  measured(): Measured | undefined;
  /** The highest layer up to the chosen one that can be shown already: work may be going on. */
  reached(id: string): number;
}

export function derive(host: Host, store: Store): State {
  const traits = snapshot(host);
  const tokens = traits.tokens;
  const n = tokens.length;
  const layers = Math.max(traits.model_info.layers, 0);
  const layer = Math.min(Math.max(traits.layer, 0), Math.max(layers - 1, 0));
  const focusToken = traits.focus >= 0 && traits.focus < n ? traits.focus : 0;
  const layout = layOut(tokens, traits.unit, traits.special, focusToken);
  const byId = new Map(traits.catalogue.map((entry) => [entry.id, entry]));
  const short = n <= PUSHED_TOKENS;

  const entry = (id: string) => byId.get(id);
  const run = (id: string): RunInfo | undefined => traits.runs[id];

  function doneLayers(id: string): Set<number> {
    const info = run(id);
    if (!info) return new Set();
    const done = info.done_layers ?? [];
    if (info.state === "ready") return new Set(Array.from({ length: layers }, (_, l) => l));
    return new Set(typeof done === "number" ? Array.from({ length: done }, (_, l) => l) : done);
  }

  /** Whether the kernel can have it: combined maps need every layer below. */
  function exists(id: string, aggregate: Aggregate, at: number): boolean {
    const done = doneLayers(id);
    if (aggregate === "layer") return done.has(at);
    for (let l = 0; l <= at; l++) if (!done.has(l)) return false;
    return true;
  }

  function fetch(
    id: string,
    what: What,
    more: { layer?: number; of?: Aggregate; focus?: number },
    there: boolean,
    pushed: boolean,
  ): Tensor | undefined {
    const info = run(id);
    if (!info?.run) return undefined;
    const want = { run: info.run, what, ...more };
    return there ? store.need(want, pushed && info.state !== "ready") : store.get(want);
  }

  function tokenMap(id: string, aggregate: Aggregate, at: number): Tensor | undefined {
    if (entry(id)?.yields !== "maps") return undefined;
    const info = run(id);
    if (!info?.run) return undefined;
    if (aggregate === "sum") {
      const local = localSum(info.run, at);
      if (local) return local;
    }
    const found = fetch(id, aggregate, { layer: at }, exists(id, aggregate, at), short);
    return found && found.values.length === n * n ? found : undefined;
  }

  /** The sum up to a layer, where all its maps are at hand. */
  function localSum(runId: string, at: number): Tensor | undefined {
    const kept = store.get({ run: runId, what: "sum", layer: at });
    if (kept) return kept;
    const maps: Float32Array[] = [];
    for (let l = 0; l <= at; l++) {
      const map = store.get({ run: runId, what: "layer", layer: l });
      if (map?.values.length !== n * n) return undefined;
      maps.push(map.values);
    }
    const values = new Float32Array(n * n);
    for (const map of maps)
      for (let i = 0; i < values.length; i++)
        values[i] = (values[i] as number) + (map[i] as number);
    const tensor = { shape: [n, n], values };
    store.put({ run: runId, what: "sum", layer: at }, tensor);
    return tensor;
  }

  /** The row of one token, from whatever holds it. */
  function tokenRow(id: string, aggregate: Aggregate, at: number, token: number) {
    const info = run(id);
    if (!info?.run) return undefined;
    const map = store.get({ run: info.run, what: aggregate, layer: at });
    if (map?.values.length === n * n) return map.values.subarray(token * n, (token + 1) * n);
    const want = { of: aggregate, focus: token };
    const there = exists(id, aggregate, at);
    const rows = short
      ? store.get({ run: info.run, what: "rows", ...want })
      : fetch(id, "rows", want, there, false);
    if (rows && rows.values.length >= (at + 1) * n)
      return rows.values.subarray(at * n, (at + 1) * n);
    if (!short) return undefined;
    const full = tokenMap(id, aggregate, at);
    return full?.values.subarray(token * n, (token + 1) * n);
  }

  function layerScores(id: string, at: number): Float32Array | undefined {
    const done = doneLayers(id).has(at);
    const found = fetch(id, "layer_scores", { layer: at }, done, true);
    return found?.values.length === n ? found.values : undefined;
  }

  function tokenScores(id: string, aggregate: Aggregate, at: number): Float32Array | undefined {
    const final = () => fetch(id, "scores", {}, run(id)?.state === "ready", true)?.values;
    const yields = entry(id)?.yields;
    if (yields === "scores") return final();
    if (aggregate === "layer") return layerScores(id, at);
    if (entry(id)?.passed) return final();
    if (at === layers - 1) {
      const own = final();
      if (own) return own;
    }
    const total = new Float32Array(n);
    for (let l = 0; l <= at; l++) {
      const part = layerScores(id, l);
      if (!part) return undefined;
      for (let j = 0; j < n; j++) total[j] = (total[j] as number) + (part[j] as number);
    }
    return total;
  }

  function scores(
    id: string,
    at = layer,
    aggregate: Aggregate = traits.aggregate,
  ): Shares | undefined {
    const method = entry(id);
    if (!method || n === 0) return undefined;
    if (method.yields !== "maps") {
      const values = tokenScores(id, aggregate, at);
      return values?.length === n ? mergeColumns(values, layout, method.signed) : undefined;
    }
    // Of a long text the kernel sends their mean in the place of the answer's row.
    const members = whole && !away && !short ? [answer] : read;
    const mean = new Float32Array(n);
    for (const token of members) {
      const row = tokenRow(id, aggregate, at, token);
      if (!row) return undefined;
      for (let j = 0; j < n; j++)
        mean[j] = (mean[j] as number) + (row[j] as number) / members.length;
    }
    return mergeColumns(mean, layout, method.signed);
  }

  function merged(id: string, tensor: Tensor): Grid {
    const values = mergeMap(tensor.values, n, layout, entry(id)?.signed ?? false);
    return { rows: layout.rows.length, cols: layout.cols.length, values, coarse: false };
  }

  function overview(id: string, aggregate: Aggregate, at: number): Grid | undefined {
    if (short || aggregate === "sum") return undefined;
    const more = { layer: at, of: aggregate };
    const tensor = fetch(id, "overview", more, exists(id, aggregate, at), true);
    const [rows, cols] = tensor?.shape ?? [];
    return tensor && rows && cols ? { rows, cols, values: tensor.values, coarse: true } : undefined;
  }

  const { prediction, targets } = traits.model_info;
  const target =
    traits.target === null
      ? prediction
      : targets.find((t) => JSON.stringify(t.value) === JSON.stringify(traits.target));
  const whole = traits.model_info.whole === true;
  const named = target?.label ?? (traits.target === null ? "" : labelOf(traits));
  const targetLabel = whole ? WHOLE : named;
  const answer = Math.min(traits.model_info.answer ?? focusToken, Math.max(n - 1, 0));
  const away = layout.unitOf[answer] !== layout.focus && n > 0;
  const rows = traits.reply.tokens.map((_, t) => traits.reply.start + t - 1);
  const read = whole && !away ? rows : (layout.units[layout.focus]?.tokens ?? []);
  const subject = JSON.stringify([
    traits.text,
    traits.text_pair,
    traits.target,
    traits.params,
    traits.step,
    traits.reply.text,
  ]);
  const known = store.atAnswer(subject);
  if (!away) for (const [id, info] of Object.entries(traits.runs)) known.set(id, info.run);
  const label = (unit: number) => layout.units[unit]?.text ?? "";

  const ticked = [...new Set([traits.method, ...traits.compared])]
    .map(entry)
    .filter((found) => found !== undefined);
  const compared = ticked.slice(0, MOST_SHOWN);

  function measured(): Measured | undefined {
    if (!prediction) return undefined;
    const runs = compared.map(({ id }) => {
      const now = run(id)?.run ?? "";
      return [id, away ? (known.get(id) ?? now) : now] as const;
    });
    if (runs.length === 0 || runs.some(([, name]) => !name)) return undefined;
    const question = {
      runs: Object.fromEntries(runs),
      target: traits.target ?? null,
      focus: answer,
    };
    // A run that failed or was stopped may come out otherwise when it is computed again.
    const stages = compared.map(({ id }) => run(id)?.state ?? "");
    const open = stages.some((stage) => stage === "computing" || stage === "waiting");
    // Looking at another row may have changed the runs: what is known of the answer's is kept.
    const same = runs.every(([id, name]) => run(id)?.run === name);
    return store.measure(
      question,
      stages.map((stage) => (/error|cancelled/.test(stage) ? stage : "")).join(),
      same && !open,
    );
  }

  return {
    traits,
    live: host.live,
    tokens,
    n,
    layers,
    layer,
    layout,
    method: entry(traits.method),
    entry,
    run,
    compared,
    leftOut: ticked.slice(MOST_SHOWN),
    measured,
    label,
    focusLabel: whole && !away ? WHOLE : label(layout.focus),
    targetLabel,
    probability: whole ? null : (target?.probability ?? null),
    answer,
    away,
    answers: answersIn(traits),
    whole,
    read,
    scores,
    map(id, aggregate, at) {
      const tensor = tokenMap(id, aggregate, at);
      return tensor ? merged(id, tensor) : overview(id, aggregate, at);
    },
    thumbnail(id, aggregate, at) {
      if (!short) return overview(id, aggregate, at);
      const tensor = tokenMap(id, aggregate, at);
      return tensor && merged(id, tensor);
    },
    smallSums: short,
    tokenMaps: (id, upTo) =>
      Array.from({ length: upTo + 1 }, (_, l) => tokenMap(id, "layer", l)?.values),
    shared(what, at) {
      const want = at === undefined ? { run: "", what } : { run: "", what, layer: at };
      return n > 0 ? store.need(want) : undefined;
    },
    byHead(id, at) {
      const info = run(id);
      if (info?.state !== "ready") return undefined;
      const what = at === undefined ? "head_sums" : "head_scores";
      return store.need(
        at === undefined ? { run: info.run, what } : { run: info.run, what, layer: at },
      );
    },
    doneLayers,
    reached(id) {
      if (run(id)?.state === "ready") return layer;
      for (let l = layer; l >= 0; l--) if (exists(id, traits.aggregate, l)) return l;
      return layer;
    },
  };
}

function snapshot(host: Host): Traits {
  const traits = Object.fromEntries(
    TRAIT_NAMES.map((name) => [name, host.get(name) ?? DEFAULTS[name]]),
  );
  traits.model_info = { ...DEFAULTS.model_info, ...host.get("model_info") };
  traits.status = { ...DEFAULTS.status, ...host.get("status") };
  traits.reply = { ...DEFAULTS.reply, ...host.get("reply") };
  return traits as unknown as Traits;
}
