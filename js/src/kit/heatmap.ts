/** A matrix on canvas: scrolls, zooms, shows a crosshair, can be walked by keyboard. */

import { paint, type Scale } from "./colour";
import type { Context } from "./context";
import { h, onResize, setAttributes } from "./dom";
import { drawBase, drawOverlay, type Geometry, measure } from "./heatmap-draw";
import type { Side } from "./heatmap-side";

export interface HeatSpec {
  rows: string[];
  cols: string[];
  values: Float32Array;
  /** Size of `values`, where it is a reduced picture; else that of the labels. */
  picture?: { rows: number; cols: number };
  scale: Scale;
  /** For screen readers: what the picture shows. */
  label: string;
  rowTitle: string;
  colTitle: string;
  selectedRow: number;
  selectedCol: number;
  /** Rows and columns before which the second text begins. */
  rowBreak: number;
  colBreak: number;
  /** Cells of equal sides; otherwise rows are as high as their labels. */
  square: boolean;
  /** Rows run upward, as layers do. */
  upward?: boolean;
  maxHeight?: number;
  /** Lines at the right, a value between 0 and 1 for each row. */
  side?: Side | null;
}

export interface HeatHooks {
  describe(row: number, col: number): string[];
  click?(row: number, col: number): void;
  /** Arrow keys that mean something to the view; true if used. */
  arrow?(key: string): boolean;
}

export interface Heatmap {
  element: HTMLElement;
  update(spec: HeatSpec | null): void;
  zoom(factor: number): void;
}

