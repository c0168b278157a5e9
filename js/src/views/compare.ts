/** Two to four methods side by side, and the difference of two. */

import { mapScale, rowScale, type Scale } from "../kit/colour";
import type { Context, View } from "../kit/context";
import { h, setAttributes, setText, show } from "../kit/dom";
import { createHeatmap, type Heatmap } from "../kit/heatmap";
import { createLegend, type Legend } from "../kit/legend";
import { createTable } from "../kit/table";
import { number } from "../state/format";
import type { State } from "../state/state";
import { spearman, unitMass } from "../state/stats";
import {
  captionOf,
  lacking,
  leftOutWords,
  meaning,
  othersWords,
  quoted,
  shownTokens,
  withoutMapsWords,
} from "../state/words";
import type { MethodEntry } from "../wire/types";
import { breakAt, createNotice } from "./shared";
import { drawBlocks } from "./text";

interface Scored {
  method: MethodEntry;
  values: Float32Array | null;
}

/** What is said of the methods: once where it holds for all, else of each. */
interface Said {
  all: string;
  each: string[];
}

const SIGNED = "orange speaks against, blue speaks for";

export function compareView(element: HTMLElement, context: Context): View {
  const caption = h("p", { class: "mix-caption" });
  const dropped = h("p", { class: "mix-notes", "data-part": "left-out" });
  const notice = createNotice(context);
  const asText = h("button", { type: "button", class: "mix-button" }, "as text");
  const asMaps = h("button", { type: "button", class: "mix-button" }, "as maps");
  const choice = h(
    "div",
    { class: "mix-segments", role: "group", "aria-label": "How methods are shown" },
    asText,
    asMaps,
  );
  const rows = h("div", { class: "mix-compare" });
  const maps = h("div", { class: "mix-compare-maps" });
  const first = h("select", { "aria-label": "Difference: first method" });
  const second = h("select", { "aria-label": "Difference: second method" });
  const swap = h("button", { type: "button", class: "mix-button" }, "swap");
  const differenceHead = h(
    "div",
    { class: "mix-controls" },
    h("h4", {}, "Difference"),
    first,
    h("span", {}, "minus"),
    second,
    swap,
  );
  const agreement = h("p", { class: "mix-agreement", "data-part": "agreement" });
  const difference = h("div", { class: "mix-blocks" });
  const legend = createLegend();
  const correlations = h("div", { class: "mix-correlations" });
  const table = createTable(context.signal);
  const lower = h("section", { class: "mix-difference" }, differenceHead, agreement, difference);
  const differenceMap = mapBox(context, () => state);
  lower.append(differenceMap.element, legend.element, correlations, table.element);
  element.append(choice, caption, dropped, notice.element, rows, maps, lower);

  let mode: "text" | "maps" = "text";
  let state: State | undefined;
  let pair: [string, string] = ["", ""];
  const boxes: MapBox[] = [];
  const lines: Row[] = [];
  context.listen(asText, "click", () => pick("text"));
  context.listen(asMaps, "click", () => pick("maps"));
  context.listen(first, "change", () => set([first.value, pair[1]]));
  context.listen(second, "change", () => set([pair[0], second.value]));
  context.listen(swap, "click", () => set([pair[1], pair[0]]));
  const pick = (next: typeof mode) => {
    mode = next;
    context.redraw();
  };
  const set = (next: [string, string]) => {
    pair = next;
    context.redraw();
  };

  function choosePair(methods: MethodEntry[]): void {
    const ids = methods.map((method) => method.id);
    let [a, b] = pair;
    if (!ids.includes(a)) a = ids.find((id) => id !== b) ?? "";
    if (!ids.includes(b) || b === a) b = ids.find((id) => id !== a) ?? "";
    pair = [a, b];
    for (const select of [first, second]) {
      const key = ids.join(",");
      if (select.dataset.ids !== key) {
        select.dataset.ids = key;
        select.replaceChildren(...methods.map((m) => h("option", { value: m.id }, m.title)));
      }
    }
    first.value = a;
    second.value = b;
  }

  function drawRows(next: State, scored: Scored[], said: Said): void {
    while (lines.length < scored.length) {
      const line = createRow(context);
      lines.push(line);
      rows.append(line.element);
    }
    lines.forEach((line, i) => {
      line.update(next, scored[i] ?? null, said.each[i] ?? "");
    });
  }

  function drawMaps(next: State, shown: MethodEntry[], said: Said): void {
    while (boxes.length < shown.length) {
      const box = mapBox(context, () => state);
      boxes.push(box);
      maps.append(box.element);
    }
    boxes.forEach((box, i) => {
      const method = shown[i];
      const grid = method && next.map(method.id, next.traits.aggregate, next.layer);
      box.update(next, method && grid ? { ...about(method, said.each[i] ?? ""), ...grid } : null);
    });
  }

  function drawDifferenceMap(next: State): void {
    const [a, b] = pair.map((id) => {
      const method = next.entry(id);
      const grid =
        method?.yields === "maps" ? next.map(id, next.traits.aggregate, next.layer) : undefined;
      return grid && !grid.coarse ? grid : undefined;
    });
    if (mode !== "maps" || !a || !b) {
      differenceMap.update(next, null);
      return;
    }
    const values = new Float32Array(a.values.length);
    const [left, right] = [rowShares(a), rowShares(b)];
    for (let i = 0; i < values.length; i++) values[i] = (left[i] as number) - (right[i] as number);
    const [more, less] = pair.map((id) => next.entry(id)?.title ?? id);
    const words = "Sizes of each row sum to 1 in both, so that their scales do not matter.";
    const key = `blue: more by ${more}; orange: more by ${less}`;
    differenceMap.update(next, { title: "Difference", words, key, signed: true, ...a, values });
  }

  return {
    update(next) {
      state = next;
      const methods = next.compared;
      setAttributes(asText, { "aria-pressed": String(mode === "text") });
      setAttributes(asMaps, { "aria-pressed": String(mode === "maps") });
      const enough = methods.length >= 2;
      notice.update(
        enough ? null : othersWords(next, "compare them with this one"),
        enough ? [] : suggestions(next, context),
      );
      const scored = methods.map(
        (method): Scored => ({ method, values: next.scores(method.id)?.values ?? null }),
      );
      const asMap = mode === "maps" ? methods.filter((method) => method.yields === "maps") : [];
      const said =
        mode === "text"
          ? together(methods.map((method) => meaning(next, method)))
          : together(asMap.map((method) => captionOf(next, method, "map", next.layer)));
      const scales = enough ? "Each method has its own scale." : "";
      setText(caption, [said.all, scales].filter(Boolean).join(" "));
      const lost = mode === "maps" ? [withoutMapsWords(methods), ...missing(next, asMap)] : [];
      setText(dropped, [leftOutWords(next), ...lost].filter(Boolean).join(" "));
      show(dropped, dropped.textContent !== "");
      rows.hidden = mode !== "text";
      maps.hidden = mode !== "maps";
      if (mode === "text") drawRows(next, scored, said);
      drawMaps(next, asMap, said);
      lower.hidden = !enough;
      if (!enough) return;
      choosePair(methods);
      const [a, b] = pair.map((id) => scored.find(({ method }) => method.id === id));
      drawDifferenceMap(next);
      drawDifference(next, a, b);
      drawCorrelations(correlations, next, scored);
      table.update({
        caption: "Scores by method",
        rowTitle: "method",
        colTitle: "token",
        rows: scored.filter((s) => s.values).map((s) => s.method.title),
        cols: next.layout.cols.map(next.label),
        values: scored.flatMap((s) => [...(s.values ?? [])]),
      });
    },
  };

  function drawDifference(next: State, a: Scored | undefined, b: Scored | undefined): void {
    if (!a?.values || !b?.values) {
      setText(
        agreement,
        [a, b].map((s) => (s && !s.values ? lacking(next, s.method.id) : "")).join(" "),
      );
      difference.replaceChildren();
      legend.update(null, "");
      return;
    }
    const left = unitMass(a.values);
    const right = unitMass(b.values);
    const values = left.map((value, i) => value - (right[i] as number));
    const scale = rowScale(context.palette(), values, true);
    difference.hidden = mode === "maps" && !differenceMap.element.hidden;
    drawBlocks(difference, next, values, scale);
    legend.update(
      difference.hidden ? null : scale,
      `blue: more by ${a.method.title}; orange: more by ${b.method.title} (sizes of each sum to 1)`,
    );
    setText(agreement, agreementWords(next, a, b));
  }
}

