/** Geometry and drawing of the graph; no state, no events. */

import type { Column, Edges } from "../state/graph-model";
import type { Scale } from "./colour";
import type { Inks } from "./context";

export interface GraphGeometry {
  width: number;
  height: number;
  left: number;
  bottom: number;
  columnWidth: number;
  levelHeight: number;
  contentWidth: number;
  levels: number;
  upright: boolean;
}

export interface Picture {
  columns: Column[];
  edges: Edges;
  /** [levels][columns]; null where nothing is traced. */
  shares: Float64Array[] | null;
  /** The chosen node: the present layer and focus. */
  chosen: { level: number; column: number };
  traced: boolean;
  scale: Scale;
}

export interface Spot {
  level: number;
  column: number;
}

const TOP = 16;
const BINS = 10;
type Draw = CanvasRenderingContext2D;

export function measureGraph(
  columns: Column[],
  levels: number,
  width: number,
  inks: Inks,
  draw: Draw | null,
): GraphGeometry {
  if (draw) draw.font = `${inks.size}px ${inks.font}`;
  let widest = 0;
  for (const { text } of columns) {
    widest = Math.max(widest, draw ? draw.measureText(text).width : text.length * inks.size * 0.55);
  }
  const left = Math.ceil(inks.size * 5.4);
  const least = inks.size * 2;
  const room = Math.max(width - left - 8, 60);
  const columnWidth = Math.max(least, Math.min(room / Math.max(columns.length, 1), inks.size * 6));
  const upright = widest + 8 > columnWidth;
  const bottom = (upright ? Math.min(widest, 90) : inks.size) + 24;
  const levelHeight = Math.max(
    inks.size * 2.1,
    Math.min(inks.size * 4, 520 / Math.max(levels - 1, 1)),
  );
  return {
    width,
    height: TOP + (levels - 1) * levelHeight + bottom,
    left,
    bottom,
    columnWidth,
    levelHeight,
    contentWidth: left + columns.length * columnWidth + 8,
    levels,
    upright,
  };
}

export const xOf = (g: GraphGeometry, column: number, scroll: number) =>
  g.left + (column + 0.5) * g.columnWidth - scroll;
export const yOf = (g: GraphGeometry, level: number) =>
  TOP + (g.levels - 1 - level) * g.levelHeight;

export function prepare(canvas: HTMLCanvasElement, g: GraphGeometry): Draw | null {
  const draw = canvas.getContext("2d");
  if (!draw) return null;
  const ratio = canvas.width / Math.max(g.width, 1);
  draw.setTransform(ratio, 0, 0, ratio, 0, 0);
  draw.clearRect(0, 0, g.width, g.height);
  return draw;
}

function line(draw: Draw, g: GraphGeometry, edges: Edges, e: number, scroll: number): void {
  const x1 = xOf(g, edges.upper[e] as number, scroll);
  const x0 = xOf(g, edges.lower[e] as number, scroll);
  const level = edges.layer[e] as number;
  const y1 = yOf(g, level + 1);
  const y0 = yOf(g, level);
  draw.moveTo(x1, y1);
  draw.lineTo(x0, y0);
}

function inSight(g: GraphGeometry, edges: Edges, e: number, scroll: number): boolean {
  const a = xOf(g, edges.upper[e] as number, scroll);
  const b = xOf(g, edges.lower[e] as number, scroll);
  return Math.max(a, b) >= g.left - 20 && Math.min(a, b) <= g.width + 20;
}

