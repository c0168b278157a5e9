/** Drawing of curves with a band: axes, lines, labels beside them, the chosen point. */

import type { Context, Inks } from "./context";

export interface Line {
  id: string;
  title: string;
  colour: string;
  dash: number[];
  values: number[];
}

export interface CurvesSpec {
  /** Of tokens removed, 0 to 1, ascending. */
  shares: number[];
  lines: Line[];
  band: { mean: number[]; low: number[]; high: number[] } | null;
  /** What is taken away at each point but the first, in the place of shares. */
  marks: string[] | null;
  xTitle: string;
  yTitle: string;
  /** For screen readers: what the picture shows. */
  label: string;
}

export interface Point {
  line: number;
  at: number;
}

export interface Frame {
  width: number;
  height: number;
  left: number;
  right: number;
  top: number;
  bottom: number;
  ticks: number[];
}

const DASHES: number[][] = [[], [8, 4], [2, 3.5], [11, 4, 2, 4]];
/** Apart for every common kind of colour blindness, and dark (light) enough for thin lines. */
const COLOURS = {
  light: ["#0b62b0", "#c24a00", "#00795a", "#8e3b86"],
  dark: ["#6fb3f2", "#ff9d5c", "#4fd0a5", "#e59bd8"],
};
const WIDE = 430; // pixels from which on lines carry their names

export function styleOf(index: number, context: Context): { colour: string; dash: number[] } {
  const colours = COLOURS[context.root.dataset.theme === "dark" ? "dark" : "light"];
  return {
    colour: colours[index % colours.length] as string,
    dash: DASHES[index % DASHES.length] as number[],
  };
}

/** Round numbers from 0 to at least the largest value. */
export function ticksUpTo(largest: number): number[] {
  const rough = Math.max(largest, 1e-9) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((x) => x * power).find((s) => s >= rough * 0.999) ?? rough;
  const count = Math.max(1, Math.ceil(largest / step - 1e-6));
  return Array.from({ length: count + 1 }, (_, i) => Number((i * step).toPrecision(6)));
}

export function frameOf(spec: CurvesSpec, width: number, inks: Inks): Frame {
  const all = [...spec.lines.flatMap((line) => line.values), ...(spec.band?.high ?? [])];
  const ticks = ticksUpTo(Math.max(...all, 1e-6));
  const widest = Math.max(...ticks.map((tick) => String(tick).length));
  return {
    width,
    height: Math.round(Math.min(Math.max(width * 0.42, 200), 300)),
    left: Math.round(inks.size * (0.6 * widest + 2.2)),
    right: Math.round(inks.size * 1.8),
    top: Math.round(inks.size * 0.8),
    bottom: Math.round(inks.size * (spec.marks ? 5.4 : 3.6)),
    ticks,
  };
}

export const xOf = (frame: Frame, share: number) =>
  frame.left + share * (frame.width - frame.left - frame.right);

export function yOf(frame: Frame, value: number): number {
  const top = frame.ticks[frame.ticks.length - 1] ?? 1;
  return frame.height - frame.bottom - (value / top) * (frame.height - frame.top - frame.bottom);
}

export function pen(canvas: HTMLCanvasElement, frame: Frame): CanvasRenderingContext2D | null {
  const draw = canvas.getContext("2d");
  if (!draw) return null;
  const ratio = globalThis.devicePixelRatio || 1;
  draw.setTransform(ratio, 0, 0, ratio, 0, 0);
  draw.clearRect(0, 0, frame.width, frame.height);
  return draw;
}

export function drawCurves(
  canvas: HTMLCanvasElement,
  spec: CurvesSpec,
  frame: Frame,
  inks: Inks,
): void {
  const draw = pen(canvas, frame);
  if (!draw) return;
  draw.font = `${inks.size}px ${inks.font}`;
  drawAxes(draw, spec, frame, inks);
  if (spec.band) drawBand(draw, spec, spec.band, frame, inks);
  // The first is the one in front: drawn last, on top.
  for (const line of [...spec.lines].reverse()) {
    draw.strokeStyle = line.colour;
    draw.lineWidth = 2;
    draw.setLineDash(line.dash);
    draw.lineJoin = "round";
    trace(draw, spec.shares, line.values, frame);
    draw.stroke();
    draw.setLineDash([]);
    draw.fillStyle = line.colour;
    line.values.forEach((value, k) => {
      dot(draw, xOf(frame, spec.shares[k] ?? 0), yOf(frame, value), 2.4);
    });
  }
  if (frame.width >= WIDE) drawNames(draw, spec, frame, inks);
}

