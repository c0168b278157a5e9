/** The grid of heads: by what they attend to, or by what they wrote into the answer. */

import type { Scale } from "../kit/colour";
import { h, setAttributes, setText, sync } from "../kit/dom";
import { percent, signed } from "../state/format";
import type { State } from "../state/state";
import { quoted } from "../state/words";
import type { Tensor } from "../wire/protocol";

/** The last axis of `head_stats`, in order. */
export const KINDS: [string, string][] = [
  ["itself", "mean weight on the token itself"],
  ["the token before", "mean weight on the token before"],
  ["the token after", "mean weight on the token after"],
  ["the first token", "mean weight on the first token"],
  ["special tokens", "mean weight on special tokens"],
  ["one fixed offset", "how often the strongest weight lies at one and the same distance"],
];
const STATS = KINDS.length;
/** What is chosen for the contributions of `logit`. */
export const WRITTEN = "written";

/** What the grid is coloured by. */
export interface Measure {
  layers: number;
  heads: number;
  signed: boolean;
  /** Of a head, in few words; and of the grid, in a sentence. */
  name: string;
  about: string;
  value(layer: number, head: number): number;
  write(value: number): string;
}

export function byAttention(stats: Tensor, kind: number): Measure {
  const [layers = 0, heads = 0] = stats.shape;
  const [name, about] = KINDS[kind] ?? ["", ""];
  const value = (layer: number, head: number) =>
    stats.values[(layer * heads + head) * STATS + kind] ?? 0;
  return { layers, heads, signed: false, name, about, value, write: percent };
}

export function byContribution(sums: Tensor, target: string): Measure {
  const [layers = 0, heads = 0] = sums.shape;
  return {
    layers,
    heads,
    signed: true,
    name: `written into ${target}`,
    about: `what each head wrote straight into the score of ${target}`,
    value: (layer, head) => sums.values[layer * heads + head] ?? 0,
    write: signed,
  };
}

/** The head with the largest size. */
export function strongest(of: Measure): { layer: number; head: number; value: number } {
  let top = { layer: 0, head: 0, value: 0 };
  for (let layer = 0; layer < of.layers; layer++) {
    for (let head = 0; head < of.heads; head++) {
      const value = of.value(layer, head);
      if (Math.abs(value) > Math.abs(top.value)) top = { layer, head, value };
    }
  }
  return top;
}

/** Rows of buttons, the top layer first, as in the graph. `mask`: heads that are chosen. */
export function drawGrid(
  grid: HTMLElement,
  state: State,
  of: Measure,
  chosen: number,
  scale: Scale,
  mask: number[][] | null,
  choosing: boolean,
): void {
  const order = Array.from({ length: of.layers }, (_, i) => of.layers - 1 - i);
  const columns = Array.from({ length: of.heads }, (_, i) => i);
  grid.style.setProperty("--mix-heads", String(of.heads));
  sync(
    grid,
    [...order, -1],
    () =>
      h(
        "div",
        { role: "row", class: "mix-head-row" },
        h("span", { role: "rowheader" }),
        h("span", { class: "mix-head-cells", role: "presentation" }),
      ),
    (row, layer) => {
      const [name, cells] = row.children as unknown as [HTMLElement, HTMLElement];
      setText(name, layer < 0 ? "head" : String(layer));
      if (layer < 0) {
        cells.className = "mix-head-cells mix-head-names";
        sync(
          cells,
          columns,
          () => h("span", {}),
          (cell, head) => setText(cell, String(head)),
        );
        return;
      }
      sync(
        cells,
        columns,
        () => h("button", { type: "button", role: "gridcell" }),
        (cell, head) => {
          const value = of.value(layer, head);
          const here = layer === state.layer && (head === chosen || (chosen < 0 && head === 0));
          const inside = mask?.[layer]?.[head] === 1;
          cell.style.backgroundColor = scale.css(value);
          cell.style.color = scale.ink(value);
          setAttributes(cell, {
            "data-layer": layer,
            "data-head": head,
            "data-mask": inside ? "in" : null,
            tabindex: here ? 0 : -1,
            "aria-selected": String(layer === state.layer && head === chosen),
            "aria-pressed": choosing ? String(inside) : null,
            "aria-label": `layer ${layer}, head ${head}, ${of.name}: ${of.write(value)}${inside ? ", in the mask" : ""}`,
          });
        },
      );
    },
  );
}

export function describeHead(state: State, stats: Tensor | undefined, head: number): string {
  const where =
    head < 0 ? `Layer ${state.layer}, all heads on average` : `Layer ${state.layer}, head ${head}`;
  if (!stats || head < 0) return `${where}. Click a cell of the grid to see one head.`;
  const value = (kind: number) => byAttention(stats, kind).value(state.layer, head);
  const kinds = [0, 1, 2, 3, 4].sort((a, b) => value(b) - value(a));
  const most = kinds[0] as number;
  const parts = kinds
    .slice(0, 2)
    .filter((k) => value(k) > 0.05)
    .map((k) => `${percent(value(k))} of its weight on ${KINDS[k]?.[0]}`);
  const kind =
    value(5) > 0.8
      ? "a positional head"
      : value(most) > 0.6
        ? `looks mostly at ${KINDS[most]?.[0]}`
        : "looks at several places";
  return `${where}: ${kind}${parts.length > 0 ? `; ${parts.join(", ")}` : ""}.`;
}

/** From which tokens a head wrote most into the answer. */
export function describeWritten(state: State, scores: Tensor | undefined, head: number): string {
  if (!scores || head < 0) return "";
  const [, n = 0] = scores.shape;
  const values = scores.values.subarray(head * n, (head + 1) * n);
  const size = (i: number) => Math.abs(values[i] ?? 0);
  const top = Array.from(values, (_, i) => i).sort((a, b) => size(b) - size(a))[0];
  if (top === undefined || size(top) === 0) return "";
  const total = values.reduce((sum, value) => sum + value, 0);
  const from = quoted(state.label(state.layout.unitOf[top] ?? 0));
  return ` It wrote ${signed(total)} into the score of ${quoted(state.targetLabel)}, most of it from ${from} (${signed(values[top] ?? 0)}).`;
}
