/** Layer by head: what each attends to or wrote into the answer, and the chosen one's attention. */

import { mapScale } from "../kit/colour";
import type { Context, View } from "../kit/context";
import { h, setText } from "../kit/dom";
import { createHeatmap } from "../kit/heatmap";
import { createLegend } from "../kit/legend";
import { moveWord } from "../kit/steps";
import { createTable } from "../kit/table";
import { number, share } from "../state/format";
import type { State } from "../state/state";
import { quoted } from "../state/words";
import type { Tensor } from "../wire/protocol";
import {
  byAttention,
  byContribution,
  describeHead,
  describeWritten,
  drawGrid,
  KINDS,
  strongest,
  WRITTEN,
} from "./heads-grid";
import { createHeadMask } from "./heads-mask";
import { createNotice } from "./shared";

/** Where the grid's colours end at least: a share below it is little, and is to look like little. */
const LEAST_END = 0.1;

export function headsView(element: HTMLElement, context: Context): View {
  const caption = h("p", { class: "mix-caption" });
  const notice = createNotice(context);
  const kind = h("select", {
    "data-part": "head-stat",
    "aria-label": "What the grid is coloured by",
  });
  kind.append(...KINDS.map(([name], i) => h("option", { value: i }, `attention to ${name}`)));
  const written = h("option", { value: WRITTEN });
  const masks = createHeadMask(context);
  const all = h("button", { type: "button", class: "mix-chip" }, "Mean of all heads");
  const bar = h(
    "div",
    { class: "mix-fields" },
    h("label", { class: "mix-field" }, h("span", {}, "Colour heads by"), kind),
    all,
    masks.toggle,
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
  element.append(
    caption,
    notice.element,
    bar,
    masks.note,
    h("div", { class: "mix-heads" }, left, right),
  );
  const averages = createAverages();

  context.listen(kind, "change", () => context.redraw());
  context.listen(all, "click", () => context.set({ head: -1 }));
  context.listen(grid, "click", (event) => {
    const cell = (event.target as Element).closest<HTMLElement>("button");
    if (!cell || !state) return;
    const at = { layer: Number(cell.dataset.layer), head: Number(cell.dataset.head) };
    if (masks.choosing()) masks.turn(state, at.layer, at.head);
    else context.set(at);
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

  /** What heads wrote into the answer can be chosen once that is known. */
  function offer(next: State, known: boolean): void {
    setText(written, `what they wrote into ${quoted(next.targetLabel || "the prediction")}`);
    if (known === written.isConnected) return;
    if (known) kind.append(written);
    else {
      const chosen = kind.value === WRITTEN;
      written.remove();
      if (chosen) kind.value = "0";
    }
  }

  return {
    update(next) {
      state = next;
      const heads = next.traits.model_info.heads;
      const head = next.traits.head < heads ? next.traits.head : -1;
      const sums = next.byHead("logit");
      offer(next, sums !== undefined);
      const stats = next.shared("head_stats");
      const target = quoted(next.targetLabel || "the prediction");
      const of =
        sums && kind.value === WRITTEN
          ? byContribution(sums, target)
          : stats && byAttention(stats, Number(kind.value));
      const top = of ? strongest(of) : null;
      setText(
        caption,
        `${of?.signed ? "Contributions" : "Attention weights"} by head. The grid shows ${of?.about ?? ""}.${of && top?.value ? ` The strongest head here is head ${top.head} of layer ${top.layer}, with ${of.write(top.value)}.` : ""}`,
      );
      masks.update(next);
      bar.hidden = left.hidden = !of;
      const end = Math.max(Math.abs(top?.value ?? 0), of?.signed ? 0 : LEAST_END);
      const gridScale = of ? context.palette().scale(of.signed, end) : null;
      if (of && gridScale)
        drawGrid(grid, next, of, head, gridScale, masks.mask(next), masks.choosing());
      gridLegend.update(gridScale, of?.name ?? "", of?.write);
      const tensor = next.shared("heads", next.layer);
      const mean = tensor ? averages(tensor, head) : null;
      shown = mean && { ...mean, coarse: mean.rows !== next.n };
      const wrote = of?.signed ? describeWritten(next, next.byHead("logit", next.layer), head) : "";
      setText(words, `${describeHead(next, stats, head)}${wrote}`);
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
      legend.update(scale, "of its attention", share);
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
