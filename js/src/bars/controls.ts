/** Layer, aggregate, focus, target and how things are shown. Every control is a trait. */

import type { Context, View } from "../kit/context";
import { h, setAttributes, setText, show } from "../kit/dom";
import { percent, shorten } from "../state/format";
import type { State } from "../state/state";
import { AGGREGATE_NAMES, NEEDS_KERNEL } from "../state/words";
import type { Aggregate, Json, MethodEntry, ScaleName, ViewName } from "../wire/types";

const STEP_MS = 800;
const SUM: [string, string] = ["sum", AGGREGATE_NAMES.sum];
const SCALES: ScaleName[] = ["blues", "viridis", "cividis", "greys"];
/** Views in which a control changes nothing: it is left out there. */
const NO_LAYER: ReadonlySet<ViewName> = new Set(["faithfulness"]);
const NO_AGGREGATE: ReadonlySet<ViewName> = new Set(["faithfulness", "heads", "graph"]);
const NO_FOCUS: ReadonlySet<ViewName> = new Set(["faithfulness", "heads", "multiples"]);
const NO_UNITS: ReadonlySet<ViewName> = new Set(["faithfulness", "heads"]);
const NO_TARGET: ReadonlySet<ViewName> = new Set(["heads"]);
/** Tasks with one prediction for the whole text, whatever token is in focus. */
const ONE_PREDICTION: ReadonlySet<string> = new Set(["classification", "question_answering"]);

function option(value: string, text: string): HTMLOptionElement {
  const made = h("option", { value }, text);
  return made;
}

/** Options are rebuilt only when they differ: an open menu must not flicker. */
function setOptions(select: HTMLSelectElement, options: [string, string][]): void {
  const signature = JSON.stringify(options);
  if (select.dataset.options === signature) return;
  select.dataset.options = signature;
  select.replaceChildren(...options.map(([value, text]) => option(value, text)));
}

function field(label: string, ...content: (Node | string)[]): HTMLElement {
  return h(
    "label",
    { class: "mix-field" },
    h("span", { class: "mix-field-name" }, label),
    ...content,
  );
}

