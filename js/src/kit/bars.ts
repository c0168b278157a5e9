/** Words once, and under them one row of bars for each method. */

import { share, signed } from "../state/format";
import { type Reading, shareOf } from "../state/reading";
import type { State } from "../state/state";
import { unitMass } from "../state/stats";
import type { Context } from "./context";
import { h, setAttributes, setText, sync } from "./dom";

export interface BarRow {
  title: string;
  about: string;
  reading: Reading | null;
  /** Why there are no bars. */
  lack: string;
  level: string;
  beats: string;
  agrees: string;
}

/** A column: a word, or a run of words that carry little. */
interface Column {
  text: string;
  cols: number[];
  token: number;
}

const LEAST_WIDTH = 19;
const LETTER = 6.7;
/** So many bars of a row have their number over them. */
const NUMBERED = 2;
/** The width of a number. */
const FIGURE = 42;

export interface Bars {
  element: HTMLElement;
  update(state: State, rows: BarRow[]): void;
}

export function createBars(context: Context): Bars {
  const words = h("div", { class: "mix-bar-words" });
  const unit = h("span", { class: "mix-bar-head" });
  const head = h("span", { class: "mix-bar-head" }, "beats random");
  const rows = h("div", { class: "mix-bar-rows" });
  const element = h("div", { class: "mix-compare" }, unit, words, head, rows);
  const { marks, listen } = context;
  const tokenOf = (event: Event) => {
    const at = (event.target as Element).closest<HTMLElement>("[data-token]")?.dataset.token;
    return at === undefined || at === "-1" ? null : Number(at);
  };
  listen(element, "pointerover", (event) => marks.point(tokenOf(event)));
  listen(element, "pointerleave", () => marks.point(null));
  listen(element, "click", (event) => {
    const token = tokenOf(event);
    if (token === null) return;
    marks.hold(marks.pin === token ? null : token);
    context.redraw();
  });
  marks.onChange(mark);

  function mark(): void {
    for (const one of element.querySelectorAll<HTMLElement>("[data-token]")) {
      const token = Number(one.dataset.token);
      one.classList.toggle("mix-on", token === marks.hover || token === marks.pin);
    }
  }

  return {
    element,
    update(state, given) {
      const room = Math.max(
        (element.clientWidth || 760) - (element.clientWidth < 560 ? 24 : 254),
        200,
      );
      const columns = columnsOf(state, given, Math.floor(room / LEAST_WIDTH));
      const width = room / Math.max(columns.length, 1);
      const upright = columns.some(({ text }) => text.length * LETTER > width - 2);
      element.style.setProperty("--mix-count", String(columns.length));
      words.classList.toggle("mix-upright", upright);
      const folded = columns.some(({ cols }) => cols.length > 1);
      setText(
        unit,
        `height: share among the words${folded ? "; ⋯ stands for words with little weight" : ""}`,
      );
      sync(
        words,
        columns,
        () => h("span", { dir: "auto" }),
        (word, { text, token }) => {
          setText(word, text);
          word.dataset.token = String(token);
        },
      );
      const masses = given.map(({ reading }) => massOf(reading));
      let most = 0;
      for (const mass of masses)
        for (const { cols } of columns) most = Math.max(most, Math.abs(sum(mass, cols)));
      sync(rows, given, makeRow, (row, one, r) => {
        fillRow(row, one, columns, masses[r] ?? new Map(), most);
      });
      mark();
    },
  };
}

const sum = (mass: Map<number, number>, cols: number[]) =>
  cols.reduce((total, c) => total + (mass.get(c) ?? 0), 0);

/** Shares among the words on the scale, by column; with their signs. */
function massOf(reading: Reading | null): Map<number, number> {
  const order = reading?.order ?? [];
  const mass = unitMass(order.map((c) => reading?.values[c] ?? 0));
  return new Map(order.map((c, i) => [c, mass[i] ?? 0]));
}

