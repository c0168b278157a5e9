/** A bar of the scale's colours with numbers. */

import { number } from "../state/format";
import type { Scale } from "./colour";
import { h, setText } from "./dom";

export interface Legend {
  element: HTMLElement;
  /** Numbers are written as `number` does unless another way is given. */
  update(scale: Scale | null, words: string, write?: (value: number) => string): void;
}

export function createLegend(): Legend {
  const low = h("span", { class: "mix-legend-number" });
  const bar = h("span", { class: "mix-legend-bar", "aria-hidden": "true" });
  const high = h("span", { class: "mix-legend-number" });
  const words = h("span", { class: "mix-legend-words" });
  const element = h("div", { class: "mix-legend" }, low, bar, high, words);
  return {
    element,
    update(scale, text, write = number) {
      element.hidden = scale === null;
      if (!scale) return;
      const steps = Array.from({ length: 33 }, (_, i) =>
        scale.css(scale.min + ((scale.max - scale.min) * i) / 32),
      );
      const gradient = `linear-gradient(to right, ${steps.join(", ")})`;
      if (bar.dataset.gradient !== gradient) {
        bar.dataset.gradient = gradient;
        bar.style.background = gradient;
      }
      setText(low, scale.signed ? `${scale.clipped ? "≤ " : ""}${write(scale.min)}` : write(0));
      setText(high, `${scale.clipped ? "≥ " : ""}${write(scale.max)}`);
      setText(words, text);
    },
  };
}
