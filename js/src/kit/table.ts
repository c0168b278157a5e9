/** The numbers behind a canvas, for screen readers and for those who want to read them. */

import { number } from "../state/format";
import { quantileOfSize } from "../state/stats";
import { h } from "./dom";

export interface TableSpec {
  caption: string;
  rowTitle: string;
  colTitle: string;
  rows: string[];
  cols: string[];
  values: ArrayLike<number>;
}

const WHOLE = 600; // cells; above this the strongest are listed
const LISTED = 60;
const DELAY_MS = 350;

export interface DataTable {
  element: HTMLElement;
  update(spec: TableSpec | null): void;
}

/** Filled a moment after a change, so that it never holds up a picture. */
export function createTable(signal: AbortSignal): DataTable {
  const holder = h("div", { class: "mix-table-scroll", tabindex: "0" });
  const element = h(
    "details",
    { class: "mix-table" },
    h("summary", {}, "Numbers as a table"),
    holder,
  );
  let timer: ReturnType<typeof setTimeout> | undefined;
  let shown: ArrayLike<number> | null = null;
  let latest: TableSpec | null = null;
  signal.addEventListener("abort", () => clearTimeout(timer));
  return {
    element,
    update(spec) {
      element.hidden = spec === null;
      latest = spec;
      if (!spec || (shown === spec.values && holder.dataset.caption === spec.caption)) return;
      timer ??= setTimeout(() => {
        timer = undefined;
        if (!latest) return;
        shown = latest.values;
        holder.dataset.caption = latest.caption;
        holder.setAttribute("aria-label", latest.caption);
        holder.replaceChildren(build(latest));
      }, DELAY_MS);
    },
  };
}

export function build(spec: TableSpec): HTMLTableElement {
  const table = h("table", {}, h("caption", {}, spec.caption));
  if (spec.values.length <= WHOLE) fillWhole(table, spec);
  else fillStrongest(table, spec);
  return table;
}

function fillWhole(table: HTMLTableElement, spec: TableSpec): void {
  const head = h("tr", {}, h("th", { scope: "col" }, `${spec.rowTitle} \\ ${spec.colTitle}`));
  for (const name of spec.cols) head.append(h("th", { scope: "col" }, name));
  const body = h("tbody");
  spec.rows.forEach((name, r) => {
    const row = h("tr", {}, h("th", { scope: "row" }, name));
    for (let c = 0; c < spec.cols.length; c++) {
      row.append(h("td", {}, number(spec.values[r * spec.cols.length + c] as number)));
    }
    body.append(row);
  });
  table.append(h("thead", {}, head), body);
}

function fillStrongest(table: HTMLTableElement, spec: TableSpec): void {
  // Sorting all of a large map would hold up the page: only those near the top are.
  const cut = quantileOfSize(spec.values, 1 - (4 * LISTED) / spec.values.length);
  const size = (i: number) => Math.abs(spec.values[i] as number);
  const order: number[] = [];
  for (let i = 0; i < spec.values.length; i++) if (size(i) > 0 && size(i) >= cut) order.push(i);
  order.sort((a, b) => size(b) - size(a));
  table.caption?.append(` (the ${LISTED} strongest of ${spec.values.length} values)`);
  table.append(
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ...[spec.rowTitle, spec.colTitle, "value"].map((t) => h("th", { scope: "col" }, t)),
      ),
    ),
  );
  const body = h("tbody");
  for (const i of order.slice(0, LISTED)) {
    const row = Math.floor(i / spec.cols.length);
    body.append(
      h(
        "tr",
        {},
        h("td", {}, spec.rows[row] ?? ""),
        h("td", {}, spec.cols[i % spec.cols.length] ?? ""),
        h("td", {}, number(spec.values[i] as number)),
      ),
    );
  }
  table.append(body);
}
