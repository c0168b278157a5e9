/** Sentences that say what a picture shows. */

import type { MethodEntry, RunInfo, ViewName } from "../wire/types";
import { percent, plural } from "./format";
import type { State } from "./state";

export const SIGNED = "orange speaks against, blue speaks for";
export const quoted = (text: string) => `“${text}”`;

const upTo = (layer: number) => `layers 0 to ${layer}`;

/** What the scores of a method mean at the present layer and aggregate. */
export function meaning(
  state: State,
  method: MethodEntry,
  layer = state.layer,
  aggregate = state.traits.aggregate,
): string {
  const focus = quoted(state.focusLabel);
  const target = state.targetLabel ? quoted(state.targetLabel) : "the prediction";
  if (method.yields === "maps") {
    const weighed = method.class_specific ? `, as far as it matters for ${target}` : "";
    // One layer is neither followed nor added up.
    if (aggregate === "layer" || layer === 0) {
      const alone = aggregate === "layer" ? " alone" : "";
      const from = layer === 0 ? "the input" : `the tokens that layer ${layer - 1} put out`;
      return `What went into ${focus} in layer ${layer}${alone}, from ${from}${weighed}.`;
    }
    if (aggregate === "rollout") {
      return `What went into ${focus} at layer ${layer}, from the input: ${upTo(layer)} followed one after the other${weighed}.`;
    }
    return `What went into ${focus} in ${upTo(layer)}, each layer's own share added up${weighed}.`;
  }
  const verb = method.signed ? "speaks for or against" : "counts for";
  const object = method.class_specific ? target : focus;
  if (method.yields === "scores") {
    return `How much each input token ${verb} ${object}: one score per token, no layers.`;
  }
  if (aggregate === "layer")
    return `How much each token ${verb} ${object} at layer ${layer} alone.`;
  const how = layer === 0 ? "at layer 0" : `${upTo(layer)} added up`;
  return `How much each token ${verb} ${object}, ${how}.`;
}

/** The sentence over a picture. */
export function captionOf(
  state: State,
  method: MethodEntry,
  view: ViewName,
  layer: number,
): string {
  const said = meaning(state, method, layer);
  if (method.yields !== "maps") return said;
  const focus = quoted(state.focusLabel);
  if (view === "map") {
    const all = said.replace(`into ${focus}`, "into each token");
    const rows =
      state.whole && !state.away
        ? `${focus} is the mean of the rows that predict its tokens`
        : `the outlined row is ${focus}`;
    return `${all} One row per token; ${rows}.`;
  }
  if (view !== "layers") return said;
  if (state.traits.aggregate === "layer") return `What went into ${focus} in each layer alone.`;
  const how = state.traits.aggregate === "rollout" ? "from the input" : "layers added up";
  return `What went into ${focus} up to each layer, ${how}; the outlined row is layer ${layer}.`;
}

/** What was done to the numbers on the way to the picture. */
export function treatment(state: State, method: MethodEntry, hidden: number): string[] {
  const notes: string[] = [];
  if (state.traits.unit === "words" && state.layout.units.length < state.n) {
    notes.push(
      method.yields === "maps"
        ? "Subwords are merged to words: what they give is added, what they take is averaged."
        : "Subwords are merged to words by adding their scores.",
    );
  }
  if (!state.traits.special && state.layout.cols.length < state.layout.units.length) {
    notes.push(
      method.signed
        ? "Special tokens are hidden; signed scores of the others are left as they are."
        : `Special tokens are hidden${hidden > 0.0005 ? ` (they hold ${percent(hidden)})` : ""}; the rest is scaled up to the same total.`,
    );
  }
  return notes;
}

const listed = (names: string[]) =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;

/** Which ticked methods are not shown; "" if all are. */
export function leftOutWords({ compared, leftOut }: State): string {
  if (leftOut.length === 0) return "";
  const most = ["", "One", "Two", "Three", "Four"][compared.length] ?? String(compared.length);
  const is = leftOut.length === 1 ? "is" : "are";
  return `${most} are shown at a time; ${listed(leftOut.map((one) => one.title))} ${is} left out.`;
}

