/** The input's tokens, shaded by score. */

import { rowScale, type Scale } from "../kit/colour";
import type { Context, View } from "../kit/context";
import { h, rove, setAttributes, setRoving, setText, sync } from "../kit/dom";
import { createLegend } from "../kit/legend";
import { createTable } from "../kit/table";
import { number, percent, plural } from "../state/format";
import type { State } from "../state/state";
import { largestSize, ranks, sumOf } from "../state/stats";
import type { Unit } from "../state/units";
import { meaning } from "../state/words";
import { absent, createNotice, moveLayer, soFar } from "./shared";

const RANKED = 10;
const TOKEN = '[data-part="token"]';

export function textView(element: HTMLElement, context: Context): View {
  const blocks = h("div", { class: "mix-blocks" });
  const notice = createNotice(context);
  const legend = createLegend();
  const ranking = h("ol", { class: "mix-ranking" });
  const rankingBox = h(
    "section",
    { class: "mix-ranking-box", "aria-label": "Strongest tokens" },
    h("h4", {}, "Strongest"),
    ranking,
  );
  const table = createTable(context.signal);
  const main = h(
    "div",
    { class: "mix-text-main" },
    legend.element,
    blocks,
    notice.element,
    table.element,
  );
  element.append(h("div", { class: "mix-text" }, main, rankingBox));

  let state: State | undefined;
  let names: string[] = [];
  let shown: { values: Float32Array; places: number[]; total: number } | undefined;
  /** The token that the tooltip speaks of. */
  let pointed: HTMLElement | null = null;

  const describe = (unit: number): string[] => {
    if (!state) return [];
    const text = names[unit] ?? "";
    const c = state.layout.columnOf[unit] ?? -1;
    if (!shown || c < 0) return [text, c < 0 ? "a hidden special token" : "not computed yet"];
    const value = shown.values[c] as number;
    const lines = [text, number(value)];
    lines.push(`rank ${shown.places[c]} of ${shown.values.length}`);
    if (!state.method?.signed && shown.total > 0)
      lines.push(`${percent(value / shown.total)} of the total`);
    if (unit === state.layout.focus) lines.push("the focus token");
    return lines;
  };
  const tokenOf = (event: Event) => (event.target as Element).closest<HTMLElement>(TOKEN);
  const point = (token: HTMLElement | null) => {
    pointed = token;
    if (token) context.tip.over(token, describe(Number(token.dataset.unit)));
    else context.tip.hide();
  };
  const choose = (event: Event) => {
    const token = tokenOf(event);
    const unit = token && state?.layout.units[Number(token.dataset.unit)];
    if (unit) context.set({ focus: unit.index });
  };
  context.listen(blocks, "pointerover", (event) => point(tokenOf(event)));
  context.listen(blocks, "focusin", (event) => point(tokenOf(event)));
  context.listen(blocks, "pointerleave", () => point(null));
  context.listen(blocks, "focusout", () => point(null));
  context.listen(blocks, "click", choose);
  context.listen(blocks, "keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") choose(event);
    else if (state && event.key === "ArrowUp") moveLayer(state, context, 1);
    else if (state && event.key === "ArrowDown") moveLayer(state, context, -1);
    else return;
    event.preventDefault();
  });
  const backward = () =>
    blocks.querySelector(`${TOKEN}:focus`)?.closest('.mix-tokens[dir="rtl"]') != null;
  rove(blocks, TOKEN, context.listen, {
    get next() {
      return [backward() ? "ArrowLeft" : "ArrowRight"];
    },
    get previous() {
      return [backward() ? "ArrowRight" : "ArrowLeft"];
    },
  });

  return {
    update(next) {
      state = next;
      names = namesOf(next);
      const method = next.method;
      const layer = method ? next.reached(method.id) : next.layer;
      const found = method && next.scores(method.id, layer);
      shown = found && {
        values: found.values,
        places: ranks(found.values),
        total: sumOf(found.values),
      };
      const scale =
        found && method ? rowScale(context.palette(), found.values, method.signed) : null;
      drawBlocks(blocks, next, found?.values, scale, describe);
      // Its numbers may be others now. One that was sent away with Escape stays away.
      if (pointed && !context.tip.element.hidden) point(pointed.isConnected ? pointed : null);
      if (method && !found) {
        const lack = absent(next, context, method.id);
        notice.update(lack.text, lack.actions);
      } else notice.update(method ? soFar(next, layer) : null);
      legend.update(scale, legendWords(next, scale));
      drawRanking(ranking, next, names, found?.values, scale);
      rankingBox.hidden = !found;
      table.update(
        found && method
          ? {
              caption: `${method.title}. ${meaning(next, method, layer)}`,
              rowTitle: "",
              colTitle: "token",
              rows: ["score"],
              cols: next.layout.cols.map((unit) => names[unit] ?? ""),
              values: found.values,
            }
          : null,
      );
    },
  };
}

/** What units are called: with their position (the first token is 0) where a text occurs again. */
function namesOf({ layout }: State): string[] {
  const often = new Map<string, number>();
  for (const unit of layout.rows) {
    const text = layout.units[unit]?.text ?? "";
    often.set(text, (often.get(text) ?? 0) + 1);
  }
  return layout.units.map(({ text, index }) =>
    (often.get(text) ?? 0) > 1 ? `${text} (${index})` : text,
  );
}

