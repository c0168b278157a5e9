/** Below the strip of layers: what its colours are, and what the line beside it is. */

import type { Scale } from "../kit/colour";
import { h, setText, show } from "../kit/dom";
import type { Side } from "../kit/heatmap-side";
import { createLegend } from "../kit/legend";
import { number, share } from "../state/format";
import type { State } from "../state/state";
import { quoted, SIGNED } from "../state/words";
import type { MethodEntry } from "../wire/types";

export interface BelowLayers {
  elements: HTMLElement[];
  /** The line beside the strip, if it is known. */
  line(state: State): Side | null;
  update(state: State, method: MethodEntry, scale: Scale): void;
  hide(): void;
}

export function belowLayers(): BelowLayers {
  const legend = createLegend();
  const words = h("p", { class: "mix-hint", "data-part": "mixing" });
  return {
    elements: [legend.element, words],
    line: mixingOf,
    update(state, method, scale) {
      const shares = method.yields === "maps" && state.traits.aggregate === "rollout";
      const what = shares ? `share of ${quoted(state.focusLabel)} in each layer` : "score";
      const key = scale.signed
        ? `${SIGNED}${method.passed ? ", at each layer" : ""}`
        : `${what}, one scale for all layers`;
      legend.update(scale, key, shares && !scale.signed ? share : number);
      const mixing = mixingOf(state);
      show(words, mixing !== null);
      setText(words, mixing ? mixingWords(state, mixing) : "");
    },
    hide() {
      legend.update(null, "");
      show(words, false);
    },
  };
}

/** How much of the token that is read, and of all tokens on average, is others at each layer. */
function mixingOf(state: State): Side | null {
  const found = state.shared("mixing");
  const { layers, n } = state;
  if (found?.values.length !== layers * n) return null;
  const read = state.layout.units[state.layout.focus]?.tokens ?? [];
  const mean = (layer: number, tokens: number[]) =>
    tokens.reduce((sum, token) => sum + (found.values[layer * n + token] as number), 0) /
    tokens.length;
  const all = Array.from({ length: n }, (_, token) => token);
  const line = (name: string, tokens: number[]) => ({
    name,
    values: Float32Array.from({ length: layers }, (_, layer) => mean(layer, tokens)),
  });
  return {
    title: "mixing ratio",
    lines: [line(state.focusLabel, read), line("all tokens", all)],
  };
}

/** What the line says, at the layer that is chosen. */
function mixingWords(state: State, { lines }: Side): string {
  const [own, all] = lines.map(({ values }) => values[state.layer] ?? Number.NaN);
  const at = (value: number | undefined) =>
    value === undefined || Number.isNaN(value) ? "nothing known" : share(value, true);
  return `Line: the mixing ratio, how much of ${quoted(state.focusLabel)} a layer brings in from other tokens; at layer ${state.layer} ${at(own)}. Dashed: all tokens, ${at(all)} on average.`;
}
