/** The flow as ribbons, as wide as what they carry: blue moves, grey stays. */

import type { Edges } from "../state/graph-model";
import type { Inks } from "./context";
import { type GraphGeometry, xOf, yOf } from "./graph-geometry";

interface Ribbon {
  upper: number;
  lower: number;
  level: number;
  width: number;
  weight: number;
  top: number;
  foot: number;
  route: boolean;
}

/** How much of its colour an edge keeps that is no route. */
const PALE = 0.55;
type Draw = CanvasRenderingContext2D;

const stays = (one: Ribbon) => one.upper === one.lower;

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
      route: edges.routes === null || edges.routes[e] === 1,
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

export function drawFlow(draw: Draw, g: GraphGeometry, edges: Edges, inks: Inks): void {
  const ribbons = ribbonsOf(g, edges);
  draw.fillStyle = inks.keep;
  for (const chain of chainsOf(ribbons.filter(stays))) drawChain(draw, g, chain);
  const moving = ribbons.filter((one) => !stays(one)).sort((a, b) => a.weight - b.weight);
  draw.strokeStyle = inks.edge;
  for (const one of moving) {
    const [y0, y1] = [yOf(g, one.level - 1), yOf(g, one.level)];
    const middle = (y0 + y1) / 2;
    draw.globalAlpha = Math.min(0.92, 0.5 + 3 * one.weight) * (one.route ? 1 : PALE);
    draw.lineWidth = one.width;
    draw.beginPath();
    draw.moveTo(one.foot, y0);
    draw.bezierCurveTo(one.foot, middle, one.top, middle, one.top, y1);
    draw.stroke();
  }
  draw.globalAlpha = 1;
}

/** What a word keeps in layers on end: one ribbon, from below. */
function chainsOf(ribbons: Ribbon[]): Ribbon[][] {
  const chains: Ribbon[][] = [];
  ribbons.sort((a, b) => a.upper - b.upper || a.level - b.level);
  for (const one of ribbons) {
    const last = chains.at(-1)?.at(-1);
    if (last && last.upper === one.upper && last.level + 1 === one.level) chains.at(-1)?.push(one);
    else chains.push([one]);
  }
  return chains;
}

function drawChain(draw: Draw, g: GraphGeometry, chain: Ribbon[]): void {
  draw.globalAlpha = chain.some((one) => one.route) ? 1 : PALE;
  draw.beginPath();
  for (const { level, foot, top, width } of chain) {
    const [y0, y1] = [yOf(g, level - 1), yOf(g, level)];
    const [half, middle] = [width / 2, (y0 + y1) / 2];
    draw.moveTo(foot - half, y0);
    draw.bezierCurveTo(foot - half, middle, top - half, middle, top - half, y1);
    draw.lineTo(top + half, y1);
    draw.bezierCurveTo(top + half, middle, foot + half, middle, foot + half, y0);
    draw.closePath();
  }
  draw.fill();
}
