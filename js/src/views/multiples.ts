/** All layers of a method, or all chosen methods, as thumbnails. */

import { mapScale, paint, rowScale, type Scale } from "../kit/colour";
import type { Context, View } from "../kit/context";
import { h, setAttributes, setText, show, sync } from "../kit/dom";
import { createLegend, type Legend } from "../kit/legend";
import { createTable } from "../kit/table";
import { number, share } from "../state/format";
import type { State } from "../state/state";
import { leftOutWords, othersWords, quoted } from "../state/words";
import type { Aggregate, MethodEntry, Traits } from "../wire/types";
import { absent, carrierOf, createNotice, withoutMaps } from "./shared";

interface Thumbnail {
  name: string;
  /** What is drawn, where that is not the same in all of them; "" where it is. */
  about: string;
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
  const byLayer = h("button", { type: "button" }, "layers of one method");
  const byMethod = h("button", { type: "button" }, "methods side by side");
  const choice = h(
    "div",
    { class: "mix-segments", role: "group", "aria-label": "What the thumbnails show" },
    byLayer,
    byMethod,
  );
  const dropped = h("p", { class: "mix-notes", "data-part": "left-out" });
  const notice = createNotice(context);
  const grid = h("div", { class: "mix-thumbs", role: "list" });
  const legend = createLegend();
  const table = createTable(context.signal);
  element.append(choice, caption, dropped, notice.element, grid, legend.element, table.element);

  let mode: "layers" | "methods" = "layers";
  let shown: Thumbnail[] = [];
  const keys: Legend[] = [];
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
    // The controls are told: which of them do something depends on it.
    setAttributes(context.root, { "data-multiples": mode });
    context.redraw();
  };

  return {
    update(state) {
      setAttributes(byLayer, { "aria-pressed": String(mode === "layers") });
      setAttributes(byMethod, { "aria-pressed": String(mode === "methods") });
      const method = mode === "layers" ? layeredOf(state) : state.method;
      notice.update(null);
      if (!method) shown = [];
      else if (mode === "methods") shown = methodThumbnails(state, context);
      else if (method.yields === "scores") {
        shown = [];
        const lack = withoutMaps(state, context);
        notice.update(lack.text, lack.actions);
      } else {
        shown = layerThumbnails(state, context, method);
        if (shown.every((thumbnail) => !thumbnail.values)) {
          const lack = absent(state, context, method.id);
          notice.update(lack.text, lack.actions);
        }
      }
      const other =
        method && method !== state.method ? `${state.method?.title} has no layers: ` : "";
      setText(caption, method ? `${other}${captionOf(state, method, mode)}` : "");
      caption.hidden = shown.length === 0;
      setText(dropped, mode === "methods" ? leftOutWords(state) : "");
      show(dropped, mode === "methods" && state.leftOut.length > 0);
      if (mode === "methods" && state.compared.length < 2)
        notice.update(othersWords(state, "see them beside this one"));
      drawThumbnails(grid, shown, keys);
      const scale = mode === "layers" ? (shown[0]?.scale ?? null) : null;
      // Methods have scales of their own, each under its picture.
      shown.forEach((thumbnail, i) => {
        keys[i]?.update(mode === "methods" ? thumbnail.scale : null, "");
      });
      const signed = scale?.signed ? "orange speaks against, blue speaks for; " : "";
      const shares = method?.yields === "maps" && state.traits.aggregate === "rollout";
      const write = shares && scale && !scale.signed ? share : number;
      legend.update(scale, `${signed}one scale for all layers`, write);
      table.update(tableOf(state, shown));
    },
  };
}

/** The method in front, or one that stands in for it where it has no layers. */
function layeredOf(state: State): MethodEntry | undefined {
  const { method } = state;
  return method?.yields === "scores" ? (carrierOf(state) ?? method) : method;
}

