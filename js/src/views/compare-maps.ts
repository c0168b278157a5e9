/** Maps of the compared methods, side by side. */

import { mapScale } from "../kit/colour";
import type { Context } from "../kit/context";
import { h, setText, show } from "../kit/dom";
import { createHeatmap, type Heatmap } from "../kit/heatmap";
import { createLegend } from "../kit/legend";
import { number } from "../state/format";
import type { Grid, State } from "../state/state";
import { unitMass } from "../state/stats";
import { captionOf, quoted, SIGNED } from "../state/words";
import type { MethodEntry } from "../wire/types";
import { breakAt } from "./shared";

export interface Maps {
  element: HTMLElement;
  update(state: State, methods: readonly MethodEntry[]): void;
}

export function createMaps(context: Context): Maps {
  let state: State | undefined;
  const boxes: MapBox[] = [];
  const element = h("div", { class: "mix-compare-maps" });
  return {
    element,
    update(next, methods) {
      state = next;
      while (boxes.length < methods.length) {
        const box = mapBox(context, () => state);
        boxes.push(box);
        element.append(box.element);
      }
      boxes.forEach((box, i) => {
        const method = methods[i];
        const grid = method && next.map(method.id, next.traits.aggregate, next.layer);
        const words = method ? captionOf(next, method, "map", next.layer) : "";
        box.update(next, method && grid ? { ...about(method, words), ...grid } : null);
      });
    },
  };
}

export interface DifferenceMap {
  element: HTMLElement;
  /** Whether there is one. */
  update(state: State, pair: readonly [string, string]): boolean;
}

export function createDifferenceMap(context: Context): DifferenceMap {
  let state: State | undefined;
  const box = mapBox(context, () => state);
  return {
    element: box.element,
    update(next, pair) {
      state = next;
      const [a, b] = pair.map((id) => {
        const grid =
          next.entry(id)?.yields === "maps"
            ? next.map(id, next.traits.aggregate, next.layer)
            : undefined;
        return grid && !grid.coarse ? grid : undefined;
      }) as [Grid | undefined, Grid | undefined];
      if (!a || !b) {
        box.update(next, null);
        return false;
      }
      const values = new Float32Array(a.values.length);
      const [left, right] = [rowShares(a), rowShares(b)];
      for (let i = 0; i < values.length; i++)
        values[i] = (left[i] as number) - (right[i] as number);
      const [more, less] = pair.map((id) => next.entry(id)?.title ?? id);
      const words = "Sizes of each row sum to 1 in both, so that their scales do not matter.";
      const key = `blue: more by ${more}; orange: more by ${less}`;
      box.update(next, { title: "Difference of the maps", words, key, signed: true, ...a, values });
      return true;
    },
  };
}

interface MapContent {
  title: string;
  words: string;
  /** What the colours stand for, beside their scale. */
  key: string;
  signed: boolean;
  rows: number;
  cols: number;
  values: Float32Array;
  coarse: boolean;
}

const about = ({ title, signed }: MethodEntry, words: string) => ({
  title,
  words,
  key: signed ? SIGNED : "",
  signed,
});

interface MapBox {
  element: HTMLElement;
  update(state: State, content: MapContent | null): void;
}

function mapBox(context: Context, current: () => State | undefined): MapBox {
  const title = h("h4", {});
  const words = h("p", { class: "mix-notes" });
  const legend = createLegend();
  let content: MapContent | null = null;
  const heat: Heatmap = createHeatmap(
    context,
    {
      describe(row, col) {
        const state = current();
        if (!state || !content || content.coarse) return [content?.title ?? ""];
        const target = quoted(state.label(state.layout.rows[row] ?? 0));
        const source = quoted(state.label(state.layout.cols[col] ?? 0));
        const value = content.values[row * content.cols + col] ?? 0;
        return [`${target} takes from ${source}`, `${content.title}: ${number(value)}`];
      },
      click(row) {
        const layout = current()?.layout;
        context.marks.hold(layout?.units[layout.rows[row] ?? 0]?.index ?? null);
        context.redraw();
      },
    },
    false,
  );
  const element = h(
    "div",
    { class: "mix-map-box", hidden: true },
    title,
    words,
    heat.element,
    legend.element,
  );
  return {
    element,
    update(state, next) {
      content = next;
      element.hidden = next === null;
      if (!next) return;
      setText(title, next.title);
      setText(words, next.words);
      show(words, next.words !== "");
      const { rows, cols, focus } = state.layout;
      const scale = mapScale(context.palette(), next.values, next.signed, next.cols);
      heat.update({
        rows: rows.map(state.label),
        cols: cols.map(state.label),
        values: next.values,
        ...(next.coarse ? { picture: { rows: next.rows, cols: next.cols } } : {}),
        scale,
        label: `${next.title}: map of ${rows.length} by ${cols.length} tokens at layer ${state.layer}`,
        rowTitle: "takes",
        colTitle: "from",
        selectedRow: rows.indexOf(focus),
        selectedCol: -1,
        rowBreak: breakAt(state, rows),
        colBreak: breakAt(state, cols),
        square: true,
        maxHeight: 460,
      });
      legend.update(scale, next.key);
    },
  };
}

/** Rows as shares, so that methods on different scales can be compared. */
function rowShares(grid: { rows: number; cols: number; values: Float32Array }): Float32Array {
  const out = new Float32Array(grid.values.length);
  for (let r = 0; r < grid.rows; r++) {
    out.set(unitMass(grid.values.subarray(r * grid.cols, (r + 1) * grid.cols)), r * grid.cols);
  }
  return out;
}
