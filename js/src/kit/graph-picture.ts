/** From maps to the picture of the graph: the flow of one answer, or all edges. */

import type { Trace } from "../state/flow";
import {
  type Column,
  columnShares,
  columnsOf,
  columnWeights,
  flowEdges,
  importance,
  routesFrom,
  selectEdges,
  stepsOf,
  trace,
} from "../state/graph-model";
import type { State } from "../state/state";
import type { Combine } from "../wire/types";
import type { Picture } from "./graph-draw";

export interface Asked {
  maps: (Float32Array | undefined)[];
  combine: Combine;
  /** The node that is traced: level 0 is the input. */
  level: number;
  unit: number;
  all: boolean;
  /** Columns that fit. */
  room: number;
  opened: ReadonlySet<number>;
  /** An edge with more than this of what a token takes is a route; null where there are none. */
  routes: number | null;
}

/** Each stage is done again only when what it depends on has changed. */
export function createPictures() {
  let mapsKey: (Float32Array | undefined)[] = [];
  let steps: (Float64Array | undefined)[] = [];
  let key = "";
  let tokens: unknown;
  let kept: Picture | null = null;
  let traced: Trace | null = null;
  let routes: Uint8Array[] | null = null;

  return {
    picture(state: State, asked: Asked): Picture {
      const { n, layout, traits } = state;
      const { maps } = asked;
      const same = maps.length === mapsKey.length && maps.every((map, i) => map === mapsKey[i]);
      if (!same) {
        steps = stepsOf(maps, n, asked.combine);
        mapsKey = maps;
      }
      const now = JSON.stringify([
        asked.level,
        asked.unit,
        asked.all,
        asked.room,
        asked.routes,
        [...asked.opened],
        traits.threshold,
        traits.top_k,
        traits.unit,
        traits.special,
        layout.focus,
      ]);
      if (same && now === key && tokens === traits.tokens && kept) return kept;
      key = now;
      tokens = traits.tokens;
      const answers = asked.level === state.layers && asked.unit === layout.focus;
      const starts = answers ? state.read : (layout.units[asked.unit]?.tokens ?? [0]);
      traced = asked.all ? null : trace(steps, n, asked.level - 1, starts);
      const used = maps.slice(0, asked.level) as Float32Array[];
      routes = traced && asked.routes !== null ? routesFrom(used, n, starts, asked.routes) : null;
      const columns = columnsOf(state, importance(state, steps, traced), asked.room, asked.opened);
      const edges = traced
        ? flowEdges(traced.edges, columns, n, routes)
        : selectEdges(
            steps.map((step) => step && columnWeights(step, n, columns)),
            columns,
            traits.threshold,
            traits.top_k,
          );
      kept = {
        columns,
        edges,
        shares: traced ? traced.nodes.map((level) => columnShares(level, columns)) : null,
        start: {
          level: asked.level,
          column: columns.findIndex((column) => column.units.includes(asked.unit)),
        },
      };
      return kept;
    },
    /** The ways of one column to the traced node; null where nothing is traced. */
    ways(columns: Column[], column: number, n: number): Picture["edges"] | null {
      const sources = columns[column]?.tokens;
      return traced && sources ? flowEdges(traced.ways(sources), columns, n, routes) : null;
    },
  };
}