export function createHeatmap(context: Context, hooks: HeatHooks, zoomable = true): Heatmap {
  const { listen } = context;
  const base = h("canvas", { role: "img" });
  const overlay = h("canvas", { "aria-hidden": "true", class: "mix-overlay" });
  const stage = h("div", { class: "mix-stage" }, base, overlay);
  const inner = h("div", { class: "mix-scroll-inner" }, stage);
  const scroller = h("div", { class: "mix-scroll", tabindex: "0", role: "group" }, inner);
  const element = h("div", { class: "mix-heatmap" }, scroller);
  if (zoomable) element.append(zoomButtons());

  const image = document.createElement("canvas");
  let pixels: ImageData | null = null;
  let spec: HeatSpec | null = null;
  let geometry: Geometry | null = null;
  let magnify = 1;
  let cursor: { row: number; col: number } | null = null;
  let drag: { x: number; y: number; left: number; top: number; moved: boolean } | null = null;

  function zoomButtons(): HTMLElement {
    const button = (label: string, sign: string, work: () => void) => {
      const made = h("button", { type: "button", class: "mix-chip", "aria-label": label }, sign);
      made.title = label;
      listen(made, "click", work);
      return made;
    };
    return h(
      "div",
      { class: "mix-zoom", role: "group", "aria-label": "Zoom" },
      button("Zoom in", "+", () => zoomBy(1.5)),
      button("Zoom out", "−", () => zoomBy(1 / 1.5)),
      button("Show everything", "⤢", () => zoomBy(0)),
    );
  }

  /** Make the picture larger around a point of the stage; 0 shows everything. */
  function zoomBy(factor: number, x?: number, y?: number): void {
    if (!geometry) return;
    const g = geometry;
    const px = x ?? g.left + (g.width - g.left) / 2;
    const py = y ?? g.top + (g.height - g.top) / 2;
    const fx = (px - g.left + scroller.scrollLeft) / g.cellWidth;
    const fy = (py - g.top + scroller.scrollTop) / g.cellHeight;
    magnify = factor === 0 ? 1 : Math.min(Math.max(magnify * factor, 1), 40);
    layOut();
    scroller.scrollLeft = fx * geometry.cellWidth - (px - geometry.left);
    scroller.scrollTop = fy * geometry.cellHeight - (py - geometry.top);
    draw();
  }

  function layOut(): void {
    if (!spec) return;
    const width = element.clientWidth || 600;
    geometry = measure(spec, width, magnify, context.inks(), base.getContext("2d"));
    inner.style.width = `${geometry.contentWidth + geometry.side}px`;
    inner.style.height = `${geometry.contentHeight}px`;
    scroller.style.height = `${geometry.height + (geometry.contentWidth > width ? 14 : 0)}px`;
    stage.style.width = `${Math.min(geometry.width, geometry.contentWidth + geometry.side)}px`;
    stage.style.height = `${geometry.height}px`;
    const ratio = globalThis.devicePixelRatio || 1;
    for (const canvas of [base, overlay]) {
      const w = Math.round(geometry.width * ratio);
      const height = Math.round(geometry.height * ratio);
      if (canvas.width !== w) canvas.width = w;
      if (canvas.height !== height) canvas.height = height;
      canvas.style.width = `${geometry.width}px`;
      canvas.style.height = `${geometry.height}px`;
    }
  }

  function draw(): void {
    if (!spec || !geometry) return;
    const offset = { x: scroller.scrollLeft, y: scroller.scrollTop };
    drawBase(base, image, spec, geometry, offset, context.inks());
    drawOverlay(overlay, spec, geometry, offset, cursor, context.inks());
  }

  function drawHover(): void {
    if (!spec || !geometry) return;
    const offset = { x: scroller.scrollLeft, y: scroller.scrollTop };
    drawOverlay(overlay, spec, geometry, offset, cursor, context.inks());
  }

  function cellAt(event: MouseEvent): { row: number; col: number } | null {
    if (!spec || !geometry) return null;
    const box = base.getBoundingClientRect();
    const x = event.clientX - box.left - geometry.left;
    const y = event.clientY - box.top - geometry.top;
    if (y < 0 || x < -geometry.left) return null;
    const line = Math.floor((y + scroller.scrollTop) / geometry.cellHeight);
    const row = spec.upward ? spec.rows.length - 1 - line : line;
    const col = x < 0 ? -1 : Math.floor((x + scroller.scrollLeft) / geometry.cellWidth);
    if (row < 0 || row >= spec.rows.length || col >= spec.cols.length) return null;
    return { row, col };
  }

  listen(stage, "pointerdown", (event) => {
    drag = {
      x: event.clientX,
      y: event.clientY,
      left: scroller.scrollLeft,
      top: scroller.scrollTop,
      moved: false,
    };
  });
  listen(stage, "pointermove", (event) => {
    if (drag && event.buttons === 1) {
      const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
      if (!drag.moved && Math.hypot(dx, dy) < 4) return;
      if (!drag.moved) stage.setPointerCapture?.(event.pointerId);
      drag.moved = true;
      context.tip.hide();
      scroller.scrollLeft = drag.left - dx;
      scroller.scrollTop = drag.top - dy;
      return;
    }
    cursor = cellAt(event);
    drawHover();
    if (cursor && cursor.col >= 0) {
      context.tip.at(event.clientX, event.clientY, hooks.describe(cursor.row, cursor.col));
    } else context.tip.hide();
  });
  listen(stage, "pointerleave", () => {
    cursor = null;
    drawHover();
    context.tip.hide();
  });
  listen(stage, "click", (event) => {
    const moved = drag?.moved;
    drag = null;
    const cell = cellAt(event);
    if (cell && !moved) hooks.click?.(cell.row, cell.col);
  });
  listen(scroller, "scroll", () => draw());
  if (zoomable) {
    listen(
      stage,
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        const box = base.getBoundingClientRect();
        zoomBy(event.deltaY < 0 ? 1.2 : 1 / 1.2, event.clientX - box.left, event.clientY - box.top);
      },
      { passive: false },
    );
  }
  listen(scroller, "keydown", (event) => {
    if (!spec || !geometry) return;
    if (zoomable && ["+", "=", "-", "0"].includes(event.key)) {
      zoomBy(event.key === "0" ? 0 : event.key === "-" ? 1 / 1.5 : 1.5);
    } else if (event.key.startsWith("Arrow") && hooks.arrow?.(event.key)) {
      // the view has moved layer or focus
    } else if (event.key.startsWith("Arrow")) walk(event.key);
    else if ((event.key === "Enter" || event.key === " ") && cursor) {
      hooks.click?.(cursor.row, Math.max(cursor.col, 0));
    } else if (event.key === "Escape") {
      cursor = null;
      context.tip.hide();
      drawHover();
      return;
    } else return;
    event.preventDefault();
  });
  listen(scroller, "blur", () => {
    cursor = null;
    context.tip.hide();
    drawHover();
  });

  function walk(key: string): void {
    if (!spec || !geometry) return;
    const down = spec.upward ? -1 : 1;
    const step = { ArrowUp: -down, ArrowDown: down }[key] ?? 0;
    const side = { ArrowLeft: -1, ArrowRight: 1 }[key] ?? 0;
    const from = cursor ?? {
      row: Math.max(spec.selectedRow, 0),
      col: Math.max(spec.selectedCol, 0),
    };
    const within = (value: number, count: number) => Math.min(Math.max(value, 0), count - 1);
    cursor = {
      row: within(from.row + step, spec.rows.length),
      col: within(from.col + side, spec.cols.length),
    };
    const line = spec.upward ? spec.rows.length - 1 - cursor.row : cursor.row;
    const x = cursor.col * geometry.cellWidth;
    const y = line * geometry.cellHeight;
    const room = {
      x: geometry.width - geometry.left - geometry.cellWidth,
      y: geometry.height - geometry.top - geometry.cellHeight,
    };
    if (x < scroller.scrollLeft || x > scroller.scrollLeft + room.x)
      scroller.scrollLeft = x - room.x / 2;
    if (y < scroller.scrollTop || y > scroller.scrollTop + room.y)
      scroller.scrollTop = y - room.y / 2;
    drawHover();
    const lines = hooks.describe(cursor.row, cursor.col);
    const box = base.getBoundingClientRect();
    context.tip.at(
      box.left + geometry.left + x - scroller.scrollLeft,
      box.top + geometry.top + y - scroller.scrollTop,
      lines,
    );
    context.announce(lines.join(", "));
  }

  onResize(
    element,
    () => {
      layOut();
      draw();
    },
    context.signal,
  );

  return {
    element,
    zoom: zoomBy,
    update(next) {
      element.hidden = next === null;
      const repaint = next?.values !== spec?.values || next?.scale !== spec?.scale;
      spec = next;
      if (!next) return;
      if (repaint) {
        const size = next.picture ?? { rows: next.rows.length, cols: next.cols.length };
        pixels = toImage(image, pixels, next, size);
      }
      setAttributes(base, { "aria-label": next.label });
      setAttributes(scroller, {
        "aria-label": `${next.label}. Arrow keys move, Enter chooses, Page Up and Page Down change the layer${zoomable ? ", plus and minus zoom" : ""}.`,
      });
      if (cursor && (cursor.row >= next.rows.length || cursor.col >= next.cols.length))
        cursor = null;
      layOut();
      draw();
    },
  };
}

function toImage(
  image: HTMLCanvasElement,
  pixels: ImageData | null,
  spec: HeatSpec,
  size: { rows: number; cols: number },
): ImageData | null {
  if (image.width !== size.cols || image.height !== size.rows) {
    image.width = size.cols;
    image.height = size.rows;
  }
  const draw = image.getContext("2d");
  if (!draw || size.rows * size.cols === 0) return null;
  const fits = pixels?.width === size.cols && pixels.height === size.rows;
  const data = fits && pixels ? pixels : draw.createImageData(size.cols, size.rows);
  const into = new Uint32Array(data.data.buffer);
  if (spec.upward) {
    for (let r = 0; r < size.rows; r++) {
      const from = spec.values.subarray(r * size.cols, (r + 1) * size.cols);
      const line = size.rows - 1 - r;
      paint(from, spec.scale, into.subarray(line * size.cols, (line + 1) * size.cols));
    }
  } else paint(spec.values, spec.scale, into);
  draw.putImageData(data, 0, 0);
  return data;
}
