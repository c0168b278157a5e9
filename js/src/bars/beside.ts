/** The strongest words beside a picture, where the widget is wide enough for both. */

import type { Context, View } from "../kit/context";
import { h, show } from "../kit/dom";
import { createRanking } from "../kit/ranking";
import { readingOf } from "../state/reading";
import type { ViewName } from "../wire/types";

const BESIDE: ReadonlySet<ViewName> = new Set(["graph", "layers", "map"]);
const LISTED = 10;

export function beside(element: HTMLElement, context: Context): View {
  const ranking = createRanking(context);
  const aside = h(
    "aside",
    { class: "mix-beside", "aria-label": "Strongest words" },
    ranking.element,
  );
  element.append(aside);
  return {
    update(state) {
      const { method } = state;
      const on = BESIDE.has(state.traits.view);
      show(aside, on);
      if (!on) return;
      const values = method && state.scores(method.id, state.reached(method.id))?.values;
      ranking.update(state, method ? readingOf(state, method, values) : null, LISTED);
      if (element.lastElementChild !== aside) element.append(aside);
    },
  };
}