function captionOf(state: State, method: MethodEntry, mode: "layers" | "methods"): string {
  const aggregate = drawn(state, method, mode === "layers");
  const layered = mode === "layers" ? [method] : state.compared;
  const single =
    state.traits.aggregate === "sum" && layered.some((one) => drawn(state, one) !== "sum")
      ? " Sums of long texts have no small maps: single layers are shown."
      : "";
  if (mode === "methods") {
    const signed = state.compared.some((one) => one.signed)
      ? " where it has both signs, orange speaks against and blue for;"
      : "";
    return `Each method on a scale of its own;${signed} squares are maps (rows take, columns give), strips are token scores. Click one to open it.${single}`;
  }
  if (method.yields === "maps") {
    const how = {
      rollout: "from the input up to each layer",
      sum: "layers added up to each layer",
      layer: "each layer alone",
    }[aggregate];
    return `${method.title}, ${how}: rows take, columns give. Click a layer to open it.${single}`;
  }
  const how = aggregate === "layer" ? "of each layer alone" : "added up to each layer";
  return `${method.title}: token scores ${how}, first token on the left. Click a layer to open it.`;
}

/** What a thumbnail can show of what is asked for. */
function drawn(state: State, method: MethodEntry, layers = false): Aggregate {
  const { aggregate } = state.traits;
  if (method.passed && layers) return "layer";
  return aggregate === "sum" && method.yields === "maps" && !state.smallSums ? "layer" : aggregate;
}

/** The line under a method's thumbnail. */
function aboutMethod(state: State, method: MethodEntry): string {
  if (method.yields === "scores") return "final scores, no layers";
  const aggregate = drawn(state, method);
  if (method.passed && aggregate !== "layer") return "relevance of the input";
  if (aggregate === "layer") return `layer ${state.layer} alone`;
  if (aggregate === "rollout" && method.yields === "maps")
    return `from the input up to layer ${state.layer}`;
  return `layers 0 to ${state.layer} added up`;
}

function layerThumbnails(state: State, context: Context, method: MethodEntry): Thumbnail[] {
  const layers = Array.from({ length: state.layers }, (_, l) => l);
  const grids = layers.map((l) => valuesOf(state, method, l, true));
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
      about: state.traits.model_info.layer_names?.[l] ?? "",
      label: `${method.title}, layer ${l}${grid ? "" : ": not computed yet"}`,
      chosen: l === state.layer,
      rows: grid?.rows ?? 1,
      cols: grid?.cols ?? 1,
      values: grid?.values ?? null,
      scale,
      open: { layer: l, view: method === state.method ? view : "map" },
    };
  });
}

function methodThumbnails(state: State, context: Context): Thumbnail[] {
  return state.compared.map((method) => {
    const grid = valuesOf(state, method, state.layer);
    return {
      name: method.title,
      about: grid ? aboutMethod(state, method) : "not computed yet",
      label: `${method.title}, ${grid ? aboutMethod(state, method) : "not computed yet"}`,
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

function valuesOf(state: State, method: MethodEntry, layer: number, layers = false) {
  const aggregate = drawn(state, method, layers);
  if (method.yields === "maps") return state.thumbnail(method.id, aggregate, layer);
  const scores = state.scores(method.id, layer, aggregate);
  return scores && { rows: 1, cols: scores.values.length, values: scores.values };
}

function drawThumbnails(grid: HTMLElement, shown: Thumbnail[], keys: Legend[]): void {
  keys.length = Math.min(keys.length, shown.length);
  sync(
    grid,
    shown,
    (_, index) => {
      const key = createLegend();
      keys[index] = key;
      const button = h(
        "button",
        { type: "button", class: "mix-thumb" },
        h("canvas", { role: "img" }),
        h("span", {}),
        h("span", { class: "mix-thumb-about" }),
      );
      return h("div", { role: "listitem" }, button, key.element);
    },
    (item, thumbnail) => {
      const button = item.firstElementChild as HTMLElement;
      const [canvas, name, about] = button.children as unknown as [
        HTMLCanvasElement,
        HTMLElement,
        HTMLElement,
      ];
      setText(name, thumbnail.name);
      setText(about, thumbnail.about);
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
    const scores = entry && state.scores(id, layer, drawn(state, entry, !thumbnail.open.method));
    if (!scores) continue;
    rows.push(thumbnail.name);
    values.push(...scores.values);
  }
  if (rows.length === 0) return null;
  const caption = `Scores for ${quoted(state.focusLabel)} in each thumbnail`;
  return { caption, rowTitle: "thumbnail", colTitle: "token", rows, cols, values };
}
