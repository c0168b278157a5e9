/** One method minus another, and how far methods agree. */

import { rowScale } from "../kit/colour";
import type { Context } from "../kit/context";
import { h, setText } from "../kit/dom";
import { createLegend } from "../kit/legend";
import { drawPlain } from "../kit/tokens";
import { number } from "../state/format";
import type { State } from "../state/state";
import { spearman, unitMass } from "../state/stats";
import { lacking, shownTokens } from "../state/words";
import type { MethodEntry } from "../wire/types";
import { createDifferenceMap } from "./compare-maps";

export interface Scored {
  method: MethodEntry;
  values: Float32Array | null;
}

export interface Difference {
  element: HTMLElement;
  update(state: State, scored: Scored[]): void;
}

export function createDifference(context: Context): Difference {
  const first = h("select", { "aria-label": "Difference: first method" });
  const second = h("select", { "aria-label": "Difference: second method" });
  const swap = h("button", { type: "button", class: "mix-chip" }, "swap");
  const head = h(
    "div",
    { class: "mix-fields" },
    h("h4", {}, "Difference"),
    first,
    h("span", {}, "minus"),
    second,
    swap,
  );
  const agreement = h("p", { class: "mix-agreement", "data-part": "agreement" });
  const blocks = h("div", { class: "mix-sentence mix-small" });
  const legend = createLegend();
  const correlations = h("div", { class: "mix-correlations" });
  const map = createDifferenceMap(context);
  const element = h(
    "section",
    { class: "mix-difference" },
    head,
    agreement,
    blocks,
    legend.element,
    map.element,
    correlations,
  );
  let pair: [string, string] = ["", ""];
  const set = (next: [string, string]) => {
    pair = next;
    context.redraw();
  };
  context.listen(first, "change", () => set([first.value, pair[1]]));
  context.listen(second, "change", () => set([pair[0], second.value]));
  context.listen(swap, "click", () => set([pair[1], pair[0]]));

  function choosePair(methods: MethodEntry[]): void {
    const ids = methods.map((method) => method.id);
    let [a, b] = pair;
    if (!ids.includes(a)) a = ids.find((id) => id !== b) ?? "";
    if (!ids.includes(b) || b === a) b = ids.find((id) => id !== a) ?? "";
    pair = [a, b];
    for (const select of [first, second]) {
      const key = ids.join(",");
      if (select.dataset.ids !== key) {
        select.dataset.ids = key;
        select.replaceChildren(...methods.map((m) => h("option", { value: m.id }, m.title)));
      }
    }
    first.value = a;
    second.value = b;
  }

  return {
    element,
    update(next, scored) {
      choosePair(scored.map(({ method }) => method));
      const [a, b] = pair.map((id) => scored.find(({ method }) => method.id === id));
      drawCorrelations(correlations, next, scored);
      map.update(next, pair);
      if (!a?.values || !b?.values) {
        const lack = [a, b].map((s) => (s && !s.values ? lacking(next, s.method.id) : ""));
        setText(agreement, lack.join(" "));
        blocks.replaceChildren();
        legend.update(null, "");
        return;
      }
      const [left, right] = [unitMass(a.values), unitMass(b.values)];
      const values = left.map((value, i) => value - (right[i] as number));
      const scale = rowScale(context.palette(), values, true);
      drawPlain(blocks, next, values, scale);
      legend.update(
        scale,
        `blue: more by ${a.method.title}; orange: more by ${b.method.title} (sizes of each sum to 1)`,
      );
      setText(agreement, agreementWords(next, a, b));
    },
  };
}

function agreementWords(state: State, a: Scored, b: Scored): string {
  const rho = spearman(a.values ?? [], b.values ?? []);
  if (rho === null)
    return "Their rank correlation is not defined here: one of them gives every token the same score.";
  const how =
    rho > 0.8
      ? "rank the tokens much alike"
      : rho > 0.5
        ? "broadly agree on the ranking"
        : rho > 0.2
          ? "agree only loosely on the ranking"
          : rho > -0.2
            ? "do not agree on the ranking"
            : "rank the tokens in opposite ways";
  return `${a.method.title} and ${b.method.title} ${how}: Spearman's rank correlation is ${number(rho)} over ${shownTokens(state)}.`;
}

function drawCorrelations(parent: HTMLElement, state: State, scored: Scored[]): void {
  const there = scored.filter((s) => s.values !== null);
  parent.hidden = there.length < 3;
  if (parent.hidden) return;
  const head = h("tr", {}, h("td", {}));
  for (const { method } of there) head.append(h("th", { scope: "col" }, method.title));
  const table = h(
    "table",
    {},
    h("caption", {}, `Rank correlation (Spearman) of every two, over ${shownTokens(state)}`),
    h("thead", {}, head),
  );
  const body = h("tbody");
  for (const a of there) {
    const row = h("tr", {}, h("th", { scope: "row" }, a.method.title));
    for (const b of there) {
      const rho = a === b ? 1 : spearman(a.values ?? [], b.values ?? []);
      row.append(h("td", {}, rho === null ? "–" : rho.toFixed(2).replace("-", "−")));
    }
    body.append(row);
  }
  table.append(body);
  parent.replaceChildren(table);
}
