/** All layers of a method, or all chosen methods, as thumbnails. */

import { mapScale, paint, rowScale, type Scale } from "../colour";
import type { Context, View } from "../context";
import { h, setAttributes, setText, sync } from "../dom";
import { createLegend } from "../legend";
import type { State } from "../state";
import { createTable } from "../table";
import type { MethodEntry, Traits } from "../types";
import { quoted } from "../words";
import { absent, createNotice, withoutMaps } from "./shared";

interface Thumbnail {
  name: string;
  label: string;
  chosen: boolean;
  rows: number;
  cols: number;
  values: Float32Array | null;
  scale: Scale | null;
  open: Partial<Traits>;
}

export function multiplesView(element: HTMLElement, context: Context): View {
  const caption = h("p", { class: "mix-caption" });
  const byLayer = h("button", { type: "button", class: "mix-button" }, "layers of one method");
  const byMethod = h("button", { type: "button", class: "mix-button" }, "methods side by side");
  const choice = h(
    "div",
    { class: "mix-segments", role: "group", "aria-label": "What the thumbnails show" },
    byLayer,
    byMethod,
  );
  const notice = createNotice(context);
  const grid = h("div", { class: "mix-thumbs", role: "list" });
  const legend = createLegend();
  const table = createTable(context.signal);
  element.append(choice, caption, notice.element, grid, legend.element, table.element);

  let mode: "layers" | "methods" = "layers";
  let shown: Thumbnail[] = [];
  context.listen(byLayer, "click", () => pick("layers"));
  context.listen(byMethod, "click", () => pick("methods"));
  context.listen(grid, "click", (event) => {
    const button = (event.target as Element).closest("button");
    const at = button ? [...grid.querySelectorAll("button")].indexOf(button) : -1;
    const opened = shown[at];
    if (opened) context.set(opened.open);
  });
  const pick = (next: typeof mode) => {
    mode = next;
    context.redraw();
  };

  return {
    update(state) {
      setAttributes(byLayer, { "aria-pressed": String(mode === "layers") });
      setAttributes(byMethod, { "aria-pressed": String(mode === "methods") });
      const method = state.method;
      notice.update(null);
      if (!method) shown = [];
      else if (mode === "methods") shown = methodThumbnails(state, context);
      else if (method.yields === "scores") {
        shown = [];
        const lack = withoutMaps(state, context, "So there are no layers to lay out.");
        notice.update(lack.text, lack.actions);
      } else {
        shown = layerThumbnails(state, context, method);
        if (shown.every((thumbnail) => !thumbnail.values)) {
          const lack = absent(state, context, method.id);
          notice.update(lack.text, lack.actions);
        }
      }
      setText(caption, method ? captionOf(state, method, mode) : "");
      caption.hidden = shown.length === 0;
      if (mode === "methods" && state.compared.length < 2) {
        notice.update("Tick the boxes of up to four methods above to see them side by side.");
      }
      drawThumbnails(grid, shown);
      const scale = mode === "layers" ? (shown[0]?.scale ?? null) : null;
      legend.update(scale, mode === "layers" ? "one scale for all layers" : "");
      table.update(tableOf(state, shown));
    },
  };
}

function captionOf(state: State, method: MethodEntry, mode: "layers" | "methods"): string {
  const how =
    state.traits.aggregate === "rollout" ? "from the input up to each layer" : "each layer alone";
  if (mode === "methods")
    return `Layer ${state.layer} by each method, ${how}. Click one to open it.`;
  if (method.yields === "maps") {
    return `${method.title}, ${how}: rows take, columns give. Click a layer to open it.`;
  }
  return `${method.title}: token scores of each layer, first token on the left. Click a layer to open it.`;
}

/** Sums have no reduced pictures; single layers stand in for them. */
const how = (state: State) => (state.traits.aggregate === "rollout" ? "rollout" : "layer");

