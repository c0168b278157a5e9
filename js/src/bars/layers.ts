/** The layer and how layers are combined, below the picture. Absent where there are none. */

import type { Context, View } from "../kit/context";
import { h, setAttributes, setText, show } from "../kit/dom";
import { icon } from "../kit/icons";
import type { State } from "../state/state";
import type { Aggregate, MethodEntry, ViewName } from "../wire/types";

const STEP_MS = 800;
/** Views in which it changes nothing. */
const NO_LAYER: ReadonlySet<ViewName> = new Set(["faithfulness"]);
/** Views that draw no maps of another method. */
const NO_MAPS: ReadonlySet<ViewName> = new Set(["text", "compare"]);
const NO_AGGREGATE: ReadonlySet<ViewName> = new Set(["faithfulness", "heads"]);

export interface LayerBar extends View {
  play(): void;
}

export function layerBar(element: HTMLElement, context: Context): LayerBar {
  const { listen } = context;
  let state: State | undefined;
  const play = h("button", { type: "button", class: "mix-ico", "data-part": "play" });
  const slider = h("input", {
    type: "range",
    min: 0,
    step: 1,
    "data-part": "layer-slider",
    "aria-label": "Layer",
  });
  const text = h("span", { class: "mix-layer" });
  const aggregate = h("select", {
    "data-part": "aggregate",
    "aria-label": "How layers are combined",
  });
  const key = h("span", { class: "mix-key mix-push" });
  element.append(play, slider, text, aggregate, key);

  let timer: ReturnType<typeof setInterval> | undefined;
  context.signal.addEventListener("abort", () => clearInterval(timer));
  function stop(): void {
    clearInterval(timer);
    timer = undefined;
    showPlaying();
  }
  function showPlaying(): void {
    const playing = timer !== undefined;
    play.replaceChildren(icon(playing ? "pause" : "play"));
    setAttributes(play, {
      "aria-label": playing ? "Pause" : "Play through the layers",
      title: playing ? "Pause" : "Play through the layers (space)",
      "aria-pressed": String(playing),
    });
  }
  function toggle(): void {
    if (timer !== undefined) {
      stop();
      return;
    }
    if (!state || play.hidden || element.hidden) return;
    if (state.layer >= state.layers - 1) context.set({ layer: 0 });
    timer = setInterval(() => {
      if (!state || state.layer >= state.layers - 1) stop();
      else context.set({ layer: state.layer + 1 });
    }, STEP_MS);
    showPlaying();
  }
  listen(play, "click", toggle);
  listen(slider, "input", () => {
    stop();
    context.set({ layer: Number(slider.value) });
  });
  listen(aggregate, "change", () => context.set({ aggregate: aggregate.value as Aggregate }));
  showPlaying();

  return {
    play: toggle,
    update(next) {
      state = next;
      const { traits, layers } = next;
      const { view } = traits;
      const shown = view === "compare" ? next.compared : next.method ? [next.method] : [];
      const layered = shown.filter((one) => one.yields !== "scores");
      const passed = layered.length > 0 && layered.every((one) => one.passed);
      const input = passed && traits.aggregate !== "layer" && NO_MAPS.has(view);
      const some =
        layers > 1 && !NO_LAYER.has(view) && (layered.length > 0 || view === "heads") && !input;
      const combined = layers > 0 && layered.length > 0 && !NO_AGGREGATE.has(view);
      for (const one of [play, slider, text]) show(one, some);
      show(aggregate, combined);
      drawSlider(next, slider, text, combined && traits.aggregate === "layer");
      drawAggregate(aggregate, traits.aggregate, layered);
      drawKey(key, next);
      show(element, next.n > 0 && (some || combined || key.childElementCount > 0));
    },
  };

  function drawSlider(next: State, input: HTMLInputElement, words: HTMLElement, alone: boolean) {
    const { layers, layer, traits } = next;
    setAttributes(input, { max: Math.max(layers - 1, 0) });
    if (input.value !== String(layer)) input.value = String(layer);
    const name = traits.model_info.layer_names?.[layer];
    const called = name ? `: ${name}` : "";
    input.setAttribute("aria-valuetext", `layer ${layer} of 0 to ${layers - 1}${called}`);
    const only = alone || traits.view === "heads";
    setText(words, layers > 0 ? `${only ? "layer" : "up to layer"} ${layer}${called}` : "");
  }
}

function drawAggregate(select: HTMLSelectElement, value: Aggregate, layered: MethodEntry[]): void {
  const added = layered.length > 0 && layered.every((one) => one.yields === "layer_scores");
  const passed = layered.length > 0 && layered.every((one) => one.passed);
  const options: [Aggregate, string][] = [
    ["rollout", passed ? "of the input" : added ? "layers added up" : "from the input"],
    ["layer", passed ? "at this layer" : "this layer alone"],
    ...(added && value !== "sum" ? [] : [["sum", "sum of layers"] as [Aggregate, string]]),
  ];
  const signature = JSON.stringify(options);
  if (select.dataset.options !== signature) {
    select.dataset.options = signature;
    select.replaceChildren(...options.map(([name, text]) => h("option", { value: name }, text)));
  }
  if (select.value !== value) select.value = value;
}

/** What the colours of the open picture stand for. */
function drawKey(key: HTMLElement, state: State): void {
  const { view } = state.traits;
  const method = state.method;
  let items: [string, string][] = [];
  if (view === "graph" && method?.yields === "maps")
    items = [
      ["move", "moves"],
      ["keep", "stays"],
    ];
  else if ((view === "text" || view === "compare") && state.compared.some((one) => one.signed))
    items = [
      ["for", `for ${state.targetLabel || "it"}`],
      ["against", "against"],
    ];
  const signature = JSON.stringify(items);
  if (key.dataset.items === signature) return;
  key.dataset.items = signature;
  key.replaceChildren(
    ...items.map(([name, words]) =>
      h("span", {}, h("i", { class: `mix-swatch mix-swatch-${name}` }), words),
    ),
  );
}
