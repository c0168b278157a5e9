/** Layers by tokens for the focus: how the answer forms. */

import { mapScale } from "../kit/colour";
import type { Context, View } from "../kit/context";
import { createHeatmap } from "../kit/heatmap";
import { moveLayer, moveWord } from "../kit/steps";
import { createTable } from "../kit/table";
import { number, plural } from "../state/format";
import type { State } from "../state/state";
import { quoted } from "../state/words";
import { belowLayers } from "./layers-below";
import { absent, breakAt, createNotice, withoutMaps } from "./shared";

export function layersView(element: HTMLElement, context: Context): View {
  let state: State | undefined;
  let values = new Float32Array(0);
  const notice = createNotice(context);
  const below = belowLayers();
  const table = createTable(context.signal);
  const heat = createHeatmap(
    context,
    {
      describe(row, col) {
        if (!state) return [];
        const unit = state.layout.cols[col] ?? 0;
        const value = values[row * state.layout.cols.length + col] ?? Number.NaN;
        const known = Number.isFinite(value);
        return [
          `layer ${row}, ${quoted(state.label(unit))}`,
          known ? number(value) : "not computed yet",
        ];
      },
      click: (row) => context.set({ layer: row }),
      arrow(key) {
        if (!state) return false;
        if (key === "ArrowUp") moveLayer(state, context, 1);
        else if (key === "ArrowDown") moveLayer(state, context, -1);
        else if (key === "ArrowLeft") moveWord(state, context, -1);
        else moveWord(state, context, 1);
        return true;
      },
    },
    false,
  );
  element.append(notice.element, heat.element, ...below.elements, table.element);

  function hide(lack: { text: string; actions: { label: string; run(): void }[] }): void {
    notice.update(lack.text, lack.actions);
    heat.update(null);
    below.hide();
    table.update(null);
  }

  return {
    update(next) {
      state = next;
      const method = next.method;
      if (!method) return hide({ text: "", actions: [] });
      if (method.yields === "scores") {
        return hide(withoutMaps(next, context));
      }
      const cols = next.layout.cols;
      const rows = Array.from(
        { length: next.layers },
        (_, l) =>
          next.scores(method.id, l, method.passed ? "layer" : next.traits.aggregate)?.values,
      );
      const done = rows.filter((row) => row !== undefined).length;
      if (done === 0) return hide(absent(next, context, method.id));
      notice.update(
        done < next.layers
          ? `${plural(done, "layer")} of ${next.layers} so far. ${absent(next, context, method.id).text}`
          : null,
      );
      values = new Float32Array(next.layers * cols.length).fill(Number.NaN);
      rows.forEach((row, l) => {
        if (row) values.set(row, l * cols.length);
      });
      const scale = mapScale(context.palette(), values, method.signed, cols.length);
      const names = cols.map(next.label);
      const layerNames = rows.map((_, l) => String(l));
      const summary = `${method.title}: scores of ${plural(cols.length, "token")} in ${plural(next.layers, "layer")}${method.yields === "maps" ? ` for ${quoted(next.focusLabel)}` : ""}`;
      heat.update({
        rows: layerNames,
        cols: names,
        values,
        scale,
        label: summary,
        rowTitle: "layer",
        colTitle: "input token",
        selectedRow: next.layer,
        selectedCol: -1,
        rowBreak: -1,
        colBreak: breakAt(next, cols),
        square: false,
        upward: true,
        side: below.line(next),
      });
      below.update(next, method, scale);
      table.update({
        caption: summary,
        rowTitle: "layer",
        colTitle: "token",
        rows: layerNames,
        cols: names,
        values,
      });
    },
  };
}