function layerThumbnails(state: State, context: Context, method: MethodEntry): Thumbnail[] {
  const layers = Array.from({ length: state.layers }, (_, l) => l);
  const grids = layers.map((l) => valuesOf(state, method, l));
  const all = new Float32Array(grids.reduce((sum, g) => sum + (g?.values.length ?? 0), 0));
  let at = 0;
  for (const grid of grids) {
    if (!grid) continue;
    all.set(grid.values, at);
    at += grid.values.length;
  }
  const scale =
    all.length > 0
      ? mapScale(context.palette(), all, method.signed, grids.find((g) => g)?.cols ?? 1)
      : null;
  return layers.map((l) => {
    const grid = grids[l];
    const view = method.yields === "maps" ? "map" : "text";
    return {
      name: `layer ${l}`,
      label: `${method.title}, layer ${l}${grid ? "" : ": not computed yet"}`,
      chosen: l === state.layer,
      rows: grid?.rows ?? 1,
      cols: grid?.cols ?? 1,
      values: grid?.values ?? null,
      scale,
      open: { layer: l, view },
    };
  });
}

function methodThumbnails(state: State, context: Context): Thumbnail[] {
  return state.compared.map((method) => {
    const grid = valuesOf(state, method, state.layer);
    return {
      name: method.title,
      label: `${method.title}, layer ${state.layer}${grid ? "" : ": not computed yet"}`,
      chosen: method.id === state.traits.method,
      rows: grid?.rows ?? 1,
      cols: grid?.cols ?? 1,
      values: grid?.values ?? null,
      scale: grid ? thumbnailScale(context, grid, method.signed) : null,
      open: { method: method.id, view: method.yields === "maps" ? "map" : "text" },
    };
  });
}

function thumbnailScale(
  context: Context,
  grid: { rows: number; cols: number; values: Float32Array },
  signed: boolean,
): Scale {
  return grid.rows === 1
    ? rowScale(context.palette(), grid.values, signed)
    : mapScale(context.palette(), grid.values, signed, grid.cols);
}

function valuesOf(state: State, method: MethodEntry, layer: number) {
  if (method.yields === "maps") return state.thumbnail(method.id, how(state), layer);
  const scores = state.scores(method.id, layer, "layer");
  return scores && { rows: 1, cols: scores.values.length, values: scores.values };
}

function drawThumbnails(grid: HTMLElement, shown: Thumbnail[]): void {
  sync(
    grid,
    shown,
    () =>
      h(
        "div",
        { role: "listitem" },
        h(
          "button",
          { type: "button", class: "mix-thumb" },
          h("canvas", { role: "img" }),
          h("span", {}),
        ),
      ),
    (item, thumbnail) => {
      const button = item.firstElementChild as HTMLElement;
      const [canvas, name] = button.children as unknown as [HTMLCanvasElement, HTMLElement];
      setText(name, thumbnail.name);
      setAttributes(canvas, {
        "aria-label": thumbnail.label,
        "data-flat": thumbnail.rows === 1 || null,
      });
      setAttributes(button, {
        "aria-current": thumbnail.chosen ? "true" : null,
        "data-empty": thumbnail.values ? null : true,
        title: thumbnail.label,
      });
      if (canvas.width !== thumbnail.cols) canvas.width = thumbnail.cols;
      if (canvas.height !== thumbnail.rows) canvas.height = thumbnail.rows;
      const draw = canvas.getContext("2d");
      if (!draw || !thumbnail.values || !thumbnail.scale) {
        draw?.clearRect(0, 0, canvas.width, canvas.height);
        return;
      }
      const data = draw.createImageData(thumbnail.cols, thumbnail.rows);
      paint(thumbnail.values, thumbnail.scale, new Uint32Array(data.data.buffer));
      draw.putImageData(data, 0, 0);
    },
  );
}

/** For screen readers: the scores of the focus in every thumbnail. */
function tableOf(state: State, shown: Thumbnail[]) {
  const cols = state.layout.cols.map(state.label);
  const rows: string[] = [];
  const values: number[] = [];
  for (const thumbnail of shown) {
    const id = thumbnail.open.method ?? state.traits.method;
    const layer = thumbnail.open.layer ?? state.layer;
    const entry = state.entry(id);
    const scores = state.scores(id, layer, entry?.yields === "maps" ? how(state) : "layer");
    if (!scores) continue;
    rows.push(thumbnail.name);
    values.push(...scores.values);
  }
  if (rows.length === 0) return null;
  const caption = `Scores for ${quoted(state.focusLabel)} in each thumbnail`;
  return { caption, rowTitle: "thumbnail", colTitle: "token", rows, cols, values };
}
