/** Curves on canvas whose points can be hovered, and walked by keyboard. */

import type { Context } from "./context";
import {
  type CurvesSpec,
  drawCurves,
  drawPoint,
  type Frame,
  frameOf,
  type Point,
  xOf,
  yOf,
} from "./curves-draw";
import { h, onResize, setAttributes } from "./dom";

const TOGETHER = 4; // pixels

export interface CurvesHooks {
  /** A point in words, the first line its title; `whole` for those who see no picture. */
  describe(point: Point, whole: boolean): string[];
  /** A point was chosen; null: none is. */
  choose(point: Point | null): void;
}

export interface Curves {
  element: HTMLElement;
  update(spec: CurvesSpec | null): void;
  /** Show a point that was chosen elsewhere. */
  select(point: Point): void;
}

export function createCurves(context: Context, hooks: CurvesHooks): Curves {
  const { listen } = context;
  const base = h("canvas", { role: "img" });
  const overlay = h("canvas", { "aria-hidden": "true", class: "mix-overlay" });
  const stage = h("div", { class: "mix-stage" }, base, overlay);
  const element = h(
    "div",
    { class: "mix-curves", tabindex: "0", role: "group", "data-part": "curves" },
    stage,
  );
  let spec: CurvesSpec | null = null;
  let frame: Frame | null = null;
  let chosen: Point | null = null;

  function draw(): void {
    if (!spec) return;
    frame = frameOf(spec, element.clientWidth || 600, context.inks());
    stage.style.height = `${frame.height}px`;
    const ratio = globalThis.devicePixelRatio || 1;
    for (const canvas of [base, overlay]) {
      const [width, height] = [Math.round(frame.width * ratio), Math.round(frame.height * ratio)];
      if (canvas.width !== width) canvas.width = width;
      if (canvas.height !== height) canvas.height = height;
      canvas.style.width = `${frame.width}px`;
      canvas.style.height = `${frame.height}px`;
    }
    drawCurves(base, spec, frame, context.inks());
    drawPoint(overlay, spec, frame, chosen, context.inks());
  }

  function choose(point: Point | null): void {
    chosen = point;
    if (spec && frame) drawPoint(overlay, spec, frame, chosen, context.inks());
    hooks.choose(point);
  }

  function nearest(event: MouseEvent): Point | null {
    if (!spec || !frame) return null;
    const box = base.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const found = spec.lines.map(({ values }, line) => {
      let best = { point: { line, at: 0 }, distance: Number.POSITIVE_INFINITY };
      for (const [at, value] of values.entries()) {
        // The place along the axis counts more: the line is told apart at that place.
        const dx = 2 * (xOf(frame as Frame, spec?.shares[at] ?? 0) - x);
        const distance = Math.hypot(dx, yOf(frame as Frame, value) - y);
        if (distance < best.distance) best = { point: { line, at }, distance };
      }
      return best;
    });
    // Where curves run together the first is meant: it is the method in front.
    const least = Math.min(...found.map(({ distance }) => distance));
    return found.find(({ distance }) => distance <= least + TOGETHER)?.point ?? null;
  }

  listen(stage, "pointermove", (event) => {
    const point = nearest(event);
    if (!point) return;
    if (point.line !== chosen?.line || point.at !== chosen.at) choose(point);
    context.tip.at(event.clientX, event.clientY, hooks.describe(point, false));
  });
  listen(stage, "pointerleave", () => context.tip.hide());
  listen(element, "blur", () => context.tip.hide());
  listen(element, "keydown", (event) => {
    if (!spec || spec.lines.length === 0) return;
    const from = chosen ?? { line: 0, at: 0 };
    const last = spec.shares.length - 1;
    const within = (value: number, most: number) => Math.min(Math.max(value, 0), most);
    let { line, at } = from;
    if (event.key === "ArrowRight") at = chosen ? at + 1 : Math.min(1, last);
    else if (event.key === "ArrowLeft") at -= 1;
    else if (event.key === "ArrowDown") line += 1;
    else if (event.key === "ArrowUp") line -= 1;
    else if (event.key === "Home") at = 0;
    else if (event.key === "End") at = last;
    else if (event.key === "Escape") return choose(null);
    else return;
    event.preventDefault();
    const point = { line: within(line, spec.lines.length - 1), at: within(at, last) };
    choose(point);
    if (frame) {
      const box = base.getBoundingClientRect();
      const value = spec.lines[point.line]?.values[point.at] ?? 0;
      const x = box.left + xOf(frame, spec.shares[point.at] ?? 0);
      context.tip.at(x, box.top + yOf(frame, value), hooks.describe(point, false));
    }
    context.announce(hooks.describe(point, true).join(", "));
  });
  onResize(element, draw, context.signal);

  return {
    element,
    select(point) {
      chosen = point;
      if (spec && frame) drawPoint(overlay, spec, frame, chosen, context.inks());
    },
    update(next) {
      element.hidden = next === null;
      spec = next;
      if (!next) {
        chosen = null;
        return;
      }
      if (chosen && (chosen.line >= next.lines.length || chosen.at >= next.shares.length)) {
        choose(null);
      }
      setAttributes(base, { "aria-label": next.label });
      setAttributes(element, {
        "aria-label": `${next.label}. Left and right move along a curve, up and down change the curve.`,
      });
      draw();
    },
  };
}
