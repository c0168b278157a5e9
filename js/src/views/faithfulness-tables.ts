/** The measures of all methods on this text, and how far the methods agree, as tables. */

import type { Context } from "../kit/context";
import { h, show } from "../kit/dom";
import { number } from "../state/format";
import type { State } from "../state/state";
import type { Measured } from "../wire/measures";
import type { StartPart } from "../wire/protocol";

const RANDOM = "random order";

/** Replace what an element holds, if the words differ: a reader's place in it is kept. */
function refill(parent: HTMLElement, key: string, make: () => Node[]): void {
  if (parent.dataset.key === key) return;
  parent.dataset.key = key;
  parent.replaceChildren(...make());
}

export function metricsTable(
  parent: HTMLElement,
  state: State,
  start: StartPart,
  measured: Measured,
): void {
  const { curves, failed, random } = measured;
  const title = (id: string) => state.entry(id)?.title ?? id;
  const there = start.methods.filter((id) => curves.has(id) || failed.has(id));
  const key = JSON.stringify([start.metrics, there.map(title), [...curves], [...failed], random]);
  show(parent, there.length > 0);
  refill(parent, key, () => {
    const head = h("tr", {}, h("td", {}));
    for (const metric of start.metrics) {
      const better = h("span", { class: "mix-better" }, `${metric.better} is better`);
      head.append(h("th", { scope: "col" }, metric.title, " ", better));
    }
    const body = h("tbody");
    for (const id of there) {
      const row = h("tr", {}, h("th", { scope: "row" }, title(id)));
      const values = curves.get(id)?.metrics;
      if (values) {
        for (const metric of start.metrics) row.append(h("td", {}, shownValue(values[metric.id])));
      } else {
        const why = `not measured: ${failed.get(id)}`;
        row.append(h("td", { colspan: start.metrics.length, class: "mix-why" }, why));
      }
      body.append(row);
    }
    if (random) {
      const what = h("span", { class: "mix-better" }, "mean, and eight in ten");
      const row = h("tr", {}, h("th", { scope: "row" }, RANDOM, " ", what));
      for (const metric of start.metrics) {
        const spread = random.metrics[metric.id];
        const cell = h("td", {}, shownValue(spread?.mean));
        if (spread?.low != null && spread.high != null) {
          const range = `${number(spread.low)} to ${number(spread.high)}`;
          cell.append(" ", h("span", { class: "mix-better" }, range));
        }
        row.append(cell);
      }
      body.append(row);
    }
    const caption = h("caption", {}, "On this text; a single text says little about a method");
    const table = h("table", {}, caption, h("thead", {}, head), body);
    const lacked = start.metrics.filter(({ id }) =>
      there.some((method) => curves.get(method)?.metrics[id] === null),
    );
    const summary = h("summary", {}, "Measures of all methods");
    if (lacked.length === 0) return [summary, h("div", { class: "mix-table-scroll" }, table)];
    // Replacing by a token needs one: GPT-2's tokenizer has neither mask nor padding.
    const names = lacked.map(({ title }) => title).join(", ");
    const why = `–: ${names} cannot be computed here; log-odds replaces tokens by the padding token, which the tokenizer must have.`;
    return [summary, h("div", { class: "mix-table-scroll" }, table, h("p", {}, why))];
  });
}

const shownValue = (value: number | null | undefined) =>
  value == null
    ? h("span", { title: "not defined for this text and tokenizer" }, "–")
    : number(value);

export function agreementTables(
  parent: HTMLElement,
  state: State,
  { agreement }: Measured,
  context: Context,
): void {
  show(parent, agreement !== undefined);
  if (!agreement) return;
  const names = agreement.methods.map((id) => state.entry(id)?.title ?? id);
  const look = `${context.root.dataset.theme} ${state.traits.colours}`;
  refill(parent, JSON.stringify([agreement, names, look]), () => {
    const heading = h("summary", {}, "How far the methods agree on this text");
    const basis = h(
      "p",
      {},
      "By the final scores of each method. Special tokens are left out: nearly all methods agree on them.",
    );
    const tables = (
      [
        [
          "Ranking of all ordinary tokens (Spearman): 1 the same, 0 unrelated, −1 reversed",
          agreement.spearman,
          true,
        ],
        [
          "The top 25 % of ordinary tokens (Jaccard): 1 the same tokens, 0 none in common",
          agreement.jaccard,
          false,
        ],
      ] as const
    ).map(([caption, matrix, signed]) => {
      const scale = context.palette().scale(signed, 1);
      const head = h("tr", {}, h("td", {}));
      for (const name of names) head.append(h("th", { scope: "col" }, name));
      const body = h("tbody");
      matrix.forEach((values, r) => {
        const row = h("tr", {}, h("th", { scope: "row" }, names[r]));
        values.forEach((value, c) => {
          const cell = h("td", {}, value === null ? "–" : value.toFixed(2).replace("-", "−"));
          if (value !== null && r !== c) {
            cell.style.backgroundColor = scale.css(value);
            cell.style.color = scale.ink(value);
          }
          row.append(cell);
        });
        body.append(row);
      });
      return h("table", {}, h("caption", {}, caption), h("thead", {}, head), body);
    });
    return [heading, h("div", { class: "mix-table-scroll" }, basis, ...tables)];
  });
}
