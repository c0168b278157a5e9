/** Tokens across, layers up; click a node to trace where it comes from. */

import type { Context, View } from "../kit/context";
import { h, onResize, setAttributes, setText } from "../kit/dom";
import {
  drawGraph,
  drawHighlight,
  edgeAt,
  type GraphGeometry,
  measureGraph,
  nodeAt,
  type Picture,
  type Spot,
} from "../kit/graph-draw";
import { createPictures } from "../kit/graph-picture";
import { aboutEdge, aboutNode, edgesOf, limitWords, tableOf } from "../kit/graph-words";
import { createLegend } from "../kit/legend";
import { createTable } from "../kit/table";
import { percent, plural } from "../state/format";
import type { State } from "../state/state";
import { quoted } from "../state/words";
import { absent, createNotice, moveFocus, moveLayer, withoutMaps } from "./shared";

/** Above so many shown tokens the weak ones are folded together. */
const ROOM = 48;

export function graphView(element: HTMLElement, context: Context): View {
  const { listen } = context;
  const caption = h("p", { class: "mix-caption" });
  const notice = createNotice(context);
  const clear = h(
    "button",
    { type: "button", class: "mix-button", "data-part": "trace-clear" },
    "Show all edges",
  );
  const start = h(
    "button",
    { type: "button", class: "mix-button", "data-part": "trace" },
    "Trace the focus",
  );
  const fold = h("input", { type: "checkbox", checked: true });
  const foldBox = h(
    "label",
    { class: "mix-field mix-check" },
    fold,
    "fold tokens that carry little",
  );
  const bar = h("div", { class: "mix-controls" }, start, clear, foldBox);
  const base = h("canvas", { role: "img" });
  const overlay = h("canvas", { class: "mix-overlay", "aria-hidden": "true" });
  const stage = h("div", { class: "mix-stage" }, base, overlay);
  const inner = h("div", { class: "mix-scroll-inner" }, stage);
  const scroller = h("div", { class: "mix-scroll mix-graph", tabindex: "0", role: "group" }, inner);
  const legend = createLegend();
  const table = createTable(context.signal);
  element.append(caption, bar, notice.element, scroller, legend.element, table.element);

  let state: State | undefined;
  let picture: Picture | null = null;
  let geometry: GraphGeometry | null = null;
  let tracing = false;
  let spot: Spot | null = null;
  const opened = new Set<number>();
  const memo = createPictures();

  listen(clear, "click", () => setTracing(false));
  listen(start, "click", () => setTracing(true));
  listen(fold, "change", () => {
    opened.clear();
    context.redraw();
  });

  /** The controls are told: only a trace is shaded in colours of the scale. */
  function setTraced(on: boolean): void {
    tracing = on;
    setAttributes(context.root, { "data-traced": on || null });
  }

  function setTracing(on: boolean): void {
    setTraced(on);
    opened.clear();
    context.redraw();
  }

  function choose(at: Spot): void {
    const column = picture?.columns[at.column];
    if (!state || !column) return;
    if (column.unit < 0) {
      for (const unit of column.units) opened.add(unit);
      context.redraw();
      return;
    }
    const index = state.layout.units[column.unit]?.index ?? 0;
    if (at.level === 0) context.set({ focus: index });
    else {
      const same = at.level === picture?.chosen.level && at.column === picture?.chosen.column;
      setTraced(!(same && tracing));
      context.set({ focus: index, layer: at.level - 1 });
    }
    context.redraw();
  }

  function point(event: PointerEvent): void {
    if (!picture || !geometry) return;
    const box = base.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    spot = nodeAt(geometry, picture.columns.length, x, y, scroller.scrollLeft);
    const edge = spot ? -1 : edgeAt(geometry, picture.edges, x, y, scroller.scrollLeft);
    const marked = spot ? edgesOf(picture, spot) : edge >= 0 ? [edge] : [];
    drawHighlight(overlay, geometry, picture, scroller.scrollLeft, spot, marked, context.inks());
    stage.style.cursor = spot ? "pointer" : "";
    const lines = spot
      ? aboutNode(picture, spot, marked)
      : edge >= 0
        ? aboutEdge(picture, edge)
        : null;
    if (lines) context.tip.at(event.clientX, event.clientY, lines);
    else context.tip.hide();
  }

  listen(stage, "pointermove", point);
  listen(stage, "pointerleave", () => {
    spot = null;
    context.tip.hide();
    if (picture && geometry)
      drawHighlight(overlay, geometry, picture, scroller.scrollLeft, null, [], context.inks());
  });
  listen(stage, "click", (event) => {
    if (!picture || !geometry) return;
    const box = base.getBoundingClientRect();
    const at = nodeAt(
      geometry,
      picture.columns.length,
      event.clientX - box.left,
      event.clientY - box.top,
      scroller.scrollLeft,
    );
    if (at) choose(at);
  });
  listen(scroller, "scroll", () => draw());
  listen(scroller, "keydown", (event) => {
    if (!state) return;
    if (event.key === "ArrowUp") moveLayer(state, context, 1);
    else if (event.key === "ArrowDown") moveLayer(state, context, -1);
    else if (event.key === "ArrowLeft") moveFocus(state, context, -1);
    else if (event.key === "ArrowRight") moveFocus(state, context, 1);
    else if (event.key === "Enter" || event.key === " ") setTracing(!tracing);
    else if (event.key === "Escape") setTracing(false);
    else return;
    event.preventDefault();
  });

  function layOut(): void {
    if (!picture || !state) return;
    const width = element.clientWidth || 600;
    geometry = measureGraph(
      picture.columns,
      state.layers + 1,
      width,
      context.inks(),
      base.getContext("2d"),
    );
    inner.style.width = `${Math.max(geometry.contentWidth, 1)}px`;
    inner.style.height = `${geometry.height}px`;
    scroller.style.height = `${geometry.height + (geometry.contentWidth > width ? 14 : 0)}px`;
    const ratio = globalThis.devicePixelRatio || 1;
    for (const canvas of [base, overlay]) {
      const size = [Math.round(width * ratio), Math.round(geometry.height * ratio)] as const;
      if (canvas.width !== size[0]) canvas.width = size[0];
      if (canvas.height !== size[1]) canvas.height = size[1];
      canvas.style.width = `${width}px`;
      canvas.style.height = `${geometry.height}px`;
    }
    stage.style.width = `${Math.min(width, geometry.contentWidth)}px`;
    stage.style.height = `${geometry.height}px`;
  }

  function draw(): void {
    if (!picture || !geometry) return;
    drawGraph(base, geometry, picture, scroller.scrollLeft, context.inks());
    drawHighlight(overlay, geometry, picture, scroller.scrollLeft, null, [], context.inks());
  }

  function showChosen(): void {
    if (!picture || !geometry || geometry.contentWidth <= geometry.width) return;
    const x = (picture.chosen.column + 0.5) * geometry.columnWidth;
    const room = geometry.width - geometry.left;
    if (x < scroller.scrollLeft || x > scroller.scrollLeft + room)
      scroller.scrollLeft = x - room / 2;
  }

  onResize(
    element,
    () => {
      layOut();
      draw();
    },
    context.signal,
  );

  function hide(lack: { text: string; actions: { label: string; run(): void }[] }): void {
    picture = null;
    notice.update(lack.text, lack.actions);
    scroller.hidden = bar.hidden = caption.hidden = true;
    legend.update(null, "");
    table.update(null);
  }

  return {
    update(next) {
      const moved = state?.traits.focus !== next.traits.focus;
      state = next;
      const method = next.method;
      if (!method) return hide({ text: "", actions: [] });
      if (method.yields !== "maps")
        return hide(withoutMaps(next, context, "So there is no graph to draw."));
      const maps = next.tokenMaps(method.id, next.layers - 1);
      const there = maps.filter((map) => map !== undefined).length;
      if (there === 0) return hide(absent(next, context, method.id));
      scroller.hidden = bar.hidden = caption.hidden = false;
      const folded = fold.checked ? ROOM : Number.POSITIVE_INFINITY;
      const opening = [...opened].join(",");
      const scale = (size: number) => context.palette().scale(false, size);
      picture = memo(next, maps, method.combine, tracing, folded, opened, opening, scale);
      const traced = picture.traced;
      foldBox.hidden = next.layout.rows.length <= ROOM;
      clear.hidden = !tracing;
      start.hidden = tracing;
      const waits =
        there < next.layers ? `${plural(there, "layer")} of ${next.layers} so far.` : "";
      const limit = limitWords(picture.edges, next.traits.top_k);
      const untraceable =
        tracing && !traced
          ? "Not all layers below are there yet: the trace follows when they are."
          : "";
      const said = [waits, untraceable, limit, foldWords(picture)].filter(Boolean).join(" ");
      notice.update(said || null);
      const name = quoted(next.focusLabel);
      const flow =
        method.combine === "flow"
          ? " (This method combines layers by maximum flow; the trace follows the plain product of its maps.)"
          : "";
      const words = traced
        ? `Where ${name} at layer ${next.layer} comes from: every line and dot is as strong as the share of it that passes there; the names below are shaded by each input token's share.${flow}`
        : "What each token takes from the tokens of the layer below, as a share. Click a dot to trace where it comes from.";
      setText(caption, words);
      const strongest = picture.edges.count;
      const summary = `${method.title} as a graph of ${next.layers} layers and ${picture.columns.length} columns with ${strongest} edges. ${words}`;
      setAttributes(base, { "aria-label": summary });
      setAttributes(scroller, {
        "aria-label":
          "Graph. Left and right move the focus token, up and down the layer, Enter traces, Escape shows all edges.",
      });
      layOut();
      if (moved) showChosen();
      draw();
      legend.update(traced ? picture.scale : null, "share of the traced token");
      table.update(tableOf(next, picture, words));
    },
  };
}

function foldWords(picture: Picture): string {
  const folded = picture.columns.filter((column) => column.unit < 0);
  if (folded.length === 0) return "";
  const count = folded.reduce((sum, column) => sum + column.units.length, 0);
  const input = picture.shares?.[0];
  let share = 0;
  picture.columns.forEach((column, c) => {
    if (column.unit < 0) share += input?.[c] ?? 0;
  });
  const carry = input ? `; they give ${percent(share)} in all` : "";
  return `${plural(count, "token")} of little weight are folded (⋯) and their edges left out${carry}. Click a fold to open it.`;
}