function trace(
  draw: CanvasRenderingContext2D,
  shares: number[],
  values: number[],
  frame: Frame,
): void {
  draw.beginPath();
  values.forEach((value, k) => {
    draw.lineTo(xOf(frame, shares[k] ?? 0), yOf(frame, value));
  });
}

function dot(draw: CanvasRenderingContext2D, x: number, y: number, radius: number): void {
  draw.beginPath();
  draw.arc(x, y, radius, 0, 2 * Math.PI);
  draw.fill();
}

function drawAxes(
  draw: CanvasRenderingContext2D,
  spec: CurvesSpec,
  frame: Frame,
  inks: Inks,
): void {
  const [floor, end] = [frame.height - frame.bottom, frame.width - frame.right];
  draw.lineWidth = 1;
  draw.strokeStyle = inks.line;
  draw.fillStyle = inks.muted;
  draw.textAlign = "right";
  draw.textBaseline = "middle";
  for (const tick of frame.ticks) {
    const y = Math.round(yOf(frame, tick)) + 0.5;
    draw.beginPath();
    draw.moveTo(frame.left, y);
    draw.lineTo(end, y);
    draw.stroke();
    draw.fillText(String(tick), frame.left - 6, y);
  }
  draw.textAlign = "center";
  draw.textBaseline = "top";
  if (spec.marks) drawMarks(draw, spec, spec.marks, frame, inks);
  for (const share of spec.marks ? [] : [0, 0.25, 0.5, 0.75, 1]) {
    const x = Math.round(xOf(frame, share)) + 0.5;
    draw.beginPath();
    draw.moveTo(x, floor);
    draw.lineTo(x, floor + 4);
    draw.stroke();
    draw.fillText(`${100 * share} %`, x, floor + 7);
  }
  draw.fillText(spec.xTitle, (frame.left + end) / 2, floor + 7 + 1.45 * inks.size);
  draw.save();
  draw.translate(2, (frame.top + floor) / 2);
  draw.rotate(-Math.PI / 2);
  draw.fillText(spec.yTitle, 0, 0, floor - frame.top);
  draw.restore();
}

/** The words in the order in which they go, upright below the axis. */
function drawMarks(
  draw: CanvasRenderingContext2D,
  spec: CurvesSpec,
  marks: string[],
  frame: Frame,
  inks: Inks,
): void {
  const floor = frame.height - frame.bottom;
  const step = (frame.width - frame.left - frame.right) / Math.max(marks.length, 1);
  const every = Math.max(1, Math.ceil((inks.size + 2) / step));
  marks.forEach((word, k) => {
    if (k % every !== 0) return;
    draw.save();
    draw.translate(xOf(frame, spec.shares[k + 1] ?? 1), floor + 7);
    draw.rotate(Math.PI / 2);
    draw.textAlign = "left";
    draw.textBaseline = "middle";
    const short = [...word].length > 10 ? `${[...word].slice(0, 9).join("")}…` : word;
    draw.fillText(short, 0, 0);
    draw.restore();
  });
}

