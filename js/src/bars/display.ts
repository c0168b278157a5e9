/** How things are shown: one panel. What would change nothing in the open view is absent. */

import type { Context, View } from "../kit/context";
import { h, setText, show } from "../kit/dom";
import { createPopover } from "../kit/popover";
import { percent, shorten } from "../state/format";
import type { State } from "../state/state";
import type { MethodEntry, ScaleName, ViewName } from "../wire/types";

const SCALES: ScaleName[] = ["blues", "viridis", "cividis", "greys"];
const NO_UNITS: ReadonlySet<ViewName> = new Set(["faithfulness", "heads"]);
/** Tasks with one prediction for the whole text, whatever token is looked at. */
const ONE_PREDICTION: ReadonlySet<string> = new Set(["classification", "question_answering"]);

function setOptions(select: HTMLSelectElement, options: [string, string][]): void {
  const signature = JSON.stringify(options);
  if (select.dataset.options === signature) return;
  select.dataset.options = signature;
  select.replaceChildren(...options.map(([value, text]) => h("option", { value }, text)));
}

const field = (label: string, ...content: (Node | string)[]) =>
  h("label", { class: "mix-field" }, h("span", {}, label), ...content);

export function display(layer: HTMLElement, context: Context, opener: HTMLElement): View {
  const { listen } = context;
  const unit = h("select", { "data-part": "unit" });
  setOptions(unit, [
    ["words", "words"],
    ["tokens", "subwords"],
  ]);
  const special = h("input", { type: "checkbox", "data-part": "special" });
  const colours = h("select", { "data-part": "colours" });
  setOptions(
    colours,
    SCALES.map((name) => [name, name]),
  );
  const focus = h("select", { "data-part": "focus-select" });
  const all = h("input", { type: "checkbox", "data-part": "all-edges" });
  const topK = h("select", { "data-part": "top-k" });
  setOptions(topK, [
    ["0", "by strength"],
    ...[1, 2, 3, 5, 10].map((k): [string, string] => [String(k), `${k} per token`]),
  ]);
  const threshold = h("input", {
    type: "range",
    min: 0,
    max: 1,
    step: 0.01,
    "data-part": "threshold",
    "aria-label": "Hide edges weaker than this share of the strongest of their layer",
  });
  const thresholdText = h("output", {});
  const fields = {
    unit: field("Units", unit),
    special: h("label", { class: "mix-field" }, h("span", {}, "Special tokens"), special),
    colours: field("Colours", colours),
    focus: field("Row that is read", focus),
    all: h("label", { class: "mix-field" }, h("span", {}, "All edges, not one answer’s"), all),
    topK: field("Edges", topK),
    threshold: field("Hide below", threshold, thresholdText),
  };
  const nothing = h("p", { class: "mix-hint" }, "There is nothing to set in this view.");
  const panel = h(
    "div",
    { class: "mix-menu mix-display", role: "dialog", "aria-label": "Display" },
    ...Object.values(fields),
    nothing,
  );
  layer.append(panel);
  createPopover(context, panel, [opener], () => {
    const frame = context.root.getBoundingClientRect();
    panel.style.top = `${Math.round(opener.getBoundingClientRect().bottom - frame.top + 4)}px`;
    panel.querySelector<HTMLElement>(".mix-field:not([hidden]) :is(select, input)")?.focus();
  });

  listen(unit, "change", () => context.set({ unit: unit.value as "tokens" | "words" }));
  listen(special, "change", () => context.set({ special: special.checked }));
  listen(colours, "change", () => context.set({ colours: colours.value as ScaleName }));
  listen(focus, "change", () => context.set({ focus: Number(focus.value) }));
  listen(topK, "change", () => context.set({ top_k: Number(topK.value) }));
  listen(threshold, "input", () => context.set({ threshold: Number(threshold.value) }));
  listen(all, "change", () => {
    context.own.allEdges = all.checked;
    context.redraw();
  });

  return {
    update(state) {
      const { traits, tokens } = state;
      const { view } = traits;
      const graph = view === "graph" && state.method?.yields === "maps";
      const { allEdges } = context.own;
      unit.value = traits.unit;
      special.checked = traits.special;
      colours.value = traits.colours;
      all.checked = allEdges;
      threshold.value = String(traits.threshold);
      setText(thresholdText, percent(traits.threshold));
      drawTopK(topK, traits.top_k);
      drawFocus(focus, state);
      const joined = tokens.some(
        ({ word, segment }, i) =>
          word !== null && word === tokens[i - 1]?.word && segment === tokens[i - 1]?.segment,
      );
      const kinds = tokens.some((one) => one.special) && tokens.some((one) => !one.special);
      show(fields.unit, joined && !NO_UNITS.has(view));
      show(fields.special, kinds && !NO_UNITS.has(view));
      const shown = view === "compare" ? state.compared : state.method ? [state.method] : [];
      show(fields.colours, view === "heads" || shown.some((one) => !one.signed));
      show(fields.focus, state.n > 1 && shown.some((one) => followsFocus(state, one)));
      show(fields.all, graph);
      show(fields.topK, graph && allEdges);
      show(fields.threshold, graph && allEdges && traits.top_k === 0);
      show(
        nothing,
        Object.values(fields).every((one) => one.hidden),
      );
    },
  };
}

/** Whether the scores of a method are others for another row. */
function followsFocus({ traits }: State, method: MethodEntry): boolean {
  if (method.yields === "maps" || !method.any_focus) return true;
  if (traits.params[method.id]?.zero_focus) return true;
  return method.class_specific && !ONE_PREDICTION.has(traits.model_info.task);
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

function drawTopK(select: HTMLSelectElement, value: number): void {
  const text = String(value);
  if (![...select.options].some((known) => known.value === text))
    select.append(h("option", { value: text }, `${value} per token`));
  if (select.value !== text) select.value = text;
}