function columnsOf(state: State, rows: BarRow[], room: number): Column[] {
  const { cols, units } = state.layout;
  const aside = rows.find(({ reading }) => reading)?.reading?.aside ?? new Set();
  const words = cols.map((_, c) => c).filter((c) => !aside.has(cols[c] as number));
  const weight = (c: number) =>
    Math.max(
      0,
      ...rows.map(({ reading }) =>
        reading ? Math.abs(reading.values[c] ?? 0) / (reading.peak || 1) : 0,
      ),
    );
  const strongest = [...words].sort((a, b) => weight(b) - weight(a));
  for (let count = Math.min(room, words.length); ; count--) {
    const kept = new Set(words.length <= room ? words : strongest.slice(0, count));
    const columns: Column[] = [];
    let fold: Column | null = null;
    for (const c of words) {
      const unit = units[cols[c] as number];
      if (kept.has(c)) {
        columns.push({ text: unit?.text ?? "", cols: [c], token: unit?.index ?? -1 });
        fold = null;
      } else if (fold) fold.cols.push(c);
      else {
        fold = { text: "⋯", cols: [c], token: -1 };
        columns.push(fold);
      }
    }
    if (columns.length <= room || count <= 1) return columns;
  }
}

/** The strongest words get their number, where it does not run into that of a stronger one. */
function numberedOf(reading: Reading, columns: Column[], width: number): Set<number> {
  const places: number[] = [];
  const numbered = new Set<number>();
  const apart = FIGURE / (width / Math.max(columns.length, 1));
  for (const c of reading.order.slice(0, NUMBERED)) {
    const place = columns.findIndex(({ cols }) => cols.length === 1 && cols[0] === c);
    if (place < 0 || places.some((other) => Math.abs(other - place) < apart)) continue;
    places.push(place);
    numbered.add(c);
  }
  return numbered;
}

function makeRow(): HTMLElement {
  return h(
    "div",
    { class: "mix-bar-row" },
    h("div", { class: "mix-bar-name" }, h("strong", {}), h("small", {})),
    h("div", { class: "mix-bar-bars" }),
    h(
      "div",
      { class: "mix-bar-test" },
      h("strong", {}, h("span", { class: "mix-dot", "aria-hidden": "true" }), h("span", {})),
      h("small", {}),
    ),
  );
}

function fillRow(
  row: HTMLElement,
  one: BarRow,
  columns: Column[],
  mass: Map<number, number>,
  most: number,
): void {
  const [name, bars, test] = row.children as unknown as HTMLElement[] as [
    HTMLElement,
    HTMLElement,
    HTMLElement,
  ];
  setText(name.firstElementChild as HTMLElement, one.title);
  setText(name.lastElementChild as HTMLElement, one.about);
  const [strong, agrees] = test.children as unknown as [HTMLElement, HTMLElement];
  setAttributes(strong.firstElementChild as HTMLElement, { "data-level": one.level });
  setText(strong.lastElementChild as HTMLElement, one.beats);
  setText(agrees, one.agrees);
  const { reading } = one;
  if (!reading) {
    bars.replaceChildren(h("p", { class: "mix-hint" }, one.lack));
    return;
  }
  if (bars.querySelector("p")) bars.replaceChildren();
  const numbered = numberedOf(reading, columns, bars.clientWidth || 500);
  const said = columns.map(({ text, cols }) => `${text} ${share(Math.abs(sum(mass, cols)))}`);
  setAttributes(bars, { role: "img", "aria-label": `${one.title}: ${said.join(", ")}` });
  sync(
    bars,
    columns,
    () => h("div", {}, h("span", {}), h("i", {})),
    (cell, { cols, token }) => {
      const [label, bar] = cell.children as unknown as [HTMLElement, HTMLElement];
      const value = sum(mass, cols);
      const [c = -1] = cols;
      const figure =
        cols.length === 1 && numbered.has(c) && Math.abs(value) > 0.08
          ? reading.method.signed
            ? signed(reading.values[c] ?? 0)
            : share(shareOf(reading, c))
          : "";
      setText(label, figure);
      cell.dataset.token = String(token);
      const part = most > 0 ? Math.abs(value) / most : 0;
      bar.style.height = `${(part * 48).toFixed(1)}px`;
      setAttributes(bar, {
        class: cols.length > 1 ? "mix-fold-bar" : value < 0 ? "mix-against" : "mix-for",
      });
    },
  );
}