function drawBand(
  draw: CanvasRenderingContext2D,
  spec: CurvesSpec,
  band: { mean: number[]; low: number[]; high: number[] },
  frame: Frame,
  inks: Inks,
): void {
  draw.fillStyle = inks.muted;
  draw.globalAlpha = 0.18;
  draw.beginPath();
  band.high.forEach((value, k) => {
    draw.lineTo(xOf(frame, spec.shares[k] ?? 0), yOf(frame, value));
  });
  for (let k = band.low.length - 1; k >= 0; k--) {
    draw.lineTo(xOf(frame, spec.shares[k] ?? 0), yOf(frame, band.low[k] ?? 0));
  }
  draw.closePath();
  draw.fill();
  draw.globalAlpha = 1;
  draw.strokeStyle = inks.muted;
  draw.lineWidth = 1.5;
  trace(draw, spec.shares, band.mean, frame);
  draw.stroke();
}

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Names where their line is alone: all curves begin and end together. */
function drawNames(
  draw: CanvasRenderingContext2D,
  spec: CurvesSpec,
  frame: Frame,
  inks: Inks,
): void {
  const named = spec.lines.map(({ title, colour, values }) => ({ title, colour, values }));
  if (spec.band) named.push({ title: "random", colour: inks.muted, values: spec.band.mean });
  const dense = named.map(({ values }) => samples(spec.shares, values, frame));
  const placed: Box[] = [];
  draw.textBaseline = "middle";
  draw.textAlign = "left";
  named.forEach(({ title, colour, values }, own) => {
    const width = draw.measureText(title).width + 6;
    const height = inks.size * 1.25;
    let best: { box: Box; cost: number } | null = null;
    for (let k = 1; k < values.length - 1; k++) {
      const x = xOf(frame, spec.shares[k] ?? 0);
      const y = yOf(frame, values[k] ?? 0);
      for (const [dx, dy] of [
        [6, -height - 3],
        [6, 3],
        [-width - 6, -height - 3],
        [-width - 6, 3],
      ] as const) {
        const box = { x: x + dx, y: y + dy, width, height };
        const cost = costOf(box, own, dense, placed, frame) + 0.02 * k;
        if (!best || cost < best.cost) best = { box, cost };
      }
    }
    if (!best || best.cost > 40) return;
    placed.push(best.box);
    draw.lineWidth = 3;
    draw.strokeStyle = inks.ground;
    draw.strokeText(title, best.box.x + 3, best.box.y + height / 2);
    draw.fillStyle = colour;
    draw.fillText(title, best.box.x + 3, best.box.y + height / 2);
  });
}

function samples(shares: number[], values: number[], frame: Frame): [number, number][] {
  const out: [number, number][] = [];
  for (let k = 0; k + 1 < values.length; k++) {
    for (let step = 0; step < 6; step++) {
      const mix = (a: number, b: number) => a + ((b - a) * step) / 6;
      out.push([
        xOf(frame, mix(shares[k] ?? 0, shares[k + 1] ?? 0)),
        yOf(frame, mix(values[k] ?? 0, values[k + 1] ?? 0)),
      ]);
    }
  }
  return out;
}

function costOf(
  box: Box,
  own: number,
  curves: [number, number][][],
  placed: Box[],
  frame: Frame,
): number {
  const outside =
    box.x < frame.left ||
    box.x + box.width > frame.width - 4 ||
    box.y < 0 ||
    box.y + box.height > frame.height - frame.bottom;
  let cost = outside ? 1000 : 0;
  for (const other of placed) {
    const apart =
      box.x > other.x + other.width ||
      other.x > box.x + box.width ||
      box.y > other.y + other.height ||
      other.y > box.y + box.height;
    if (!apart) cost += 1000;
  }
  curves.forEach((points, index) => {
    // Near its own line is right, near another one misleads.
    const pad = index === own ? 0 : 7;
    for (const [x, y] of points) {
      const inside =
        x > box.x - pad &&
        x < box.x + box.width + pad &&
        y > box.y - pad &&
        y < box.y + box.height + pad;
      if (inside) cost += 1;
    }
  });
  return cost;
}

export function drawPoint(
  canvas: HTMLCanvasElement,
  spec: CurvesSpec,
  frame: Frame,
  point: Point | null,
  inks: Inks,
): void {
  const draw = pen(canvas, frame);
  const line = point && spec.lines[point.line];
  const value = line && point ? line.values[point.at] : undefined;
  if (!draw || !point || !line || value === undefined) return;
  const [x, y] = [xOf(frame, spec.shares[point.at] ?? 0), yOf(frame, value)];
  draw.strokeStyle = inks.muted;
  draw.lineWidth = 1;
  draw.beginPath();
  draw.moveTo(x, frame.top);
  draw.lineTo(x, frame.height - frame.bottom);
  draw.stroke();
  draw.fillStyle = line.colour;
  dot(draw, x, y, 6);
  draw.strokeStyle = inks.ground;
  draw.lineWidth = 2;
  draw.stroke();
}
