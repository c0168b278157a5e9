/** Where things of the graph stand: rows of layers, columns of words. */

import type { Column } from "../state/graph-model";
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
  /** Where each level stands. */
  ys: number[];
  /** Runs of layers that are folded: the levels below and above, which are drawn. */
  folds: Run[];
  upright: boolean;
  narrow: boolean;
  /** Pixels for the whole of what is traced. */
  whole: number;
}

export interface Run {
  below: number;
  above: number;
}

export interface Spot {
  level: number;
  column: number;
}

export const RIGHT = 8;
const NARROW = 560;
export const LEAST_COLUMN = 15;
/** Rows are at least so high; of a few layers rather more. */
const LEAST_ROW = 14;
const LEAST_FEW = 16;
/** Rows of the least height that are higher together are folded where nothing comes in. */
const MOST_ROWS = 300;
const SHORTEST_FOLD = 3;
const FOLD = 26;
type Draw = CanvasRenderingContext2D;

/** Room for the names of levels. */
export function leftOf(width: number, levels: number, inks: Inks): number {
  const digits = 0.6 * Math.max(0, String(levels - 2).length - 1);
  return Math.ceil(inks.size * ((width < NARROW ? 3.6 : 4.6) + digits));
}

export const roomFor = (width: number, levels: number, inks: Inks) =>
  Math.max(4, Math.floor((width - leftOf(width, levels, inks) - RIGHT) / LEAST_COLUMN));

/** What the rows are measured by. */
export interface Space {
  width: number;
  /** The height there is: rows come closer before they go beyond it. */
  room: number;
  /** By layer: nothing comes in from another word. Runs of such layers may be folded. */
  still: boolean[];
}

export function measureGraph(
  columns: Column[],
  levels: number,
  { width, room, still }: Space,
  inks: Inks,
  draw: Draw | null,
): GraphGeometry {
  if (draw) draw.font = `600 ${inks.size}px ${inks.font}`;
  let widest = 0;
  for (const { text } of columns)
    widest = Math.max(widest, draw ? draw.measureText(text).width : text.length * inks.size * 0.55);
  const narrow = width < NARROW;
  const left = leftOf(width, levels, inks);
  const across = Math.max(width - left - RIGHT, 60);
  const columnWidth = across / Math.max(columns.length, 1);
  const upright = widest + 4 > columnWidth;
  const bottom = upright ? Math.min(Math.ceil(widest), 84) + 18 : inks.size * 2 + 22;
  const top = inks.size * 3.4;
  const steps = Math.max(levels - 1, 1);
  const folds = steps * LEAST_ROW > MOST_ROWS ? runsOf(still) : [];
  const folded = folds.reduce((sum, { below, above }) => sum + above - below, 0);
  const rows = Math.max(steps - folded, 1);
  const roomy = narrow ? 46 : 52;
  const liked = rows > 12 ? Math.min(22, 460 / rows) : Math.min(roomy, 420 / rows);
  const least = rows > 6 ? LEAST_ROW : LEAST_FEW;
  const fit = (room - top - bottom - folds.length * FOLD) / rows;
  const levelHeight = Math.max(Math.min(liked, fit), least);
  const height = top + rows * levelHeight + folds.length * FOLD + bottom;
  return {
    width,
    height: Math.ceil(height),
    left,
    top,
    bottom,
    columnWidth,
    levelHeight,
    levels,
    ys: levelsAt(levels, height - bottom, levelHeight, folds),
    folds,
    upright,
    narrow,
    whole: Math.min(narrow ? 20 : 30, 2.2 * columnWidth),
  };
}

/** Runs of still layers that are worth a fold. */
function runsOf(still: boolean[]): Run[] {
  const runs: Run[] = [];
  let below = 0;
  still.forEach((quiet, layer) => {
    if (!quiet) below = layer + 1;
    const ends = quiet && !still[layer + 1];
    if (ends && layer + 1 - below >= SHORTEST_FOLD) runs.push({ below, above: layer + 1 });
  });
  return runs;
}

function levelsAt(levels: number, floor: number, height: number, folds: Run[]): number[] {
  const ys = [floor];
  for (let level = 1; level < levels; level++) {
    const fold = folds.find(({ below, above }) => level > below && level <= above);
    const step = fold ? FOLD / (fold.above - fold.below) : height;
    ys.push((ys[level - 1] as number) - step);
  }
  return ys;
}

export const isFolded = (g: GraphGeometry, level: number) =>
  g.folds.some(({ below, above }) => level > below && level < above);

export const xOf = (g: GraphGeometry, column: number) => g.left + (column + 0.5) * g.columnWidth;
export const yOf = (g: GraphGeometry, level: number) => g.ys[level] as number;

/** The node near a point of the canvas. */
export function nodeAt(g: GraphGeometry, columns: number, x: number, y: number): Spot | null {
  const column = Math.floor((x - g.left) / g.columnWidth);
  if (x < g.left - 4 || column < 0 || column >= columns) return null;
  if (y > yOf(g, 0) - 4) return y <= g.height ? { level: 0, column } : null; // its name
  let level = 0;
  for (let at = 1; at < g.levels; at++)
    if (!isFolded(g, at) && Math.abs(y - yOf(g, at)) < Math.abs(y - yOf(g, level))) level = at;
  const reach = Math.min(12, g.levelHeight * 0.42);
  return Math.abs(y - yOf(g, level)) <= reach ? { level, column } : null;
}

/** Whether a run of folded layers is at a height of the canvas. */
export const foldAt = (g: GraphGeometry, y: number): boolean =>
  g.folds.some(({ below, above }) => y < yOf(g, below) - 6 && y > yOf(g, above) + 6);