export function drawGraph(
  canvas: HTMLCanvasElement,
  g: GraphGeometry,
  picture: Picture,
  scroll: number,
  inks: Inks,
): void {
  const draw = prepare(canvas, g);
  if (!draw) return;
  const { edges, columns } = picture;
  drawLevels(draw, g, picture, inks);
  draw.save();
  draw.beginPath();
  draw.rect(g.left - 4, 0, g.width - g.left + 4, g.height);
  draw.clip();
  drawBreak(draw, g, columns, scroll, inks);
  // Edges come sorted, weak first; one path per step of strength keeps 5,000 of them quick.
  // Many of them are drawn thinner and fainter, or they would run together.
  draw.strokeStyle = inks.edge;
  const faintest = picture.traced ? 0.55 : 0.22;
  const crowd = Math.min(1, Math.max(faintest, Math.sqrt(700 / Math.max(edges.count, 1))));
  if (!picture.traced) drawKept(draw, g, edges, scroll, inks);
  const between = picture.traced ? edges.strongest : edges.between;
  const own = (at: number) => !picture.traced && edges.upper[at] === edges.lower[at];
  // Where nearly all are as strong as the strongest, full width would make one slab of them.
  let strong = 0;
  edges.weight.forEach((weight, at) => {
    if (weight > 0.36 * between && !own(at)) strong++;
  });
  const slim = Math.min(1, 500 / Math.max(strong, 1)) ** 2;
  let e = 0;
  for (let bin = 0; bin < BINS; bin++) {
    const upTo = ((bin + 1) / BINS) ** 2 * between; // strength goes with the root
    draw.beginPath();
    for (; e < edges.count && (bin === BINS - 1 || (edges.weight[e] as number) <= upTo); e++) {
      if (!own(e) && inSight(g, edges, e, scroll)) line(draw, g, edges, e, scroll);
    }
    const strength = (bin + 0.7) / BINS;
    draw.globalAlpha = (0.16 + 0.74 * strength) * crowd;
    const width = 0.7 + 5.3 * strength * (picture.traced ? 1 : 0.6);
    // Lines of at most a pixel are drawn several times as fast.
    draw.lineWidth =
      crowd < 1 && strength < 0.6 ? Math.min(width * crowd, 1) : Math.max(width * slim, 0.5);
    draw.stroke();
  }
  draw.globalAlpha = 1;
  drawNodes(draw, g, picture, scroll, inks);
  drawNames(draw, g, picture, scroll, inks);
  draw.restore();
}

/** What tokens keep of themselves: upright lines in a quiet colour. */
function drawKept(draw: Draw, g: GraphGeometry, edges: Edges, scroll: number, inks: Inks): void {
  draw.strokeStyle = inks.muted;
  draw.globalAlpha = 0.35;
  for (let e = 0; e < edges.count; e++) {
    if (edges.upper[e] !== edges.lower[e] || !inSight(g, edges, e, scroll)) continue;
    draw.lineWidth = 0.5 + 3 * (edges.weight[e] as number);
    draw.beginPath();
    line(draw, g, edges, e, scroll);
    draw.stroke();
  }
  draw.strokeStyle = inks.edge;
}

function drawLevels(draw: Draw, g: GraphGeometry, picture: Picture, inks: Inks): void {
  draw.textAlign = "right";
  draw.textBaseline = "middle";
  for (let level = 0; level < g.levels; level++) {
    const y = yOf(g, level);
    const chosen = level === picture.chosen.level;
    draw.strokeStyle = inks.line;
    draw.lineWidth = 1;
    draw.globalAlpha = 0.6;
    draw.beginPath();
    draw.moveTo(g.left, y);
    draw.lineTo(Math.min(g.width, g.contentWidth), y);
    draw.stroke();
    draw.globalAlpha = 1;
    draw.font = `${chosen ? "600 " : ""}${inks.size}px ${inks.font}`;
    draw.fillStyle = chosen ? inks.accent : inks.muted;
    draw.fillText(level === 0 ? "input" : `layer ${level - 1}`, g.left - 8, y);
  }
}

function drawBreak(
  draw: Draw,
  g: GraphGeometry,
  columns: Column[],
  scroll: number,
  inks: Inks,
): void {
  const at = columns.findIndex((column) => column.segment > 0);
  if (at <= 0) return;
  const x = xOf(g, at, scroll) - g.columnWidth / 2;
  draw.strokeStyle = inks.text;
  draw.setLineDash([4, 4]);
  draw.beginPath();
  draw.moveTo(x, 0);
  draw.lineTo(x, g.height);
  draw.stroke();
  draw.setLineDash([]);
}

function drawNodes(
  draw: Draw,
  g: GraphGeometry,
  picture: Picture,
  scroll: number,
  inks: Inks,
): void {
  const { columns, shares, chosen } = picture;
  for (let level = 0; level < g.levels; level++) {
    const y = yOf(g, level);
    for (let c = 0; c < columns.length; c++) {
      const x = xOf(g, c, scroll);
      if (x < g.left - 10 || x > g.width + 10) continue;
      const share = shares?.[level]?.[c] ?? 0;
      const radius = shares ? 1.6 + 7 * Math.sqrt(share) : 2.6;
      draw.beginPath();
      draw.arc(x, y, radius, 0, 2 * Math.PI);
      const single = (columns[c]?.unit ?? -1) >= 0;
      draw.fillStyle = shares && share > 0.001 && single ? inks.edge : inks.muted;
      draw.globalAlpha = shares && share <= 0.001 ? 0.35 : 1;
      draw.fill();
      draw.globalAlpha = 1;
      if (level === chosen.level && c === chosen.column) {
        draw.strokeStyle = inks.accent;
        draw.lineWidth = 2.5;
        draw.beginPath();
        draw.arc(x, y, radius + 4, 0, 2 * Math.PI);
        draw.stroke();
      }
    }
  }
}

