/** Geometry and drawing of the graph; no state, no events. */

import type { Column, Edges } from "../state/graph-model";
import type { Inks } from "./context";

export interface GraphGeometry {
  width: number;
  height: number;
  left: number;
  top: number;
  bottom: number;
  columnWidth: number;
  levelHeight: number;
  levels: number;
  upright: boolean;
  narrow: boolean;
  /** Pixels for the whole of what is traced. */
  whole: number;
}

export interface Picture {
  columns: Column[];
  edges: Edges;
  /** [levels][columns]; null where all edges are drawn. */
  shares: Float64Array[] | null;
  /** The node that is traced. */
  start: Spot;
}

export interface Spot {
  level: number;
  column: number;
}

/** Words in the picture. */
export interface Said {
  /** In the pill of the node that is traced. */
  pill: string;
  /** Beside it: what comes in most. The first is in bold; the last is the short form. */
  note: [string, string, string] | null;
}

const RIGHT = 8;
const NARROW = 560;
export const LEAST_COLUMN = 15;
/** A word that carries so much is named in bold. */
const NAMED = 0.025;
type Draw = CanvasRenderingContext2D;

/** Room for the names of levels. */
export function leftOf(width: number, levels: number, inks: Inks): number {
  const digits = 0.6 * Math.max(0, String(levels - 2).length - 1);
  return Math.ceil(inks.size * ((width < NARROW ? 3.6 : 4.6) + digits));
}

export const roomFor = (width: number, levels: number, inks: Inks) =>
  Math.max(4, Math.floor((width - leftOf(width, levels, inks) - RIGHT) / LEAST_COLUMN));

export function measureGraph(
  columns: Column[],
  levels: number,
  width: number,
  inks: Inks,
  draw: Draw | null,
): GraphGeometry {
  if (draw) draw.font = `600 ${inks.size}px ${inks.font}`;
  let widest = 0;
  for (const { text } of columns)
    widest = Math.max(widest, draw ? draw.measureText(text).width : text.length * inks.size * 0.55);
  const narrow = width < NARROW;
  const left = leftOf(width, levels, inks);
  const room = Math.max(width - left - RIGHT, 60);
  const columnWidth = room / Math.max(columns.length, 1);
  const upright = widest + 4 > columnWidth;
  const bottom = upright ? Math.min(Math.ceil(widest), 84) + 18 : inks.size * 2 + 22;
  const steps = Math.max(levels - 1, 1);
  const roomy = narrow ? 46 : 52;
  const levelHeight =
    steps > 12 ? Math.max(14, Math.min(22, 460 / steps)) : Math.min(roomy, 420 / steps);
  const top = inks.size * 3.4;
  return {
    width,
    height: Math.ceil(top + steps * levelHeight + bottom),
    left,
    top,
    bottom,
    columnWidth,
    levelHeight,
    levels,
    upright,
    narrow,
    whole: Math.min(narrow ? 20 : 30, 2.2 * columnWidth),
  };
}

export const xOf = (g: GraphGeometry, column: number) => g.left + (column + 0.5) * g.columnWidth;
export const yOf = (g: GraphGeometry, level: number) =>
  g.top + (g.levels - 1 - level) * g.levelHeight;

export function prepare(canvas: HTMLCanvasElement, g: GraphGeometry): Draw | null {
  const draw = canvas.getContext("2d");
  if (!draw) return null;
  const ratio = canvas.width / Math.max(g.width, 1);
  draw.setTransform(ratio, 0, 0, ratio, 0, 0);
  draw.clearRect(0, 0, g.width, g.height);
  return draw;
}

/** `ways` are drawn in place of the picture's own edges: those of one word. */
export function drawGraph(
  canvas: HTMLCanvasElement,
  g: GraphGeometry,
  picture: Picture,
  said: Said,
  inks: Inks,
  ways: Edges | null = null,
  marked = -1,
): void {
  const draw = prepare(canvas, g);
  if (!draw) return;
  drawLevels(draw, g, picture, inks);
  drawBreak(draw, g, picture.columns, inks);
  if (picture.shares) drawFlow(draw, g, ways ?? picture.edges, inks);
  else drawAll(draw, g, picture.edges, inks, marked);
  drawNodes(draw, g, picture, inks, ways !== null);
  drawPill(draw, g, picture, said, inks);
  drawNames(draw, g, picture, inks, marked);
}

