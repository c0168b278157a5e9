/** What the graph says about its nodes and edges. */

import { percent, plural } from "../state/format";
import type { Column, Edges } from "../state/graph-model";
import type { State } from "../state/state";
import { quoted } from "../state/words";
import type { Picture, Spot } from "./graph-draw";
import type { TableSpec } from "./table";

const LISTED = 4;

const many = (count: number) => count.toLocaleString("en-US");

/** Said where not all edges are drawn; "" where they are. */
export function limitWords({ found, drawn }: Edges, topK: number): string {
  if (found <= drawn) return "";
  const how = topK > 0 ? "" : ", each measured by the strongest of its layer";
  return `Only the ${many(drawn)} strongest of ${many(found)} edges between tokens are drawn${how}.`;
}

/** Edges that begin or end in a node, weak first. */
export function edgesOf(picture: Picture, spot: Spot): number[] {
  const { edges } = picture;
  const found: number[] = [];
  for (let e = 0; e < edges.count; e++) {
    const layer = edges.layer[e] as number;
    if (layer + 1 === spot.level && edges.upper[e] === spot.column) found.push(e);
    else if (layer === spot.level && edges.lower[e] === spot.column) found.push(e);
  }
  return found;
}

const nameOf = (column: Column | undefined) =>
  column
    ? column.unit >= 0
      ? quoted(column.text)
      : plural(column.units.length, "folded token")
    : "";
const levelName = (level: number) => (level === 0 ? "the input" : `layer ${level - 1}`);

export function aboutNode(picture: Picture, spot: Spot, marked: number[]): string[] {
  const { columns, edges, shares, traced } = picture;
  const lines = [`${nameOf(columns[spot.column])} at ${levelName(spot.level)}`];
  const share = shares?.[spot.level]?.[spot.column];
  if (traced && share !== undefined) {
    lines.push(
      `${percent(share)} of ${nameOf(columns[picture.chosen.column])} ${spot.level === 0 ? "comes from it" : "passes through it"}`,
    );
  }
  const below = marked.filter((e) => (edges.layer[e] as number) + 1 === spot.level).reverse();
  if (below.length > 0) {
    const named = below
      .slice(0, LISTED)
      .map(
        (e) => `${columns[edges.lower[e] as number]?.text} ${percent(edges.weight[e] as number)}`,
      );
    lines.push(`takes from: ${named.join(", ")}${below.length > LISTED ? ", …" : ""}`);
  }
  if (columns[spot.column]?.unit === -1) lines.push("click to unfold");
  else if (spot.level > 0)
    lines.push(traced ? "click to trace" : "click to trace where it comes from");
  return lines;
}

export function aboutEdge(picture: Picture, e: number): string[] {
  const { columns, edges, traced } = picture;
  const upper = nameOf(columns[edges.upper[e] as number]);
  const lower = nameOf(columns[edges.lower[e] as number]);
  const share = percent(edges.weight[e] as number);
  return [
    `${upper} takes from ${lower} in layer ${edges.layer[e]}`,
    traced
      ? `${share} of ${nameOf(columns[picture.chosen.column])} passes here`
      : `${share} of ${upper}`,
  ];
}

export function tableOf(state: State, picture: Picture, caption: string): TableSpec {
  const cols = picture.columns.map((column) => column.text);
  if (picture.shares) {
    const levels = picture.shares;
    return {
      caption,
      rowTitle: "level",
      colTitle: "share of the trace that passes",
      rows: levels.map((_, level) => levelName(level)),
      cols,
      values: Float64Array.from(levels.flatMap((level) => [...level])),
    };
  }
  const count = cols.length;
  const values = new Float64Array(count * count);
  const { edges } = picture;
  for (let e = 0; e < edges.count; e++) {
    if (edges.layer[e] === state.layer) {
      values[(edges.upper[e] as number) * count + (edges.lower[e] as number)] = edges.weight[
        e
      ] as number;
    }
  }
  return {
    caption: `Edges of layer ${state.layer}`,
    rowTitle: "takes",
    colTitle: "from",
    rows: cols,
    cols,
    values,
  };
}