/** Token names under the input, shaded by their share where something is traced. */
function drawNames(
  draw: Draw,
  g: GraphGeometry,
  picture: Picture,
  scroll: number,
  inks: Inks,
): void {
  const { columns, shares, scale, chosen } = picture;
  const top = yOf(g, 0) + 12;
  draw.textBaseline = "middle";
  columns.forEach((column, c) => {
    const x = xOf(g, c, scroll);
    if (x < g.left - 40 || x > g.width + 40) return;
    const strong = c === chosen.column;
    const value = shares?.[0]?.[c];
    draw.font = `${strong ? "600 " : ""}${inks.size}px ${inks.font}`;
    const room = g.upright ? g.bottom - 18 : g.columnWidth - 6;
    const text = cut(draw, column.text, room);
    const width = draw.measureText(text).width;
    draw.save();
    draw.translate(x, top);
    if (g.upright) draw.rotate(Math.PI / 2);
    else draw.translate(-width / 2, inks.size * 0.7);
    const folded = column.unit < 0;
    if (value !== undefined && !folded) {
      draw.fillStyle = scale.css(value);
      draw.fillRect(-3, -inks.size * 0.72, width + 6, inks.size * 1.44);
    }
    if (folded) draw.fillStyle = inks.muted;
    else if (value !== undefined) draw.fillStyle = scale.ink(value);
    else draw.fillStyle = strong ? inks.accent : inks.text;
    draw.textAlign = "left";
    draw.fillText(text, 0, 0);
    draw.restore();
  });
}

function cut(draw: Draw, text: string, room: number): string {
  if (draw.measureText(text).width <= room) return text;
  const characters = [...text];
  while (characters.length > 1 && draw.measureText(`${characters.join("")}…`).width > room)
    characters.pop();
  return `${characters.join("")}…`;
}

/** Edges of one node, or one edge, over the base picture. */
export function drawHighlight(
  canvas: HTMLCanvasElement,
  g: GraphGeometry,
  picture: Picture,
  scroll: number,
  spot: Spot | null,
  marked: number[],
  inks: Inks,
): void {
  const draw = prepare(canvas, g);
  if (!draw || (!spot && marked.length === 0)) return;
  draw.save();
  draw.beginPath();
  draw.rect(g.left - 4, 0, g.width - g.left + 4, g.height);
  draw.clip();
  draw.strokeStyle = inks.accent;
  for (const e of marked) {
    draw.lineWidth = 1.2 + 3.5 * ((picture.edges.weight[e] as number) / picture.edges.strongest);
    draw.beginPath();
    line(draw, g, picture.edges, e, scroll);
    draw.stroke();
  }
  if (spot) {
    draw.lineWidth = 2;
    draw.beginPath();
    draw.arc(xOf(g, spot.column, scroll), yOf(g, spot.level), 7, 0, 2 * Math.PI);
    draw.stroke();
  }
  draw.restore();
}

/** The node near a point of the canvas. */
export function nodeAt(
  g: GraphGeometry,
  columns: number,
  x: number,
  y: number,
  scroll: number,
): Spot | null {
  const column = Math.floor((x + scroll - g.left) / g.columnWidth);
  if (x < g.left - 4 || column < 0 || column >= columns) return null;
  if (y > yOf(g, 0) + 8) return y <= g.height ? { level: 0, column } : null; // its name
  const level = g.levels - 1 - Math.round((y - TOP) / g.levelHeight);
  if (level < 0 || level >= g.levels) return null;
  const near = Math.min(10, g.levelHeight * 0.35);
  if (Math.abs(y - yOf(g, level)) > near) return null;
  return Math.abs(x - xOf(g, column, scroll)) <= Math.max(10, g.columnWidth / 2)
    ? { level, column }
    : null;
}

/** The edge near a point between two levels. */
export function edgeAt(
  g: GraphGeometry,
  edges: Edges,
  x: number,
  y: number,
  scroll: number,
): number {
  const layer = g.levels - 2 - Math.floor((y - TOP) / g.levelHeight);
  if (layer < 0 || layer > g.levels - 2) return -1;
  const down = (y - yOf(g, layer + 1)) / g.levelHeight;
  let best = -1;
  let least = 5;
  for (let e = edges.count - 1; e >= 0; e--) {
    if (edges.layer[e] !== layer) continue;
    const x1 = xOf(g, edges.upper[e] as number, scroll);
    const run = xOf(g, edges.lower[e] as number, scroll) - x1;
    // How far the line is at its nearest, not just at this height.
    const distance = Math.abs(x1 + run * down - x) / Math.hypot(run / g.levelHeight, 1);
    if (distance < least) {
      least = distance;
      best = e;
    }
  }
  return best;
}