interface Ribbon {
  upper: number;
  lower: number;
  level: number;
  width: number;
  weight: number;
  top: number;
  foot: number;
}

/** Ribbons side by side where they meet a node. */
export function ribbonsOf(g: GraphGeometry, edges: Edges): Ribbon[] {
  const ribbons = Array.from({ length: edges.count }, (_, e): Ribbon => {
    const weight = edges.weight[e] as number;
    const [upper, lower] = [edges.upper[e] as number, edges.lower[e] as number];
    return {
      upper,
      lower,
      weight,
      level: (edges.layer[e] as number) + 1,
      width: Math.max(0.8, weight * g.whole),
      top: xOf(g, upper),
      foot: xOf(g, lower),
    };
  });
  const groups = new Map<string, Ribbon[]>();
  const join = (key: string, ribbon: Ribbon) =>
    groups.set(key, [...(groups.get(key) ?? []), ribbon]);
  for (const ribbon of ribbons) {
    join(`t ${ribbon.level} ${ribbon.upper}`, ribbon);
    join(`f ${ribbon.level} ${ribbon.lower}`, ribbon);
  }
  for (const [key, group] of groups) {
    const atTop = key.startsWith("t");
    group.sort((a, b) => (atTop ? a.lower - b.lower : a.upper - b.upper));
    let x = -group.reduce((sum, one) => sum + one.weight * g.whole, 0) / 2;
    for (const one of group) {
      const own = one.weight * g.whole;
      if (atTop) one.top += x + own / 2;
      else one.foot += x + own / 2;
      x += own;
    }
  }
  return ribbons;
}

function drawFlow(draw: Draw, g: GraphGeometry, edges: Edges, inks: Inks): void {
  const ribbons = ribbonsOf(g, edges);
  const own = (one: Ribbon) => one.upper === one.lower;
  ribbons.sort((a, b) => Number(own(b)) - Number(own(a)) || a.weight - b.weight);
  for (const one of ribbons) {
    const [y0, y1] = [yOf(g, one.level - 1), yOf(g, one.level)];
    const middle = (y0 + y1) / 2;
    draw.strokeStyle = own(one) ? inks.keep : inks.edge;
    draw.globalAlpha = own(one) ? 1 : Math.min(0.92, 0.4 + 3 * one.weight);
    draw.lineWidth = one.width;
    draw.beginPath();
    draw.moveTo(one.foot, y0);
    draw.bezierCurveTo(one.foot, middle, one.top, middle, one.top, y1);
    draw.stroke();
  }
  draw.globalAlpha = 1;
}

const BINS = 10;

/** All edges as lines; those of a marked column stand out. */
function drawAll(draw: Draw, g: GraphGeometry, edges: Edges, inks: Inks, marked: number): void {
  const line = (e: number) => {
    const level = edges.layer[e] as number;
    draw.moveTo(xOf(g, edges.upper[e] as number), yOf(g, level + 1));
    draw.lineTo(xOf(g, edges.lower[e] as number), yOf(g, level));
  };
  const own = (e: number) => edges.upper[e] === edges.lower[e];
  draw.strokeStyle = inks.keep;
  for (let e = 0; e < edges.count; e++) {
    if (!own(e)) continue;
    draw.lineWidth = 0.5 + 3 * (edges.weight[e] as number);
    draw.beginPath();
    line(e);
    draw.stroke();
  }
  // Edges come sorted, weak first; one path per step of strength keeps 5,000 of them quick.
  const crowd = Math.min(1, Math.max(0.22, Math.sqrt(700 / Math.max(edges.count, 1))));
  draw.strokeStyle = inks.edge;
  let e = 0;
  for (let bin = 0; bin < BINS; bin++) {
    const upTo = ((bin + 1) / BINS) ** 2 * edges.between; // strength goes with the root
    const strength = (bin + 0.7) / BINS;
    draw.globalAlpha = (0.16 + 0.74 * strength) * crowd;
    draw.lineWidth = Math.max(0.6, (0.5 + 3.2 * strength) * crowd);
    draw.beginPath();
    for (; e < edges.count && (bin === BINS - 1 || (edges.weight[e] as number) <= upTo); e++)
      if (!own(e)) line(e);
    draw.stroke();
  }
  draw.globalAlpha = 1;
  if (marked < 0) return;
  draw.strokeStyle = inks.text;
  draw.lineWidth = 1.4;
  draw.beginPath();
  for (let at = 0; at < edges.count; at++)
    if (!own(at) && (edges.upper[at] === marked || edges.lower[at] === marked)) line(at);
  draw.stroke();
}

