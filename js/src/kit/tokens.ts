/** Tokens of a text as words of a sentence, coloured by what a reading says of them. */

import { plural, share, signed } from "../state/format";
import { type Reading, shareOf } from "../state/reading";
import type { State } from "../state/state";
import type { Unit } from "../state/units";
import type { Palette, Scale } from "./colour";
import { h, setAttributes, setText, sync } from "./dom";

export const TOKEN = '[data-part="token"]';
/** What arrows go through: words, and runs of words that are folded. */
export const ITEM = `${TOKEN}, .mix-fold[data-units]`;

const LETTER = /\p{L}/u;
const RIGHT_TO_LEFT =
  /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u;
/** Stands at the word before it. */
export const CLOSING = /^[.,;:!?%)\]}’”»…]+$/u;
const OPENING = /[([{“«]$/u;

/** As `dir="auto"` has it, by the first letter. That attribute would go by "[CLS]". */
export function directionOf(units: Unit[]): "ltr" | "rtl" {
  for (const { text, special } of units) {
    const letter = special ? undefined : LETTER.exec(text)?.[0];
    if (letter) return RIGHT_TO_LEFT.test(letter) ? "rtl" : "ltr";
  }
  return "ltr";
}

/** How far up the scale the strongest word comes: it stays readable, and the colours clear. */
const STRONGEST = 0.58;
/** What has less than this of the strongest has no colour at all. */
const FAINTEST = 0.03;
/** A token beside the scale says its share from here on. */
const SAID = 0.05;

/** The scale of a sentence: up to its strongest word, never clipped. None where one token takes all,
 * unless the little that is left is to be stretched over the words. */
export function sentenceScale(
  palette: Palette,
  reading: Reading | null,
  stretched = "",
): Scale | null {
  if (!reading || !(reading.peak > 0)) return null;
  if (reading.sink >= 0 && stretched !== reading.method.id) return null;
  return palette.scale(reading.method.signed, reading.peak / STRONGEST);
}

export interface TokenHooks {
  /** A unit in words, the first line its name. */
  describe(unit: number): string[];
  /** Which unit is chosen. */
  chosen: number;
  /** Units that are folded away. */
  folded?: ReadonlySet<number> | undefined;
  /** What is put in the place of a run of folded units. */
  fold?(units: number[]): HTMLElement;
}

/** Tokens of each text in a block of their own. Without hooks they are words alone. */
export function drawBlocks(
  parent: HTMLElement,
  state: State,
  reading: Reading | null,
  scale: Scale | null,
  hooks?: TokenHooks,
): void {
  const shown = hooks ? state.layout.rows : state.layout.cols;
  const segmentOf = (unit: number) => state.layout.units[unit]?.segment ?? 0;
  const segments = [...new Set(shown.map(segmentOf))];
  const pair = segments.length > 1;
  sync(
    parent,
    segments,
    () =>
      h(
        "div",
        { class: "mix-block" },
        h("div", { class: "mix-block-name" }),
        h("div", { class: "mix-tokens" }),
      ),
    (block, segment) => {
      const [name, tokens] = block.children as unknown as [HTMLElement, HTMLElement];
      name.hidden = !pair;
      const second = /seq2seq/.test(state.traits.model_info.task)
        ? "Written so far"
        : "Second text";
      setText(name, segment === 0 ? "Text" : second);
      const units = shown.filter((unit) => segmentOf(unit) === segment);
      if (hooks) {
        setAttributes(tokens, {
          role: "listbox",
          "aria-orientation": "horizontal",
          "aria-label": pair ? (segment === 0 ? "First text" : second) : "Text",
        });
      }
      setAttributes(tokens, { dir: directionOf(units.map((i) => state.layout.units[i] as Unit)) });
      drawTokens(tokens, state, units, reading, scale, hooks);
    },
  );
}

export function drawTokens(
  parent: HTMLElement,
  state: State,
  units: number[],
  reading: Reading | null,
  scale: Scale | null,
  hooks?: TokenHooks,
): void {
  for (const one of [...parent.querySelectorAll(":scope > .mix-fold, :scope > .mix-cut")])
    one.remove();
  let before: HTMLElement | null = null;
  const spans = sync(
    parent,
    units,
    () => h("span", { class: "mix-token", dir: "auto" }),
    (span, index) => {
      const unit = state.layout.units[index] as Unit;
      drawToken(span, state, unit, index, reading, scale);
      const joined =
        unit.glued || CLOSING.test(unit.text) || OPENING.test(before?.textContent ?? "");
      const glued = joined && before !== null;
      span.classList.toggle("mix-glued", glued);
      // A line may only end where a word does.
      before?.classList.toggle("mix-ends", !glued);
      span.classList.add("mix-ends");
      before = span;
      if (!hooks) return;
      span.hidden = hooks.folded?.has(index) ?? false;
      const c = state.layout.columnOf[index] ?? -1;
      const value = c >= 0 ? reading?.values[c] : undefined;
      setAttributes(span, {
        role: "option",
        "data-part": "token",
        "data-index": unit.index,
        "data-unit": index,
        "data-score": value === undefined ? null : value.toPrecision(4),
        "aria-selected": index === hooks.chosen ? "true" : "false",
        "aria-label": hooks.describe(index).join(", "),
      });
    },
  );
  const { cut } = state.traits.model_info;
  if (hooks && cut && units.at(-1) === state.layout.rows.at(-1))
    parent.append(
      h("span", { class: "mix-cut", role: "presentation" }, `${plural(cut, "token")} cut off`),
    );
  if (!hooks?.folded?.size || !hooks.fold) return;
  let run: number[] = [];
  units.forEach((unit, i) => {
    if (hooks.folded?.has(unit)) run.push(unit);
    const next = units[i + 1];
    if (run.length > 0 && (next === undefined || !hooks.folded?.has(next))) {
      spans[i]?.after(hooks.fold?.(run) ?? "");
      run = [];
    }
  });
}

function drawToken(
  span: HTMLElement,
  state: State,
  unit: Unit,
  index: number,
  reading: Reading | null,
  scale: Scale | null,
): void {
  const c = state.layout.columnOf[index] ?? -1;
  const aside = unit.special || (reading?.aside.has(index) ?? false);
  let beside = "";
  let value = c >= 0 ? (reading?.values[c] ?? 0) : 0;
  if (aside && reading && c >= 0) {
    const part = shareOf(reading, c);
    if (reading.method.signed) {
      if (Math.abs(value) >= 0.1 * reading.peak) beside = signed(value);
    } else if (part >= SAID) beside = share(part, true);
  }
  if (aside || !reading || Math.abs(value) < FAINTEST * reading.peak) value = 0;
  setText(span, unit.text);
  // Shown by the style sheet: it is no part of the text.
  setAttributes(span, { "data-share": beside || null });
  span.classList.toggle("mix-special", aside);
  const coloured = scale !== null && value !== 0;
  span.style.backgroundColor = coloured ? scale.css(value) : "";
  span.style.color = coloured ? scale.ink(value) : "";
}

/** Words with values that are of no method: a difference. */
export function drawPlain(
  parent: HTMLElement,
  state: State,
  values: Float32Array,
  scale: Scale,
): void {
  drawBlocks(parent, state, null, null);
  const spans = [...parent.querySelectorAll<HTMLElement>(".mix-token")];
  values.forEach((value, c) => {
    const span = spans[c];
    if (!span) return;
    span.style.backgroundColor = scale.css(value);
    span.style.color = scale.ink(value);
  });
}