export function controls(element: HTMLElement, context: Context): View {
  const { listen } = context;
  let state: State | undefined;

  const slider = h("input", {
    type: "range",
    min: 0,
    step: 1,
    "data-part": "layer-slider",
    "aria-label": "Layer",
  });
  const layerText = h("output", { class: "mix-layer" });
  const play = h("button", { type: "button", class: "mix-button mix-play", "data-part": "play" });
  const layerField = h(
    "div",
    { class: "mix-field mix-layer-field" },
    h("span", { class: "mix-field-name" }, "Layer"),
    play,
    slider,
    layerText,
  );
  const aggregate = h("select", {
    "data-part": "aggregate",
    "aria-label": "How layers are combined",
  });
  const focus = h("select", { "data-part": "focus-select", "aria-label": "Focus token" });
  const target = h("select", { "data-part": "target-select", "aria-label": "Target class" });
  const unit = h("select", { "data-part": "unit", "aria-label": "Subwords or words" });
  setOptions(unit, [
    ["tokens", "subwords"],
    ["words", "words"],
  ]);
  const special = h("input", { type: "checkbox", "data-part": "special" });
  const colours = h("select", { "data-part": "colours", "aria-label": "Colour scale" });
  setOptions(
    colours,
    SCALES.map((name) => [name, name]),
  );
  const threshold = h("input", {
    type: "range",
    min: 0,
    max: 1,
    step: 0.01,
    "data-part": "threshold",
    "aria-label": "Hide edges weaker than this share of the strongest of their layer",
  });
  const thresholdText = h("output", {});
  const topK = h("select", { "data-part": "top-k", "aria-label": "Edges per token" });
  setOptions(topK, [
    ["0", "by strength"],
    ...[1, 2, 3, 5, 10].map((k): [string, string] => [String(k), `${k} per token`]),
  ]);

  const aggregateField = field("Show", aggregate);
  const focusField = field("Focus", focus);
  const targetField = field("Target", target);
  const colourField = field("Colours", colours);
  const edgeField = field("Edges", topK);
  const thresholdField = field("Hide below", threshold, thresholdText);
  const unitField = field("Units", unit);
  const specialField = h("label", { class: "mix-field mix-check" }, special, "special tokens");
  element.append(
    layerField,
    aggregateField,
    focusField,
    targetField,
    edgeField,
    thresholdField,
    unitField,
    specialField,
    colourField,
  );

  listen(slider, "input", () => {
    stop();
    context.set({ layer: Number(slider.value) });
  });
  listen(aggregate, "change", () => context.set({ aggregate: aggregate.value as Aggregate }));
  listen(focus, "change", () => context.set({ focus: Number(focus.value) }));
  listen(target, "change", () => context.set({ target: JSON.parse(target.value) as Json }));
  listen(unit, "change", () => context.set({ unit: unit.value as "tokens" | "words" }));
  listen(special, "change", () => context.set({ special: special.checked }));
  listen(colours, "change", () => context.set({ colours: colours.value as ScaleName }));
  listen(threshold, "input", () => context.set({ threshold: Number(threshold.value) }));
  listen(topK, "change", () => context.set({ top_k: Number(topK.value) }));

  let timer: ReturnType<typeof setInterval> | undefined;
  context.signal.addEventListener("abort", () => clearInterval(timer));
  function stop(): void {
    clearInterval(timer);
    timer = undefined;
    showPlaying();
  }
  function showPlaying(): void {
    const playing = timer !== undefined;
    setText(play, playing ? "❚❚" : "▶");
    setAttributes(play, {
      "aria-label": playing ? "Pause" : "Play through the layers",
      "aria-pressed": String(playing),
    });
  }
  listen(play, "click", () => {
    if (timer !== undefined) return stop();
    if (!state) return;
    if (state.layer >= state.layers - 1) context.set({ layer: 0 });
    timer = setInterval(() => {
      if (!state || state.layer >= state.layers - 1) stop();
      else context.set({ layer: state.layer + 1 });
    }, STEP_MS);
    showPlaying();
  });
  showPlaying();

  return {
    update(next) {
      state = next;
      const { traits, layers, layer } = next;
      const view = traits.view;
      const shown = shownMethods(next, context.root);
      const why = idleReasons(next, shown, context.root);
      setAttributes(slider, { max: Math.max(layers - 1, 0) });
      if (slider.value !== String(layer)) slider.value = String(layer);
      const name = traits.model_info.layer_names?.[layer];
      const called = name ? `: ${name}` : "";
      slider.setAttribute("aria-valuetext", `layer ${layer} of 0 to ${layers - 1}${called}`);
      setText(layerText, layers > 0 ? `${layer} / ${layers - 1}${called}` : "–");
      const layered = shown.filter((one) => one.yields !== "scores");
      const added = layered.length > 0 && layered.every((one) => one.yields === "layer_scores");
      setOptions(aggregate, [
        ["layer", AGGREGATE_NAMES.layer],
        ["rollout", added ? "added up to this layer" : AGGREGATE_NAMES.rollout],
        ...(added && traits.aggregate !== "sum" ? [] : [SUM]),
      ]);
      if (aggregate.value !== traits.aggregate) aggregate.value = traits.aggregate;
      show(layerField, !NO_LAYER.has(view));
      show(aggregateField, !NO_AGGREGATE.has(view));
      show(focusField, !NO_FOCUS.has(view));
      show(unitField, !NO_UNITS.has(view));
      show(specialField, !NO_UNITS.has(view));
      drawFocus(focus, next);
      drawTarget(target, next);
      const targets = traits.model_info.targets.length > 0 || traits.target !== null;
      show(targetField, targets && !NO_TARGET.has(view));
      if (unit.value !== traits.unit) unit.value = traits.unit;
      if (special.checked !== traits.special) special.checked = traits.special;
      if (colours.value !== traits.colours) colours.value = traits.colours;
      const graph = view === "graph";
      show(edgeField, graph);
      show(thresholdField, graph && traits.top_k === 0);
      if (Number(threshold.value) !== traits.threshold) threshold.value = String(traits.threshold);
      setText(thresholdText, percent(traits.threshold));
      drawTopK(topK, traits.top_k);
      enable(layerField, [slider, play], why.layer);
      enable(aggregateField, [aggregate], why.aggregate);
      enable(focusField, [focus], why.focus);
      enable(targetField, [target], why.target);
      enable(edgeField, [topK], why.nothing);
      enable(thresholdField, [threshold], why.nothing);
      enable(unitField, [unit], why.unit);
      enable(specialField, [special], why.special);
      enable(colourField, [colours], why.colours);
    },
  };
}

/** A control that would change nothing is off, and says why. */
function enable(
  holder: HTMLElement,
  controls: (HTMLInputElement | HTMLSelectElement | HTMLButtonElement)[],
  reason: string | null,
): void {
  setAttributes(holder, { title: reason, "data-idle": reason !== null });
  for (const control of controls) {
    control.disabled = reason !== null;
    setAttributes(control, { title: reason });
  }
}

/** The methods that the open view draws: none where it has nothing to draw of them. */
function shownMethods(state: State, root: HTMLElement): MethodEntry[] {
  const { compared, method, traits } = state;
  const front = method ? [method] : [];
  switch (traits.view) {
    case "compare":
    case "faithfulness":
      return compared;
    case "multiples":
      return root.dataset.multiples === "methods"
        ? compared
        : front.filter((one) => one.yields !== "scores");
    case "layers":
      return front.filter((one) => one.yields !== "scores");
    case "map":
    case "graph":
      return front.filter((one) => one.yields === "maps");
    default:
      return front;
  }
}

