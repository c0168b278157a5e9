/** Words by the size of their score, as bars with numbers. */

import { share, signed } from "../state/format";
import { type Reading, shareOf } from "../state/reading";
import type { State } from "../state/state";
import { namesOf } from "../state/units";
import type { Context } from "./context";
import { h, setAttributes, setText, show, sync } from "./dom";

export interface Ranking {
  element: HTMLElement;
  update(state: State, reading: Reading | null, most: number): void;
}

export function createRanking(context: Context): Ranking {
  const list = h("ol", { class: "mix-ranking" });
  const { marks } = context;
  const rowOf = (event: Event) => (event.target as Element).closest<HTMLElement>("li");
  context.listen(list, "pointerover", (event) => {
    const row = rowOf(event);
    marks.point(row ? Number(row.dataset.token) : null);
  });
  context.listen(list, "pointerleave", () => marks.point(null));
  context.listen(list, "click", (event) => {
    const row = rowOf(event);
    if (!row) return;
    const token = Number(row.dataset.token);
    marks.hold(marks.pin === token ? null : token);
    context.redraw();
  });
  marks.onChange(() => {
    for (const row of list.children as Iterable<HTMLElement> & HTMLCollection)
      row.classList.toggle(
        "mix-on",
        [marks.hover, marks.pin].includes(Number((row as HTMLElement).dataset.token)),
      );
  });
  return {
    element: list,
    update(state, reading, most) {
      show(list, reading !== null && reading.peak > 0);
      const order = reading?.order.slice(0, most) ?? [];
      const names = namesOf(state.layout);
      list.setAttribute("aria-label", `The ${order.length} strongest words`);
      sync(
        list,
        order,
        () =>
          h(
            "li",
            {},
            h("span", { class: "mix-rank-name" }, h("span", { dir: "auto" }), h("small", {})),
            h("span", { class: "mix-rank-track", "aria-hidden": "true" }, h("i", {})),
            h("span", { class: "mix-rank-value" }),
          ),
        (row, c) => {
          if (!reading) return;
          const [name, track, figure] = row.children as unknown as HTMLElement[];
          const unit = state.layout.cols[c] ?? 0;
          const value = reading.values[c] ?? 0;
          row.dataset.token = String(state.layout.units[unit]?.index ?? 0);
          const text = state.label(unit);
          setText(name?.firstElementChild as HTMLElement, text);
          setText(name?.lastElementChild as HTMLElement, (names[unit] ?? "").slice(text.length));
          setText(
            figure as HTMLElement,
            reading.method.signed ? signed(value) : share(shareOf(reading, c)),
          );
          const bar = track?.firstElementChild as HTMLElement;
          const width = reading.peak > 0 ? (100 * Math.abs(value)) / reading.peak : 0;
          bar.style.width = `${Math.max(width, 0.8)}%`;
          setAttributes(bar, { class: value < 0 ? "mix-against" : "mix-for" });
        },
      );
    },
  };
}
