/** Layer by head: what kind of head each is, and the attention of the chosen one. */

import { mapScale, type Scale } from "../kit/colour";
import type { Context, View } from "../kit/context";
import { h, setAttributes, setText, sync } from "../kit/dom";
import { createHeatmap } from "../kit/heatmap";
import { createLegend } from "../kit/legend";
import { moveWord } from "../kit/steps";
import { createTable } from "../kit/table";
import { number, percent } from "../state/format";
import type { State } from "../state/state";
import { quoted } from "../state/words";
import type { Tensor } from "../wire/protocol";
import { createNotice } from "./shared";

/** The last axis of `head_stats`, in order. */
const KINDS: [string, string][] = [
  ["itself", "mean weight on the token itself"],
  ["the token before", "mean weight on the token before"],
  ["the token after", "mean weight on the token after"],
  ["the first token", "mean weight on the first token"],
  ["special tokens", "mean weight on special tokens"],
  ["one fixed offset", "how often the strongest weight lies at one and the same distance"],
];
const STATS = KINDS.length;
/** Where the grid's colours end at least: a share below it is little, and is to look like little. */
const LEAST_END = 0.1;

export function headsView(element: HTMLElement, context: Context): View {
  const caption = h("p", { class: "mix-caption" });
  const notice = createNotice(context);
  const kind = h("select", {
    "data-part": "head-stat",
    "aria-label": "What the grid is coloured by",
  });
  kind.append(...KINDS.map(([name], i) => h("option", { value: i }, name)));
  const all = h("button", { type: "button", class: "mix-chip" }, "Mean of all heads");
  const bar = h(
    "div",
    { class: "mix-fields" },
    h("label", { class: "mix-field" }, h("span", {}, "Colour heads by attention to"), kind),
    all,
  );
  const grid = h("div", { class: "mix-head-grid", role: "grid", "aria-label": "Heads by layer" });
  const gridLegend = createLegend();
  const words = h("p", { class: "mix-head-words" });
  const legend = createLegend();
  const table = createTable(context.signal);
  let state: State | undefined;
  let shown: { values: Float32Array; rows: number; cols: number; coarse: boolean } | null = null;
  const heat = createHeatmap(context, {
    describe(row, col) {
      if (!state || !shown) return [];
      const target = quoted(state.tokens[row] ? state.label(state.layout.unitOf[row] ?? 0) : "");
      const source = quoted(state.label(state.layout.unitOf[col] ?? 0));
      const r = shown.coarse ? Math.floor((row / state.n) * shown.rows) : row;
      const c = shown.coarse ? Math.floor((col / state.n) * shown.cols) : col;
      return [`${target} attends to ${source}`, number(shown.values[r * shown.cols + c] ?? 0)];
    },
    click(row) {
      context.marks.hold(row);
      context.redraw();
    },
    arrow(key) {
      if (!state || (key !== "ArrowUp" && key !== "ArrowDown")) return false;
      moveWord(state, context, key === "ArrowUp" ? -1 : 1);
      return true;
    },
  });
  const left = h("div", { class: "mix-heads-left" }, grid, gridLegend.element);
  const right = h(
    "div",
    { class: "mix-heads-right" },
    words,
    heat.element,
    legend.element,
    table.element,
  );
  element.append(caption, notice.element, bar, h("div", { class: "mix-heads" }, left, right));
  const averages = createAverages();

  context.listen(kind, "change", () => context.redraw());
  context.listen(all, "click", () => context.set({ head: -1 }));
  context.listen(grid, "click", (event) => {
    const cell = (event.target as Element).closest<HTMLElement>("button");
    if (cell) context.set({ layer: Number(cell.dataset.layer), head: Number(cell.dataset.head) });
  });
  context.listen(grid, "keydown", (event) => {
    const cell = (event.target as Element).closest<HTMLElement>("button");
    if (!cell || !state) return;
    const step = { ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[
      event.key
    ];
    if (!step) return;
    event.preventDefault();
    const layer = Number(cell.dataset.layer) + (step[0] as number);
    const head = Number(cell.dataset.head) + (step[1] as number);
    grid.querySelector<HTMLElement>(`[data-layer="${layer}"][data-head="${head}"]`)?.focus();
  });
  const hover = (event: Event) => {
    const cell = (event.target as Element).closest<HTMLElement>("button");
    if (cell) context.tip.over(cell, (cell.getAttribute("aria-label") ?? "").split(", "));
    else context.tip.hide();
  };
  context.listen(grid, "pointerover", hover);
  context.listen(grid, "focusin", hover);
  context.listen(grid, "pointerleave", () => context.tip.hide());
  context.listen(grid, "focusout", () => context.tip.hide());

  return {
    update(next) {
      state = next;
      const heads = next.traits.model_info.heads;
      const head = next.traits.head < heads ? next.traits.head : -1;
      const which = Number(kind.value);
      const stats = next.shared("head_stats");
      const top = stats ? strongest(stats, which) : null;
      setText(
        caption,
        `Attention weights by head. The grid shows ${KINDS[which]?.[1]}.${top?.value ? ` The strongest head here is head ${top.head} of layer ${top.layer}, with ${percent(top.value)}.` : ""}`,
      );
      bar.hidden = left.hidden = !stats;
      const gridScale = top ? context.palette().scale(false, Math.max(top.value, LEAST_END)) : null;
      if (stats && gridScale) drawGrid(grid, next, stats, which, head, gridScale);
      gridLegend.update(gridScale, KINDS[which]?.[0] ?? "", percent);
      const tensor = next.shared("heads", next.layer);
      const mean = tensor ? averages(tensor, head) : null;
      shown = mean && { ...mean, coarse: mean.rows !== next.n };
      setText(words, describeHead(next, stats, head));
      right.hidden = !shown;
      notice.update(
        stats || shown
          ? null
          : "The attention weights are on their way. They come with the first recorded pass of the model.",
      );
      all.hidden = head === -1;
      if (!shown) {
        heat.update(null);
        legend.update(null, "");
        table.update(null);
        return;
      }
      const tokens = Array.from({ length: next.n }, (_, i) => i);
      const names = tokens.map((i) =>
        next.layout.units[next.layout.unitOf[i] ?? 0]?.tokens.length === 1
          ? next.label(next.layout.unitOf[i] ?? 0)
          : (next.tokens[i]?.text ?? ""),
      );
      const second = next.tokens.findIndex((token) => token.segment > 0);
      const scale = mapScale(context.palette(), shown.values, false, shown.cols);
      const label = `Attention of ${head < 0 ? "all heads on average" : `head ${head}`} in layer ${next.layer}: rows attend to columns`;
      heat.update({
        rows: names,
        cols: names,
        values: shown.values,
        ...(shown.coarse ? { picture: { rows: shown.rows, cols: shown.cols } } : {}),
        scale,
        label,
        rowTitle: "this token attends",
        colTitle: "to this token",
        selectedRow: context.marks.pin ?? next.traits.focus,
        selectedCol: -1,
        rowBreak: second,
        colBreak: second,
        square: true,
        maxHeight: 520,
      });
      legend.update(scale, "attention weight");
      table.update(
        shown.coarse
          ? null
          : {
              caption: label,
              rowTitle: "attends",
              colTitle: "to",
              rows: names,
              cols: names,
              values: shown.values,
            },
      );
    },
  };
}

function statOf(stats: Tensor, heads: number, layer: number, head: number, kind: number): number {
  return stats.values[(layer * heads + head) * STATS + kind] ?? 0;
}

function strongest(stats: Tensor, kind: number): { layer: number; head: number; value: number } {
  const [layers = 0, heads = 0] = stats.shape;
  let top = { layer: 0, head: 0, value: 0 };
  for (let layer = 0; layer < layers; layer++) {
    for (let head = 0; head < heads; head++) {
      const value = statOf(stats, heads, layer, head, kind);
      if (value > top.value) top = { layer, head, value };
    }
  }
  return top;
}

/** Rows of buttons, the top layer first, as in the graph. */
function drawGrid(
  grid: HTMLElement,
  state: State,
  stats: Tensor,
  kind: number,
  chosen: number,
  scale: Scale,
): void {
  const [layers = 0, heads = 0] = stats.shape;
  const order = Array.from({ length: layers }, (_, i) => layers - 1 - i);
  const columns = Array.from({ length: heads }, (_, i) => i);
  grid.style.setProperty("--mix-heads", String(heads));
  sync(
    grid,
    [...order, -1],
    () =>
      h(
        "div",
        { role: "row", class: "mix-head-row" },
        h("span", { role: "rowheader" }),
        h("span", { class: "mix-head-cells", role: "presentation" }),
      ),
    (row, layer) => {
      const [name, cells] = row.children as unknown as [HTMLElement, HTMLElement];
      setText(name, layer < 0 ? "head" : String(layer));
      if (layer < 0) {
        cells.className = "mix-head-cells mix-head-names";
        sync(
          cells,
          columns,
          () => h("span", {}),
          (cell, head) => setText(cell, String(head)),
        );
        return;
      }
      sync(
        cells,
        columns,
        () => h("button", { type: "button", role: "gridcell" }),
        (cell, head) => {
          const value = statOf(stats, heads, layer, head, kind);
          const here = layer === state.layer && (head === chosen || (chosen < 0 && head === 0));
          cell.style.backgroundColor = scale.css(value);
          setAttributes(cell, {
            "data-layer": layer,
            "data-head": head,
            tabindex: here ? 0 : -1,
            "aria-selected": String(layer === state.layer && head === chosen),
            "aria-label": `layer ${layer}, head ${head}, ${KINDS[kind]?.[0]}: ${percent(value)}`,
          });
        },
      );
    },
  );
}

function describeHead(state: State, stats: Tensor | undefined, head: number): string {
  const where =
    head < 0 ? `Layer ${state.layer}, all heads on average` : `Layer ${state.layer}, head ${head}`;
  if (!stats || head < 0) return `${where}. Click a cell of the grid to see one head.`;
  const [, heads = 0] = stats.shape;
  const value = (kind: number) => statOf(stats, heads, state.layer, head, kind);
  const kinds = [0, 1, 2, 3, 4].sort((a, b) => value(b) - value(a));
  const most = kinds[0] as number;
  const parts = kinds
    .slice(0, 2)
    .filter((k) => value(k) > 0.05)
    .map((k) => `${percent(value(k))} of its weight on ${KINDS[k]?.[0]}`);
  const kind =
    value(5) > 0.8
      ? "a positional head"
      : value(most) > 0.6
        ? `looks mostly at ${KINDS[most]?.[0]}`
        : "looks at several places";
  return `${where}: ${kind}${parts.length > 0 ? `; ${parts.join(", ")}` : ""}.`;
}

/** One head of [H, m, m], or the mean of all; remembered until either changes. */
function createAverages() {
  let of: Tensor | undefined;
  let which = Number.NaN;
  let made: { values: Float32Array; rows: number; cols: number } | null = null;
  return (tensor: Tensor, head: number) => {
    if (of === tensor && which === head && made) return made;
    const [heads = 1, rows = 0, cols = 0] = tensor.shape;
    const size = rows * cols;
    let values: Float32Array;
    if (head >= 0 && head < heads) values = tensor.values.subarray(head * size, (head + 1) * size);
    else {
      values = new Float32Array(size);
      for (let k = 0; k < heads; k++) {
        for (let i = 0; i < size; i++)
          values[i] = (values[i] as number) + (tensor.values[k * size + i] as number) / heads;
      }
    }
    of = tensor;
    which = head;
    made = { values, rows, cols };
    return made;
  };
}