/** Which of the methods cannot be drawn as maps; "" if all can. */
export function withoutMapsWords(methods: readonly MethodEntry[]): string {
  const without = methods.filter((method) => method.yields !== "maps");
  if (without.length === 0) return "";
  const one = without.length === 1;
  const names = listed(without.map((method) => method.title));
  return `${names} ${one ? "has" : "have"} no maps, so ${one ? "it is" : "they are"} not drawn here.`;
}

/** How to get methods beside the one in front, or why there are none. */
export function othersWords(state: State, purpose: string): string {
  const { live, traits, method } = state;
  const others = traits.catalogue.some((entry) => entry.available && entry.id !== method?.id);
  if (live || others) return `Add one to three more methods by “+ compare” to ${purpose}.`;
  return `This page holds only ${method?.title ?? "one method"}; any other needs the notebook.`;
}

/** The tokens that numbers over what is shown go by. */
export function shownTokens({ layout, traits }: State): string {
  const { cols, units } = layout;
  const kind = traits.unit === "words" ? "word" : "token";
  const count = cols.length;
  if (count < units.length)
    return `the ${plural(count, `ordinary ${kind}`)}, special tokens hidden`;
  const special = units.some((unit) => unit.special);
  return `all ${plural(count, `shown ${kind}`)}${special ? ", special tokens included" : ""}`;
}

/** Why there is nothing to see yet, or at all. */
export function lacking(state: State, id: string): string {
  const run = state.run(id);
  const title = state.entry(id)?.title ?? id;
  if (!state.live) {
    if (!run && state.entry(id)?.available)
      return `${title} was computed for another focus token; for ${quoted(state.focusLabel)} it needs the notebook.`;
    return `This is not part of the saved page: ${title} needs the notebook here.`;
  }
  if (!run) {
    const entry = state.entry(id);
    if (entry && !entry.available) return `${title} is not available here: ${entry.reason}`;
    const { state: now, message } = state.traits.status;
    if (now === "error" && message) return `${title} was not computed: ${message}`;
    return `${title} has not been computed yet.`;
  }
  switch (run.state) {
    case "waiting":
      return `${title} waits for its turn.`;
    case "computing":
      return run.message || `${title} is being computed.`;
    case "cancelled":
      return `${title} was stopped.`;
    case "error":
      return run.message || `${title} could not be computed.`;
    default:
      return `${title} is on its way.`;
  }
}

/** The decomposition's check against the model. */
export function addsUp(errors: readonly number[]): { text: string; good: boolean } | null {
  if (errors.length === 0) return null;
  const worst = Math.max(...errors);
  const size = worst === 0 ? "exactly" : scientific(worst);
  if (worst <= 1e-2) {
    return { text: `parts add up to the model’s own numbers, ${size}`, good: true };
  }
  const bad = errors.flatMap((error, layer) => (error > 1e-2 ? [layer] : []));
  return {
    text: `The parts do not add up to the model’s own numbers in ${plural(bad.length, "layer")} (${bad.join(", ")}): off by up to ${scientific(worst)}. Do not trust maps built on ${bad.length === 1 ? "it" : "them"}.`,
    good: false,
  };
}

/** The check of a method that shares the prediction out: its parts make the prediction. */
export function balanced({ error, unmet }: NonNullable<RunInfo["balance"]>): {
  text: string;
  good: boolean;
} {
  const size = error === 0 ? "exactly" : scientific(error);
  if (error <= 1e-3)
    return { text: `parts, biases and softmax add up to the prediction, ${size}`, good: true };
  const why = unmet ? `there is no rule for “${unmet}”, which keeps a share` : "a rule is missing";
  return {
    text: `Parts, biases and softmax miss the prediction by ${scientific(error)}: ${why}. Do not trust these scores.`,
    good: false,
  };
}

function scientific(value: number): string {
  if (value >= 0.01) return percent(value);
  const [digits, power] = value.toExponential(0).split("e");
  return `${digits} × 10${superscript(Number(power))}`;
}

const superscript = (power: number) =>
  [...String(power)].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(c)])).join("");
