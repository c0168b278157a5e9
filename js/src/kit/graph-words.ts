/** What the graph says about its nodes, and the numbers behind it. */

import { percent, plural, share } from "../state/format";
import type { Column, Edges } from "../state/graph-model";
import type { State } from "../state/state";
import type { Picture, Said } from "./graph-draw";
import type { GraphGeometry, Spot } from "./graph-geometry";
import type { TableSpec } from "./table";

const LISTED = 4;

const many = (count: number) => count.toLocaleString("en-US");

/** Said where not all edges are drawn; "" where they are. */
export function limitWords({ found, drawn }: Edges, topK: number): string {
  if (found <= drawn) return "";
  const how = topK > 0 ? "" : ", each measured by the strongest of its layer";
  return `Only the ${many(drawn)} strongest of ${many(found)} edges between tokens are drawn${how}.`;
}

export const waitingWords = (there: number, layers: number) =>
  there < layers ? `${plural(there, "layer")} of ${layers} so far.` : "";

/** Over the node that is traced: the answer's, or another. */
export function pillOf(state: State, from: { level: number; unit: number } | null): string {
  if (from) return `${state.label(from.unit)}, layer ${from.level - 1}`;
  if (state.away || !state.targetLabel) return state.focusLabel;
  const part = state.probability === null ? "" : ` ${share(state.probability)}`;
  return `${state.targetLabel}${part}`;
}

const nameOf = (column: Column | undefined) =>
  column
    ? column.unit >= 0
      ? `“${column.text}”`
      : plural(column.units.length, "folded token")
    : "";
const levelName = (level: number) => (level === 0 ? "the input" : `layer ${level - 1}`);

/** The edge between two words that carries most; -1 if there is none. */
function strongest({ edges, columns }: Picture): number {
  for (let e = edges.count - 1; e >= 0; e--) {
    const single = (columns[edges.lower[e] as number]?.unit ?? -1) >= 0;
    if (edges.upper[e] !== edges.lower[e] && single) return e;
  }
  return -1;
}

/** The words in the picture; those of a marked column, where one is. */
export function saidOf(picture: Picture, pill: string, what: string, marked: number): Said {
  if (!picture.shares) return { pill, note: null };
  if (marked >= 0) {
    const part = picture.shares[0]?.[marked] ?? 0;
    const words = ` makes up ${share(part)}`;
    return { pill, note: [nameOf(picture.columns[marked]), `${words}, by these ways`, words] };
  }
  const e = strongest(picture);
  if (e < 0) return { pill, note: null };
  const { columns, edges } = picture;
  const [upper, lower] = [edges.upper[e] as number, edges.lower[e] as number];
  const layer = edges.layer[e] as number;
  const part = share(edges.weight[e] as number);
  const direct = upper === picture.start.column;
  const into = direct ? what : `${nameOf(columns[upper])}, on its way to ${what},`;
  const carried = layer > 0 ? ", and what it took in," : "";
  return {
    pill,
    note: [
      nameOf(columns[lower]),
      `${carried} enters ${into} at layer ${layer}: ${part}`,
      ` enters here: ${part}`,
    ],
  };
}

export function aboutNode(picture: Picture, spot: Spot): string[] {
  const { columns, edges, shares } = picture;
  const lines = [`${nameOf(columns[spot.column])} at ${levelName(spot.level)}`];
  const part = shares?.[spot.level]?.[spot.column];
  if (part !== undefined)
    lines.push(
      spot.level === 0 ? `${percent(part)} comes from it` : `${percent(part)} passes through it`,
    );
  const below: number[] = [];
  for (let e = edges.count - 1; e >= 0; e--)
    if ((edges.layer[e] as number) + 1 === spot.level && edges.upper[e] === spot.column)
      below.push(e);
  if (below.length > 0) {
    const named = below
      .slice(0, LISTED)
      .map(
        (e) => `${columns[edges.lower[e] as number]?.text} ${percent(edges.weight[e] as number)}`,
      );
    lines.push(`takes from: ${named.join(", ")}${below.length > LISTED ? ", …" : ""}`);
  }
  if (columns[spot.column]?.unit === -1) lines.push("click to unfold");
  else if (spot.level > 0) lines.push("click to trace where it comes from");
  return lines;
}

export function foldWords({ columns, shares }: Picture): string {
  const folds = columns.filter((column) => column.unit < 0);
  if (folds.length === 0) return "";
  const count = folds.reduce((sum, column) => sum + column.units.length, 0);
  let part = 0;
  columns.forEach((column, c) => {
    if (column.unit < 0) part += shares?.[0]?.[c] ?? 0;
  });
  const carry = shares ? `, ${share(part)}` : "";
  return `⋯ ${plural(count, "token")} folded${carry}; click to unfold.`;
}

export function layerFolds(g: GraphGeometry | null): string {
  if (!g || g.folds.length === 0) return "";
  const runs = g.folds.map(({ below, above }) => `${below} to ${above - 1}`);
  return `⋯ layers ${runs.join(", ")} folded: no word takes from another there; click to unfold.`;
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
    const at = (edges.upper[e] as number) * count + (edges.lower[e] as number);
    if (edges.layer[e] === state.layer) values[at] = edges.weight[e] as number;
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
