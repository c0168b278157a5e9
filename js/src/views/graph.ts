/** The flow of one answer: words across, layers up, ribbons as wide as what they carry. */

import type { Context, View } from "../kit/context";
import { h, onResize, setAttributes, setText, show } from "../kit/dom";
import { drawGraph, type Picture } from "../kit/graph-draw";
import {
  foldAt,
  type GraphGeometry,
  measureGraph,
  nodeAt,
  roomFor,
  type Spot,
} from "../kit/graph-geometry";
import { createPictures } from "../kit/graph-picture";
import {
  aboutNode,
  foldWords,
  layerFolds,
  limitWords,
  pillOf,
  saidOf,
  tableOf,
  waitingWords,
} from "../kit/graph-words";
import { moveLayer, moveWord } from "../kit/steps";
import { createTable } from "../kit/table";
import type { State } from "../state/state";
import { absent, carrierOf, createNotice, withoutMaps } from "./shared";

/** As `Explanation.routes` has it. */
const ROUTE = 0.04;
const ROUTE_WORDS =
  "In full colour: the routes, on which a token takes more than 4 % from another; pale: what else flows.";
const NARROW = 600;
/** The panel's edges. */
const EDGES = 14;

export function graphView(element: HTMLElement, context: Context): View {
  const { listen, marks } = context;
  const notice = createNotice(context);
  const base = h("canvas", { role: "img" });
  const stage = h("div", { class: "mix-stage mix-graph", tabindex: "0", role: "group" }, base);
  const words = h("p", { class: "mix-hint", "data-part": "graph-words" });
  const clear = h(
    "button",
    { type: "button", class: "mix-chip", "data-part": "trace-clear" },
    "Back to the answer",
  );
  const table = createTable(context.signal);
  element.append(notice.element, stage, words, clear, table.element);

  let state: State | undefined;
  let picture: Picture | null = null;
  let geometry: GraphGeometry | null = null;
  /** A node that is traced in the place of the answer. */
  let from: { level: number; unit: number } | null = null;
  let of: unknown;
  let spot: Spot | null = null;
  const opened = new Set<number>();
  /** Whether folded layers were opened. */
  let unfolded = false;
  const pictures = createPictures();

  listen(clear, "click", () => traceFrom(null));

  function traceFrom(next: typeof from): void {
    from = next;
    context.redraw();
  }

  function choose(at: Spot): void {
    const column = picture?.columns[at.column];
    if (!state || !column) return;
    if (column.unit < 0) for (const unit of column.units) opened.add(unit);
    else {
      const token = state.layout.units[column.unit]?.index ?? 0;
      if (at.level > 0) {
        const again = from?.level === at.level && from.unit === column.unit;
        from = again ? null : { level: at.level, unit: column.unit };
      } else marks.hold(marks.pin === token ? null : token);
    }
    context.redraw();
  }

  const spotOf = (event: MouseEvent): Spot | null => {
    if (!picture || !geometry) return null;
    const box = base.getBoundingClientRect();
    return nodeAt(
      geometry,
      picture.columns.length,
      event.clientX - box.left,
      event.clientY - box.top,
    );
  };
  listen(stage, "pointermove", (event) => {
    spot = spotOf(event);
    const unit = picture?.columns[spot?.column ?? -1]?.unit ?? -1;
    marks.point(unit >= 0 ? (state?.layout.units[unit]?.index ?? null) : null);
    stage.style.cursor = spot ? "pointer" : "";
    if (spot && picture) context.tip.at(event.clientX, event.clientY, aboutNode(picture, spot));
    else context.tip.hide();
  });
  listen(stage, "pointerleave", () => {
    spot = null;
    marks.point(null);
    context.tip.hide();
  });
  listen(stage, "click", (event) => {
    const at = spotOf(event);
    if (at) choose(at);
    else if (geometry && foldAt(geometry, event.clientY - base.getBoundingClientRect().top)) {
      unfolded = true;
      context.redraw();
    }
  });
  listen(stage, "keydown", (event) => {
    if (!state) return;
    const held = state.layout.unitOf[marks.pin ?? -1] ?? state.layout.focus;
    if (event.key === "ArrowUp") moveLayer(state, context, 1);
    else if (event.key === "ArrowDown") moveLayer(state, context, -1);
    else if (event.key === "ArrowLeft") moveWord(state, context, -1);
    else if (event.key === "ArrowRight") moveWord(state, context, 1);
    else if (event.key === "Enter") traceFrom({ level: state.layer + 1, unit: held });
    else if (event.key === "Escape" && from) traceFrom(null);
    else return;
    event.preventDefault();
  });
  marks.onChange(() => {
    if (!element.hidden) draw();
  });
  onResize(
    element,
    () => {
      if (state && !element.hidden && element.clientWidth !== geometry?.width) context.redraw();
    },
    context.signal,
  );

  const width = () => element.clientWidth || 760;

  /** What the rest of the widget leaves of a screen. */
  function heightLeft(): number {
    const { root } = context;
    const panel = element.parentElement;
    if (!panel || root.hasAttribute("data-present")) return Number.POSITIVE_INFINITY;
    const around = root.offsetHeight - panel.offsetHeight;
    if (!(around > 0)) return Number.POSITIVE_INFINITY; // not laid out
    const below = element.offsetHeight - stage.offsetHeight + EDGES;
    return (root.offsetWidth < NARROW ? 754 : 634) - around - below;
  }

  function layOut(next: State): void {
    if (!picture) return;
    const space = {
      width: width(),
      room: heightLeft(),
      still: unfolded ? [] : stillOf(next.layers),
    };
    geometry = measureGraph(
      picture.columns,
      next.layers + 1,
      space,
      context.inks(),
      base.getContext("2d"),
    );
    const ratio = globalThis.devicePixelRatio || 1;
    const size = [Math.round(geometry.width * ratio), Math.round(geometry.height * ratio)] as const;
    if (base.width !== size[0]) base.width = size[0];
    if (base.height !== size[1]) base.height = size[1];
    base.style.width = `${geometry.width}px`;
    base.style.height = stage.style.height = `${geometry.height}px`;
  }

  /** By layer: whether no word takes from another, in what is drawn. */
  function stillOf(layers: number): boolean[] {
    const still = new Array<boolean>(layers).fill(picture?.shares != null);
    const edges = picture?.edges;
    for (let e = 0; e < (edges?.count ?? 0); e++)
      if (edges?.upper[e] !== edges?.lower[e]) still[edges?.layer[e] ?? 0] = false;
    // The level that is traced stays in sight.
    if (picture) still[picture.start.level - 1] = still[picture.start.level] = false;
    return still.slice(0, layers);
  }

  /** The column of the word that is pointed at or held. */
  function marked(): number {
    const token = marks.hover ?? marks.pin;
    if (token === null || !state || !picture) return -1;
    const unit = state.layout.unitOf[token] ?? -1;
    return picture.columns.findIndex((column) => column.units.includes(unit));
  }

  function draw(): void {
    if (!picture || !geometry || !state) return;
    const at = marked();
    const ways = at >= 0 ? pictures.ways(picture.columns, at, state.n) : null;
    const what = from || state.away ? pillOf(state, from) : "the answer";
    const said = saidOf(picture, pillOf(state, from), what, at);
    drawGraph(base, geometry, picture, said, context.inks(), ways, at);
  }

  function hide(lack: { text: string; actions: { label: string; run(): void }[] }): void {
    picture = null;
    notice.update(lack.text, lack.actions);
    show(stage, false);
    show(clear, false);
    show(words, false);
    table.update(null);
  }

  return {
    leave() {
      from = null;
    },
    update(next) {
      if (of !== next.traits.tokens || (from && next.layout.units[from.unit] === undefined)) {
        from = null;
        unfolded = false;
        opened.clear();
      }
      of = next.traits.tokens;
      state = next;
      const method = next.method;
      if (!method) return hide({ text: "", actions: [] });
      const drawn = carrierOf(next, true);
      if (!drawn) return hide(withoutMaps(next, context));
      const maps = next.tokenMaps(drawn.id, next.layers - 1);
      const there = maps.filter((map) => map !== undefined).length;
      if (there === 0) return hide(absent(next, context, drawn.id));
      show(stage, true);
      const level = from?.level ?? Math.min(next.reached(drawn.id), there - 1) + 1;
      picture = pictures.picture(next, {
        maps,
        combine: drawn.combine,
        level,
        unit: from?.unit ?? next.layout.focus,
        all: context.own.allEdges,
        room: roomFor(width(), next.layers + 1, context.inks()),
        opened,
        routes: drawn.id === "ifr" ? ROUTE : null,
      });
      const what = from
        ? `“${next.label(from.unit)}” at layer ${from.level - 1}`
        : `“${next.away ? next.focusLabel : next.targetLabel || next.focusLabel}”`;
      const note = saidOf(picture, "", "it", -1).note;
      const flow = picture.shares !== null;
      const label = flow
        ? `Where ${what} comes from, layer by layer, by ${drawn.title}.${note ? ` Strongest: ${note[0]}${note[1]}.` : ""}`
        : `All edges of ${drawn.title}: what each token takes from the tokens of the layer below.`;
      setAttributes(base, { "aria-label": `A graph of ${next.layers} layers. ${label}` });
      setAttributes(stage, {
        "aria-label":
          "Graph. Left and right choose a word, up and down the layer, Enter traces it, Escape goes back.",
        "data-level": level,
        "data-token": next.layout.units[from?.unit ?? next.layout.focus]?.index ?? 0,
        "data-edges": picture.edges.ribbons,
        "data-routes": picture.edges.routes?.reduce((sum, one) => sum + one, 0) ?? null,
      });
      const other =
        drawn.id !== method.id
          ? `The ways are those of ${drawn.title}: ${method.title} has ${method.yields === "maps" ? "signs, and what flows has none" : "none"}.`
          : "";
      const pipes =
        drawn.combine === "flow" && flow
          ? "This method combines layers by maximum flow; the picture follows the plain product of its maps."
          : "";
      const limit = flow ? "" : limitWords(picture.edges, next.traits.top_k);
      const waits = waitingWords(there, next.layers);
      const main = picture.edges.routes ? ROUTE_WORDS : "";
      layOut(next);
      const said = [other, waits, pipes, main, limit, foldWords(picture), layerFolds(geometry)];
      setText(words, said.filter(Boolean).join(" "));
      show(words, words.textContent !== "");
      notice.update(null);
      show(clear, from !== null);
      table.update(tableOf(next, picture, label));
      layOut(next);
      draw();
    },
  };
}