function drawLevels(draw: Draw, g: GraphGeometry, picture: Picture, inks: Inks): void {
  draw.textAlign = "right";
  draw.textBaseline = "middle";
  const every = Math.max(1, Math.ceil((inks.size + 3) / g.levelHeight));
  for (let level = 0; level < g.levels; level++) {
    const y = yOf(g, level);
    const chosen = level === picture.start.level;
    draw.strokeStyle = inks.line;
    draw.lineWidth = 1;
    draw.beginPath();
    draw.moveTo(g.left, Math.round(y) + 0.5);
    draw.lineTo(g.width - RIGHT, Math.round(y) + 0.5);
    draw.stroke();
    const named = level === 0 || chosen || (level - 1) % every === 0;
    const beside = Math.abs(level - picture.start.level) * g.levelHeight < inks.size + 3;
    if (!named || (!chosen && beside)) continue;
    draw.font = `${chosen ? "600 " : ""}${inks.size}px ${inks.font}`;
    draw.fillStyle = chosen ? inks.text : inks.muted;
    const word = g.narrow ? `${level - 1}` : `layer ${level - 1}`;
    draw.fillText(level === 0 ? "input" : word, g.left - 8, y);
  }
}

function drawBreak(draw: Draw, g: GraphGeometry, columns: Column[], inks: Inks): void {
  const at = columns.findIndex((column) => column.segment > 0);
  if (at <= 0) return;
  const x = xOf(g, at) - g.columnWidth / 2;
  draw.strokeStyle = inks.muted;
  draw.lineWidth = 1;
  draw.setLineDash([4, 4]);
  draw.beginPath();
  draw.moveTo(x, g.top);
  draw.lineTo(x, g.height);
  draw.stroke();
  draw.setLineDash([]);
}

function drawNodes(draw: Draw, g: GraphGeometry, picture: Picture, inks: Inks, hot: boolean): void {
  const { columns, shares } = picture;
  for (let level = 0; level < g.levels; level++) {
    const y = yOf(g, level);
    for (let c = 0; c < columns.length; c++) {
      const x = xOf(g, c);
      const share = shares?.[level]?.[c] ?? 0;
      draw.globalAlpha = hot ? 0.3 : 1;
      if (share > 0.012) {
        const width = Math.max(3, share * g.whole);
        draw.fillStyle = inks.text;
        draw.beginPath();
        if (draw.roundRect) draw.roundRect(x - width / 2, y - 2, width, 4, 2);
        else draw.rect(x - width / 2, y - 2, width, 4);
        draw.fill();
      } else {
        draw.fillStyle = shares ? inks.keep : inks.muted;
        draw.beginPath();
        draw.arc(x, y, shares ? 1.2 : 2.2, 0, 2 * Math.PI);
        draw.fill();
      }
    }
  }
  draw.globalAlpha = 1;
}