function together(words: string[]): Said {
  const same = words.every((one) => one === words[0]);
  return same ? { all: words[0] ?? "", each: [] } : { all: "", each: words };
}

/** Why maps of methods that have maps are not there. */
const missing = (state: State, methods: MethodEntry[]) =>
  methods
    .filter(({ id }) => !state.map(id, state.traits.aggregate, state.layer))
    .map(({ id }) => lacking(state, id));

/** Quick methods of other families, to begin with. */
function suggestions(state: State, context: Context) {
  const families = new Set([state.method?.family]);
  const found: MethodEntry[] = [];
  for (const entry of state.traits.catalogue) {
    if (!entry.available || families.has(entry.family) || (entry.cost ?? 0) > 5) continue;
    families.add(entry.family);
    found.push(entry);
  }
  return found.slice(0, 3).map((entry) => ({
    label: `Compare with ${entry.title}`,
    run: () => context.set({ compared: [...state.traits.compared, entry.id] }),
  }));
}

function agreementWords(state: State, a: Scored, b: Scored): string {
  const rho = spearman(a.values ?? [], b.values ?? []);
  if (rho === null)
    return "Their rank correlation is not defined here: one of them gives every token the same score.";
  const how =
    rho > 0.8
      ? "rank the tokens much alike"
      : rho > 0.5
        ? "broadly agree on the ranking"
        : rho > 0.2
          ? "agree only loosely on the ranking"
          : rho > -0.2
            ? "do not agree on the ranking"
            : "rank the tokens in opposite ways";
  return `${a.method.title} and ${b.method.title} ${how}: Spearman's rank correlation is ${number(rho)} over ${shownTokens(state)}.`;
}

