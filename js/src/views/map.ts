/** The matrix of one layer or of the layers combined. */

import { mapScale, type Scale } from "../kit/colour";
import type { Context, View } from "../kit/context";
import { createHeatmap } from "../kit/heatmap";
import { createLegend } from "../kit/legend";
import { moveWord } from "../kit/steps";
import { createTable } from "../kit/table";
import { number, share } from "../state/format";
import type { Grid, State } from "../state/state";
import { quoted } from "../state/words";
import { absent, breakAt, carrierOf, createNotice, soFar, withoutMaps } from "./shared";

export function mapView(element: HTMLElement, context: Context): View {
  let state: State | undefined;
  let grid: Grid | undefined;
  let scale: { of: Float32Array; palette: object; scale: Scale } | undefined;
  const notice = createNotice(context);
  const legend = createLegend();
  const table = createTable(context.signal);
  const heat = createHeatmap(context, {
    describe(row, col) {
      if (!state || !grid) return [];
      const target = state.label(state.layout.rows[row] ?? 0);
      const source = state.label(state.layout.cols[col] ?? 0);
      const lines = [`${quoted(target)} takes from ${quoted(source)}`];
      lines.push(
        grid.coarse
          ? `about ${number(coarseValue(grid, state, row, col))}`
          : number(grid.values[row * grid.cols + col] ?? 0),
      );
      return lines;
    },
    click(row) {
      context.marks.hold(state?.layout.units[state.layout.rows[row] ?? 0]?.index ?? null);
      context.redraw();
    },
    arrow(key) {
      if (!state || (key !== "ArrowUp" && key !== "ArrowDown")) return false;
      moveWord(state, context, key === "ArrowUp" ? -1 : 1);
      return true;
    },
  });
  element.append(notice.element, heat.element, legend.element, table.element);

  function hide(lack: { text: string; actions: { label: string; run(): void }[] }): void {
    notice.update(lack.text, lack.actions);
    heat.update(null);
    legend.update(null, "");
    table.update(null);
  }

  return {
    update(next) {
      state = next;
      const method = next.method;
      if (!method) return hide({ text: "", actions: [] });
      const drawn = carrierOf(next);
      if (!drawn) return hide(withoutMaps(next, context));
      const layer = next.reached(drawn.id);
      grid = next.map(drawn.id, next.traits.aggregate, layer);
      if (!grid) return hide(absent(next, context, drawn.id));
      notice.update(
        grid.coarse
          ? "A reduced picture; the full map is on its way."
          : drawn.id !== method.id
            ? `The map is that of ${drawn.title}: ${method.title} has none.`
            : soFar(next, layer),
      );
      const palette = context.palette();
      if (scale?.of !== grid.values || scale.palette !== palette) {
        scale = {
          of: grid.values,
          palette,
          scale: mapScale(palette, grid.values, drawn.signed, grid.cols),
        };
      }
      const { rows, cols, focus } = next.layout;
      const rowNames = rows.map(next.label);
      const colNames = cols.map(next.label);
      const what =
        next.traits.aggregate === "layer"
          ? `layer ${layer} alone`
          : `${next.traits.aggregate} up to layer ${layer}`;
      const summary = `${drawn.title}, ${what}: what each of ${rows.length} tokens (rows) takes from ${cols.length} tokens (columns)`;
      heat.update({
        rows: rowNames,
        cols: colNames,
        values: grid.values,
        ...(grid.coarse ? { picture: { rows: grid.rows, cols: grid.cols } } : {}),
        scale: scale.scale,
        label: summary,
        rowTitle: "this token takes",
        colTitle: "from this token",
        selectedRow: rows.indexOf(next.layout.unitOf[context.marks.pin ?? -1] ?? focus),
        selectedCol: -1,
        rowBreak: breakAt(next, rows),
        colBreak: breakAt(next, cols),
        square: true,
      });
      const shares = next.traits.aggregate === "rollout" && !drawn.signed;
      legend.update(
        scale.scale,
        shares ? "share of the row's token" : "contribution",
        shares ? share : number,
      );
      table.update(
        grid.coarse
          ? null
          : {
              caption: summary,
              rowTitle: "takes",
              colTitle: "from",
              rows: rowNames,
              cols: colNames,
              values: grid.values,
            },
      );
    },
  };
}

/** The value of the patch that a cell lies in. */
function coarseValue(grid: Grid, state: State, row: number, col: number): number {
  const r = Math.floor((row / state.layout.rows.length) * grid.rows);
  const c = Math.floor((col / state.layout.cols.length) * grid.cols);
  return grid.values[r * grid.cols + c] ?? 0;
}