/** What is traced, over its node, and what comes in most beside it. */
function drawPill(draw: Draw, g: GraphGeometry, picture: Picture, said: Said, inks: Inks): void {
  const { start } = picture;
  if (!picture.shares || start.column < 0) return;
  const size = inks.size + 1;
  const height = size * 1.9;
  draw.font = `600 ${size}px ${inks.font}`;
  const room = g.width * 0.5;
  const text = cut(draw, said.pill, room);
  const width = draw.measureText(text).width + 18;
  const x = xOf(g, start.column);
  const left = Math.min(Math.max(x - 17, 2), g.width - width - 2);
  const y = yOf(g, start.level);
  const top = Math.max(2, y - 10 - height);
  draw.strokeStyle = inks.text;
  draw.lineWidth = 2;
  draw.beginPath();
  draw.moveTo(x, top + height - 1);
  draw.lineTo(x, y);
  draw.stroke();
  draw.fillStyle = inks.text;
  draw.beginPath();
  if (draw.roundRect) draw.roundRect(left, top, width, height, 7);
  else draw.rect(left, top, width, height);
  draw.fill();
  draw.fillStyle = inks.ground;
  draw.textAlign = "left";
  draw.textBaseline = "middle";
  draw.fillText(text, left + 9, top + height / 2 + 0.5);
  if (said.note) drawNote(draw, g, said.note, { left, right: left + width }, inks);
}

function drawNote(
  draw: Draw,
  g: GraphGeometry,
  [name, long, short]: [string, string, string],
  pill: { left: number; right: number },
  inks: Inks,
): void {
  const size = inks.size + 0.5;
  const onRight = g.width - pill.right >= pill.left;
  const room = (onRight ? g.width - pill.right : pill.left) - 24;
  const bold = `600 ${size}px ${inks.font}`;
  const plain = `${size}px ${inks.font}`;
  draw.font = bold;
  const head = cut(draw, name, room * 0.5);
  const headWidth = draw.measureText(head).width;
  draw.font = plain;
  const tail =
    headWidth + draw.measureText(long).width <= room ? long : cut(draw, short, room - headWidth);
  const width = headWidth + draw.measureText(tail).width;
  const x = onRight ? pill.right + 12 : Math.max(pill.left - 12 - width, 2);
  const y = Math.max(2 + size * 0.95, 14);
  draw.textBaseline = "middle";
  draw.textAlign = "left";
  draw.fillStyle = inks.text;
  draw.font = bold;
  draw.fillText(head, x, y);
  draw.font = plain;
  draw.fillText(tail, x + headWidth, y);
}

/** Names under the input, with their share where there is room. */
function drawNames(
  draw: Draw,
  g: GraphGeometry,
  picture: Picture,
  inks: Inks,
  marked: number,
): void {
  const { columns, shares } = picture;
  const top = yOf(g, 0) + 10;
  draw.textBaseline = "middle";
  columns.forEach((column, c) => {
    const x = xOf(g, c);
    const part = shares?.[0]?.[c] ?? 0;
    const on = part > NAMED || (!shares && c === picture.start.column) || c === marked;
    draw.font = `${on ? "600 " : ""}${inks.size}px ${inks.font}`;
    draw.fillStyle = on ? inks.text : inks.muted;
    const room = g.upright ? g.bottom - 14 : g.columnWidth - 2;
    const text = cut(draw, column.text, room);
    draw.save();
    if (g.upright) {
      draw.translate(x, top);
      draw.rotate(Math.PI / 2);
      draw.textAlign = "left";
      draw.fillText(text, 0, 0);
    } else {
      draw.textAlign = "center";
      draw.fillText(text, x, top + inks.size * 0.7);
      if (on && shares) {
        draw.font = `${inks.size - 1}px ${inks.font}`;
        draw.fillStyle = inks.muted;
        draw.fillText(`${Math.round(100 * part)} %`, x, top + inks.size * 2);
      }
    }
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

/** The node near a point of the canvas. */
export function nodeAt(g: GraphGeometry, columns: number, x: number, y: number): Spot | null {
  const column = Math.floor((x - g.left) / g.columnWidth);
  if (x < g.left - 4 || column < 0 || column >= columns) return null;
  if (y > yOf(g, 0) - 4) return y <= g.height ? { level: 0, column } : null; // its name
  const level = g.levels - 1 - Math.round((y - g.top) / g.levelHeight);
  if (level < 0 || level >= g.levels) return null;
  return Math.abs(y - yOf(g, level)) <= Math.min(12, g.levelHeight * 0.42)
    ? { level, column }
    : null;
}
