/** The text itself: the sentence, coloured; the place where it is edited; what a word says. */

import type { Context, View } from "../kit/context";
import { h, onResize, rove, setRoving, setText, show } from "../kit/dom";
import { icon } from "../kit/icons";
import { moveLayer } from "../kit/steps";
import { drawBlocks, ITEM, sentenceScale, TOKEN } from "../kit/tokens";
import { drawTurns } from "../kit/turns";
import { inTurns } from "../state/answer";
import { number, percent, plural, share } from "../state/format";
import { type Reading, readingOf, shareOf } from "../state/reading";
import type { State } from "../state/state";
import { ranks } from "../state/stats";
import { namesOf } from "../state/units";
import { createEditor } from "./editor";
import { createTurns } from "./turns";

/** From so many words on, or so many lines, runs that carry little are folded. */
const LONG = 90;
const LINES_WIDE = 4.5;
const LINES_NARROW = 6;
const NARROW = 600;
/** A word with this share of the strongest is worth reading, and so are some beside it. */
const WORTH = 0.12;
const BESIDE = 3;
const SHORTEST = 4;
/** So many words of a long text are in sight. */
const MOST_WIDE = 40;
const MOST_NARROW = 24;

export function sentence(element: HTMLElement, context: Context): View {
  const { listen, marks } = context;
  const blocks = h("div", { class: "mix-sentence" });
  const pencil = h(
    "button",
    {
      type: "button",
      class: "mix-ico mix-edit",
      "data-part": "edit",
      "aria-label": "Edit the text",
      title: "Edit the text (E)",
    },
    icon("edit"),
  );
  const turns = createTurns(blocks, context);
  const strip = h("canvas", { class: "mix-strip", "aria-hidden": "true" });
  const editor = createEditor(context, () => context.redraw());
  element.append(blocks, turns.element, pencil, strip, editor.element);
  let state: State | undefined;
  let names: string[] = [];
  let reading: Reading | null = null;
  let places: number[] = [];
  let of: unknown;
  const opened = new Set<number>();
  /** The first word of a fold that was opened by a key. */
  let returnTo = -1;
  /** The token that the tooltip speaks of. */
  let pointed: HTMLElement | null = null;

  const describe = (unit: number): string[] => {
    if (!state) return [];
    const text = names[unit] ?? "";
    const c = state.layout.columnOf[unit] ?? -1;
    if (!reading || c < 0) return [text, c < 0 ? "a hidden special token" : "not computed yet"];
    const value = reading.values[c] as number;
    const lines = [text];
    if (!reading.method.signed && reading.total > 0)
      lines.push(`${percent(shareOf(reading, c))} of the total`);
    lines.push(`score ${number(value)}, rank ${places[c]} of ${reading.values.length}`);
    if (unit === state.layout.focus) lines.push(state.away ? "looked at" : "where it is read");
    return lines;
  };
  const tokenOf = (event: Event) => (event.target as Element).closest<HTMLElement>(TOKEN);
  const point = (token: HTMLElement | null) => {
    pointed = token;
    marks.point(token ? Number(token.dataset.index) : null);
    if (token) context.tip.over(token, describe(Number(token.dataset.unit)));
    else context.tip.hide();
  };
  const choose = (event: Event) => {
    const token = tokenOf(event);
    if (!token) return;
    const index = Number(token.dataset.index);
    marks.hold(marks.pin === index ? null : index);
    context.redraw();
  };
  /** Open the fold that was meant, and stay where it was. */
  const unfold = (event: Event): boolean => {
    const fold = (event.target as Element).closest<HTMLElement>(".mix-fold[data-units]");
    if (!fold) return false;
    const units = (fold.dataset.units ?? "").split(",").map(Number);
    for (const unit of units) opened.add(unit);
    returnTo = fold.matches(":focus") ? (units[0] ?? -1) : -1;
    context.redraw();
    return true;
  };
  listen(blocks, "pointerover", (event) => point(tokenOf(event)));
  listen(blocks, "focusin", (event) => point(tokenOf(event)));
  listen(blocks, "pointerleave", () => point(null));
  listen(blocks, "focusout", () => point(null));
  listen(blocks, "click", (event) => {
    if (!unfold(event)) choose(event);
  });
  listen(blocks, "keydown", (event) => {
    if ((event.target as Element).matches("button")) return;
    if (event.key === "Enter" || event.key === " ") {
      if (!unfold(event)) choose(event);
    } else if (state && event.key === "ArrowUp") moveLayer(state, context, 1);
    else if (state && event.key === "ArrowDown") moveLayer(state, context, -1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  const backward = () => blocks.querySelector(":focus")?.closest('.mix-tokens[dir="rtl"]') != null;
  rove(blocks, ITEM, listen, {
    get next() {
      return [backward() ? "ArrowLeft" : "ArrowRight"];
    },
    get previous() {
      return [backward() ? "ArrowRight" : "ArrowLeft"];
    },
  });
  listen(pencil, "click", () => editor.open());
  marks.onChange(mark);
  let wide = narrow();
  onResize(
    element,
    () => {
      if (wide !== narrow()) context.redraw();
      wide = narrow();
    },
    context.signal,
  );
  listen(strip, "click", (event) => {
    const cols = state?.layout.cols ?? [];
    const at = Math.floor((event.offsetX / Math.max(strip.clientWidth, 1)) * cols.length);
    for (let c = at - BESIDE; c <= at + BESIDE; c++) opened.add(cols[c] ?? -1);
    context.redraw();
  });

  /** What is under the pointer, held, or taken away, without drawing anything anew. */
  function mark(): void {
    for (const token of blocks.querySelectorAll<HTMLElement>(".mix-reply"))
      token.classList.toggle(
        "mix-on",
        [marks.hover, marks.pin].includes(Number(token.dataset.token)),
      );
    for (const token of blocks.querySelectorAll<HTMLElement>(TOKEN)) {
      const index = Number(token.dataset.index);
      const unit = state?.layout.units[Number(token.dataset.unit)];
      token.classList.toggle("mix-on", index === marks.hover || index === marks.pin);
      token.classList.toggle(
        "mix-gone",
        unit?.tokens.every((one) => marks.gone.has(one)),
      );
    }
  }

  function narrow(): boolean {
    return element.clientWidth > 0 && element.clientWidth < NARROW;
  }

  /** Whether the text would take the place of its picture. In letters of a usual width. */
  function isLong(next: State): boolean {
    const { rows, units } = next.layout;
    if (rows.length >= LONG || inTurns(next)) return rows.length >= LONG;
    let letters = 0;
    for (const row of rows) {
      const unit = units[row];
      letters += 0.52 * (unit?.text.length ?? 0) + (unit?.glued ? 0 : 0.55);
    }
    const lines = ((narrow() ? 19 : 22) * letters) / ((element.clientWidth || 760) - 60);
    return lines > (narrow() ? LINES_NARROW : LINES_WIDE);
  }

  function foldsOf(next: State): ReadonlySet<number> | undefined {
    const { cols, rows } = next.layout;
    if (!reading || !isLong(next)) return undefined;
    const kept = new Set<number>(opened);
    const around = (c: number, far: number) => {
      for (let near = c - far; near <= c + far; near++) kept.add(cols[near] ?? -1);
    };
    for (const token of [marks.pin, ...marks.gone]) {
      const c = next.layout.columnOf[next.layout.unitOf[token ?? -1] ?? -1] ?? -1;
      if (c >= 0) around(c, token === marks.pin ? BESIDE : 0);
    }
    // The strongest first, each with its neighbours, as far as they fit above the picture.
    const room = kept.size + (narrow() ? MOST_NARROW : MOST_WIDE);
    const far = narrow() ? BESIDE - 1 : BESIDE;
    for (const c of reading.order) {
      if (kept.size >= room || Math.abs(reading.values[c] ?? 0) < WORTH * reading.peak) break;
      around(c, far);
    }
    const folded = new Set<number>();
    let run: number[] = [];
    for (const unit of [...rows, -1]) {
      if (unit >= 0 && !kept.has(unit) && !reading.aside.has(unit)) run.push(unit);
      else {
        if (run.length >= SHORTEST) for (const one of run) folded.add(one);
        run = [];
      }
    }
    return folded;
  }

  function foldButton(units: number[]): HTMLElement {
    const carried = reading
      ? units.reduce(
          (sum, unit) => sum + shareOf(reading as Reading, state?.layout.columnOf[unit] ?? -1),
          0,
        )
      : 0;
    // One of the list's own, reached by the same arrows as the words around it.
    return h(
      "span",
      {
        class: "mix-fold",
        role: "option",
        tabindex: "-1",
        "aria-selected": "false",
        "data-units": units.join(","),
        title: "Unfold",
      },
      `${plural(units.length, "token")}, ${share(carried)}`,
    );
  }

  return {
    update(next) {
      if (of !== next.traits.tokens) opened.clear();
      of = next.traits.tokens;
      state = next;
      editor.update(next);
      names = namesOf(next.layout);
      const method = next.method;
      const layer = method ? next.reached(method.id) : next.layer;
      reading = method ? readingOf(next, method, next.scores(method.id, layer)?.values) : null;
      places = reading ? ranks(reading.values) : [];
      const words = next.traits.view === "compare";
      const editing = editor.editing();
      const turned = inTurns(next);
      const bare = words && !turned;
      show(blocks, !editing && !bare && next.n > 0);
      show(pencil, next.live && !editing && !words);
      element.hidden = bare && !editing;
      blocks.classList.toggle("mix-turned", turned);
      if (bare || editing || blocks.dataset.turned !== String(turned)) blocks.replaceChildren();
      blocks.dataset.turned = String(turned);
      if (bare || editing) turns.element.hidden = true;
      else {
        const scale = sentenceScale(context.palette(), reading, context.own.stretch);
        const chosen = next.layout.unitOf[marks.pin ?? -1] ?? next.layout.focus;
        const folded = foldsOf(next);
        const hooks = { describe, chosen, folded, fold: foldButton };
        blocks.classList.toggle("mix-long", folded !== undefined);
        if (turned) {
          const { opened } = turns;
          const pinned = marks.pin === null ? { ...hooks, chosen: -1 } : hooks;
          drawTurns(blocks, next, reading, scale, { ...pinned, opened, bare: words });
        } else drawBlocks(blocks, next, reading, scale, hooks);
        turns.update(next);
        const active = blocks.querySelector<HTMLElement>(`${TOKEN}[tabindex="0"]`);
        const selected =
          active ?? blocks.querySelector<HTMLElement>(`${TOKEN}[aria-selected="true"]`);
        setRoving(blocks, ITEM, selected ?? blocks.querySelector(TOKEN));
        if (returnTo >= 0) blocks.querySelector<HTMLElement>(`[data-unit="${returnTo}"]`)?.focus();
        returnTo = -1;
        mark();
      }
      const sunk = reading !== null && reading.sink >= 0;
      blocks.classList.toggle("mix-mute", sunk && context.own.stretch !== method?.id);
      drawStrip(next, words || editing);
      // Its numbers may be others now. One that was sent away with Escape stays away.
      if (pointed && !context.tip.element.hidden) point(pointed.isConnected ? pointed : null);
    },
  };

  function drawStrip(next: State, hidden: boolean): void {
    const long = !hidden && reading !== null && isLong(next);
    show(strip, long);
    if (!long || !reading) return;
    const draw = strip.getContext("2d");
    const count = reading.values.length;
    strip.width = Math.max(2 * count, 200);
    strip.height = 18;
    if (!draw) return;
    const inks = context.inks();
    const step = strip.width / count;
    reading.values.forEach((value, c) => {
      const aside = reading?.aside.has(next.layout.cols[c] as number);
      const size = aside || !reading ? 0 : Math.abs(value) / (reading.peak || 1);
      draw.fillStyle = size > WORTH ? inks.edge : inks.line;
      const height = 3 + 15 * Math.min(size, 1);
      draw.fillRect(c * step, 18 - height, Math.max(step - 0.6, 0.6), height);
    });
    setText(strip, "");
  }
}