type Reason = string | null;

interface Idle {
  nothing: Reason;
  layer: Reason;
  aggregate: Reason;
  focus: Reason;
  target: Reason;
  unit: Reason;
  special: Reason;
  colours: Reason;
}

/** Why a control would change nothing in the open view; null where it does something. */
function idleReasons(state: State, shown: MethodEntry[], root: HTMLElement): Idle {
  const { traits, method, tokens, live } = state;
  const view = traits.view;
  const heads = view === "heads";
  const only = shown.length === 1 ? shown[0]?.title : undefined;
  const nothing =
    method && shown.length === 0
      ? `${method.title} cannot be drawn here, so there is nothing to change.`
      : null;
  const flat =
    shown.length > 0 && shown.every((one) => one.yields === "scores")
      ? `${only ?? "Each of these methods"} gives one score per token: there are no layers.`
      : null;
  const layers = nothing ?? (heads ? null : flat);
  const whose = only ? `The scores of ${only}` : "The scores of these methods";
  const fixed = (acts: boolean, what: string) =>
    nothing ?? (shown.length === 0 || acts ? null : `${whose} do not depend on the ${what}.`);
  const joined = tokens.some(
    ({ word, segment }, i) =>
      word !== null && word === tokens[i - 1]?.word && segment === tokens[i - 1]?.segment,
  );
  const special = tokens.some((token) => token.special) && tokens.some((token) => !token.special);
  const classSpecific = shown.some((one) => one.class_specific);
  return {
    nothing,
    layer: layers ?? (state.layers < 2 ? "There is only one layer to show." : null),
    aggregate: layers,
    focus: fixed(
      shown.some((one) => followsFocus(state, one)),
      "focus token",
    ),
    // What is measured as faithful is faithful to the target.
    target: live ? fixed(classSpecific || view === "faithfulness", "target") : NEEDS_KERNEL,
    unit: nothing ?? (joined ? null : "No word of this text is split into subwords."),
    special:
      nothing ?? (special ? null : "Special tokens cannot be told from others in this text."),
    colours: nothing ?? colourReason(view, shown, root),
  };
}

/** Whether the scores of a method are others for another focus token. */
function followsFocus({ traits }: State, method: MethodEntry): boolean {
  if (method.yields === "maps" || !method.any_focus) return true;
  if (traits.params[method.id]?.zero_focus) return true;
  return method.class_specific && !ONE_PREDICTION.has(traits.model_info.task);
}

/** Two signs, lines and edges have colours of their own. */
function colourReason(view: ViewName, shown: MethodEntry[], root: HTMLElement): Reason {
  if (view === "heads") return null;
  if (view === "faithfulness")
    return shown.length > 1 ? null : "The curves have colours of their own.";
  if (view === "graph")
    return root.hasAttribute("data-traced")
      ? null
      : "Edges have one colour; the scale is for the tokens of a trace.";
  return shown.length > 0 && shown.every((one) => one.signed)
    ? "Signed scores have colours of their own: orange speaks against, blue speaks for."
    : null;
}

function drawFocus(select: HTMLSelectElement, state: State): void {
  setOptions(
    select,
    state.layout.rows.map((unit) => {
      const { index, text } = state.layout.units[unit] as { index: number; text: string };
      return [String(index), `${index}: ${shorten(text, 18)}`];
    }),
  );
  const value = String(state.layout.units[state.layout.focus]?.index ?? 0);
  if (select.value !== value) select.value = value;
}

function drawTarget(select: HTMLSelectElement, state: State): void {
  const { targets, prediction } = state.traits.model_info;
  const options: [string, string][] = [
    ["null", prediction ? `predicted: ${shorten(prediction.label, 24)}` : "predicted"],
  ];
  for (const choice of targets) {
    const share =
      choice.probability === null || choice.probability === undefined
        ? ""
        : ` (${percent(choice.probability)})`;
    options.push([JSON.stringify(choice.value), `${shorten(choice.label, 24)}${share}`]);
  }
  const value = JSON.stringify(state.traits.target);
  if (!options.some(([known]) => known === value)) options.push([value, String(state.targetLabel)]);
  setOptions(select, options);
  if (select.value !== value) select.value = value;
}

function drawTopK(select: HTMLSelectElement, value: number): void {
  const text = String(value);
  if (![...select.options].some((known) => known.value === text)) {
    select.append(option(text, `${value} per token`));
  }
  if (select.value !== text) select.value = text;
}