const LETTER = /\p{L}/u;
const RIGHT_TO_LEFT =
  /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u;

/** As `dir="auto"` has it, by the first letter. That attribute would go by "[CLS]". */
function directionOf(units: Unit[]): "ltr" | "rtl" {
  for (const { text, special } of units) {
    const letter = special ? undefined : LETTER.exec(text)?.[0];
    if (letter) return RIGHT_TO_LEFT.test(letter) ? "rtl" : "ltr";
  }
  return "ltr";
}

function legendWords(state: State, scale: Scale | null): string {
  if (!scale) return "";
  if (scale.signed) return "orange speaks against, blue speaks for";
  return state.method?.yields === "maps" && state.traits.aggregate === "rollout"
    ? "share of the focus token"
    : "score";
}

/** Tokens of each text in a block of their own. */
export function drawBlocks(
  parent: HTMLElement,
  state: State,
  values: Float32Array | undefined,
  scale: Scale | null,
  describe?: (unit: number) => string[],
): void {
  const shown = describe ? shownUnits(state) : state.layout.cols;
  const segments = [...new Set(shown.map((unit) => state.layout.units[unit]?.segment ?? 0))];
  const pair = segments.length > 1;
  const made = sync(
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
      setText(name, segment === 0 ? "Text" : "Second text");
      const units = shown.filter((unit) => (state.layout.units[unit]?.segment ?? 0) === segment);
      if (describe) {
        setAttributes(tokens, {
          role: "listbox",
          "aria-orientation": "horizontal",
          "aria-label": `${pair ? (segment === 0 ? "First text" : "Second text") : "Text"}: choose the focus token`,
        });
      }
      setAttributes(tokens, { dir: directionOf(units.map((i) => state.layout.units[i] as Unit)) });
      drawTokens(tokens, state, units, values, scale, describe);
    },
  );
  if (!describe) return;
  const active = parent.querySelector<HTMLElement>(`${TOKEN}[tabindex="0"]`);
  const chosen = active ?? parent.querySelector<HTMLElement>(`${TOKEN}[aria-selected="true"]`);
  setRoving(parent, TOKEN, chosen ?? made[0]?.querySelector(TOKEN) ?? null);
}

/** Hidden special tokens stay hidden, the focus excepted: it must be seen to be understood. */
const shownUnits = (state: State) => state.layout.rows;

function drawTokens(
  parent: HTMLElement,
  state: State,
  units: number[],
  values: Float32Array | undefined,
  scale: Scale | null,
  describe?: (unit: number) => string[],
): void {
  sync(
    parent,
    units,
    () => h("span", { class: "mix-token", dir: "auto" }),
    (span, index) => {
      const unit = state.layout.units[index] as Unit;
      const c = state.layout.columnOf[index] ?? -1;
      const value = c >= 0 ? values?.[c] : undefined;
      setText(span, unit.text);
      span.classList.toggle("mix-special", unit.special);
      span.classList.toggle("mix-glued", unit.glued);
      span.style.backgroundColor = value !== undefined && scale ? scale.css(value) : "";
      span.style.color = value !== undefined && scale ? scale.ink(value) : "";
      if (!describe) return;
      const focus = index === state.layout.focus;
      span.classList.toggle("mix-focus", focus);
      setAttributes(span, {
        role: "option",
        "data-part": "token",
        "data-index": unit.index,
        "data-unit": index,
        "data-score": value === undefined ? null : value.toPrecision(4),
        "aria-selected": focus ? "true" : "false",
        "aria-label": describe(index).join(", "),
      });
    },
  );
}

function drawRanking(
  list: HTMLElement,
  state: State,
  names: string[],
  values: Float32Array | undefined,
  scale: Scale | null,
): void {
  const order = values
    ? Array.from(values, (_, c) => c)
        .sort((a, b) => Math.abs(values[b] as number) - Math.abs(values[a] as number))
        .slice(0, RANKED)
    : [];
  const peak = values ? largestSize(values) : 0;
  list.setAttribute("aria-label", `The ${plural(order.length, "strongest token")}`);
  sync(
    list,
    order,
    () =>
      h(
        "li",
        {},
        h("span", { class: "mix-rank-name", dir: "auto" }),
        h(
          "span",
          { class: "mix-rank-track", "aria-hidden": "true" },
          h("span", { class: "mix-rank-bar" }),
        ),
        h("span", { class: "mix-rank-value" }),
      ),
    (row, c) => {
      const [name, track, figure] = row.children as unknown as [
        HTMLElement,
        HTMLElement,
        HTMLElement,
      ];
      const value = values?.[c] ?? 0;
      setText(name, names[state.layout.cols[c] as number] ?? "");
      setText(figure, number(value));
      const bar = track.firstElementChild as HTMLElement;
      bar.style.width = `${peak > 0 ? Math.max(1, (100 * Math.abs(value)) / peak) : 0}%`;
      bar.style.backgroundColor = scale
        ? scale.css(scale.signed ? Math.sign(value) * scale.max * 0.7 : scale.max * 0.62)
        : "";
    },
  );
}
