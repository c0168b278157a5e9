/** Layer, aggregate, focus, target and how things are shown. Every control is a trait. */

import type { Context, View } from "./context";
import { h, setAttributes, setText, show } from "./dom";
import { percent, shorten } from "./format";
import type { State } from "./state";
import type { Aggregate, Json, ScaleName, ViewName } from "./types";
import { AGGREGATE_NAMES, NEEDS_KERNEL } from "./words";

const STEP_MS = 800;
const SUM: [string, string] = ["sum", AGGREGATE_NAMES.sum];
const SCALES: ScaleName[] = ["blues", "viridis", "cividis", "greys"];
/** Views in which a control changes nothing: it is left out there. */
const NO_LAYER: ReadonlySet<ViewName> = new Set(["faithfulness"]);
const NO_AGGREGATE: ReadonlySet<ViewName> = new Set(["faithfulness", "heads", "graph"]);
const NO_FOCUS: ReadonlySet<ViewName> = new Set(["faithfulness", "heads", "multiples"]);

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
      const { traits, layers, layer, method } = next;
      const view = traits.view;
      const scoresOnly = method?.yields === "scores";
      const perLayer = !scoresOnly || ["heads", "compare", "multiples"].includes(view);
      setAttributes(slider, { max: Math.max(layers - 1, 0) });
      if (slider.value !== String(layer)) slider.value = String(layer);
      slider.disabled = play.disabled = layers < 2 || !perLayer;
      slider.setAttribute("aria-valuetext", `layer ${layer} of 0 to ${layers - 1}`);
      setText(layerText, layers > 0 ? `${layer} / ${layers - 1}` : "–");
      const added = method?.yields === "layer_scores" && view !== "compare" && view !== "multiples";
      setOptions(aggregate, [
        ["layer", AGGREGATE_NAMES.layer],
        ["rollout", added ? "added up to this layer" : AGGREGATE_NAMES.rollout],
        ...(added && traits.aggregate !== "sum" ? [] : [SUM]),
      ]);
      if (aggregate.value !== traits.aggregate) aggregate.value = traits.aggregate;
      aggregate.disabled = !perLayer;
      show(layerField, !NO_LAYER.has(view));
      show(aggregateField, !NO_AGGREGATE.has(view));
      show(focusField, !NO_FOCUS.has(view));
      show(unitField, view !== "heads" && view !== "faithfulness");
      show(specialField, view !== "heads" && view !== "faithfulness");
      drawFocus(focus, next);
      drawTarget(target, next);
      target.disabled = !next.live;
      setAttributes(target, { title: next.live ? null : NEEDS_KERNEL });
      show(targetField, traits.model_info.targets.length > 0 || traits.target !== null);
      if (unit.value !== traits.unit) unit.value = traits.unit;
      if (special.checked !== traits.special) special.checked = traits.special;
      if (colours.value !== traits.colours) colours.value = traits.colours;
      const graph = view === "graph";
      show(edgeField, graph);
      show(thresholdField, graph && traits.top_k === 0);
      if (Number(threshold.value) !== traits.threshold) threshold.value = String(traits.threshold);
      setText(thresholdText, percent(traits.threshold));
      drawTopK(topK, traits.top_k);
    },
  };
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
