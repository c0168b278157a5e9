/** Geometry and drawing of the graph; no state, no events. */

import type { Column, Edges } from "../state/graph-model";
import type { Inks } from "./context";
import { type GraphGeometry, isFolded, RIGHT, type Spot, xOf, yOf } from "./graph-geometry";
import { drawFlow } from "./graph-ribbons";

export interface Picture {
  columns: Column[];
  edges: Edges;
  /** [levels][columns]; null where all edges are drawn. */
  shares: Float64Array[] | null;
  /** The node that is traced. */
  start: Spot;
}

/** Words in the picture. */
export interface Said {
  /** In the pill of the node that is traced. */
  pill: string;
  /** Beside it: what comes in most. The first is in bold; the last is the short form. */
  note: [string, string, string] | null;
}

/** A word that carries so much is named in bold. */
const NAMED = 0.025;
type Draw = CanvasRenderingContext2D;

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
  const { level: chosen } = picture.start;
  const apart = (a: number, b: number) => Math.abs(yOf(g, a) - yOf(g, b)) >= inks.size + 3;
  let last = -1;
  for (let level = 0; level < g.levels; level++) {
    if (isFolded(g, level)) continue;
    const y = yOf(g, level);
    draw.strokeStyle = inks.line;
    draw.lineWidth = 1;
    draw.beginPath();
    draw.moveTo(g.left, Math.round(y) + 0.5);
    draw.lineTo(g.width - RIGHT, Math.round(y) + 0.5);
    draw.stroke();
    const clear = level === chosen || (apart(level, chosen) && (last < 0 || apart(level, last)));
    if (!clear) continue;
    last = level;
    draw.font = `${level === chosen ? "600 " : ""}${inks.size}px ${inks.font}`;
    draw.fillStyle = level === chosen ? inks.text : inks.muted;
    const word = g.narrow ? `${level - 1}` : `layer ${level - 1}`;
    draw.fillText(level === 0 ? "input" : word, g.left - 8, y);
  }
  draw.font = `${inks.size}px ${inks.font}`;
  draw.fillStyle = inks.muted;
  for (const { below, above } of g.folds)
    draw.fillText("⋯", g.left - 8, (yOf(g, below) + yOf(g, above)) / 2);
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
    if (isFolded(g, level)) continue;
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
        draw.font = `${Math.max(inks.size - 1, 11)}px ${inks.font}`;
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