interface Row {
  element: HTMLElement;
  update(state: State, scored: Scored | null, said: string): void;
}

/** One method: its name, what its scores mean, the shaded text and the key to its colours. */
function createRow(context: Context): Row {
  const title = h("h4", {});
  const words = h("p", { class: "mix-notes" });
  const blocks = h("div", { class: "mix-blocks" });
  const lack = h("p", { class: "mix-notes" });
  const legend: Legend = createLegend();
  const element = h(
    "section",
    { class: "mix-compare-row" },
    title,
    words,
    blocks,
    lack,
    legend.element,
  );
  return {
    element,
    update(state, scored, said) {
      element.hidden = scored === null;
      if (!scored) return;
      const { method, values } = scored;
      setText(title, method.title);
      setText(words, said);
      show(words, said !== "");
      const scale: Scale | null = values && rowScale(context.palette(), values, method.signed);
      drawBlocks(blocks, state, values ?? undefined, scale);
      setText(lack, scale ? "" : lacking(state, method.id));
      show(lack, !scale);
      legend.update(scale, method.signed ? SIGNED : "");
      setAttributes(element, { "aria-label": method.title });
    },
  };
}

function drawCorrelations(parent: HTMLElement, state: State, scored: Scored[]): void {
  const there = scored.filter((s) => s.values !== null);
  parent.hidden = there.length < 3;
  if (parent.hidden) return;
  const head = h("tr", {}, h("td", {}));
  for (const { method } of there) head.append(h("th", { scope: "col" }, method.title));
  const table = h(
    "table",
    {},
    h("caption", {}, `Rank correlation (Spearman) of every two, over ${shownTokens(state)}`),
    h("thead", {}, head),
  );
  const body = h("tbody");
  for (const a of there) {
    const row = h("tr", {}, h("th", { scope: "row" }, a.method.title));
    for (const b of there) {
      const rho = a === b ? 1 : spearman(a.values ?? [], b.values ?? []);
      row.append(h("td", {}, rho === null ? "–" : rho.toFixed(2).replace("-", "−")));
    }
    body.append(row);
  }
  table.append(body);
  parent.replaceChildren(table);
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
        const unit = layout?.units[layout.rows[row] ?? 0];
        if (unit) context.set({ focus: unit.index });
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
