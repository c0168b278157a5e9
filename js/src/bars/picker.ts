/** All methods in one panel below the sentence: found by name, paper or property. */

import type { Context } from "../kit/context";
import { h, rove, setAttributes, setRoving, setText, show } from "../kit/dom";
import { createPopover } from "../kit/popover";
import type { State } from "../state/state";
import type { MethodEntry, ModelInfo } from "../wire/types";
import { cardContent, optionFields } from "./card";

const TOGGLE = '[data-part="method-toggle"]:not([hidden])';
export const MOST_COMPARED = 4;
/** Walking through the list recolours the text, but starts no long work. */
const QUICK = 5;
const REST_MS = 160;

export interface Picker {
  update(state: State): void;
}

export function createPicker(
  layer: HTMLElement,
  context: Context,
  front: HTMLElement,
  add: HTMLElement,
): Picker {
  const { listen } = context;
  const search = h("input", {
    type: "search",
    placeholder: "Find a method, a paper, a property: signed, fast, per class",
    "aria-label": "Find a method",
  });
  const list = h("div", { class: "mix-families", role: "group", "aria-label": "Methods" });
  const off = h("details", { class: "mix-off" });
  const about = h("button", { type: "button", class: "mix-link", "data-part": "about" });
  const hint = h("p", { class: "mix-hint" });
  const card = h("div", { class: "mix-card", role: "region", "aria-label": "About this method" });
  const panel = h(
    "div",
    { class: "mix-picker", role: "dialog", "aria-label": "Methods" },
    search,
    list,
    off,
    card,
    h("p", { class: "mix-hint" }, about),
    hint,
  );
  card.hidden = true;
  layer.append(panel);

  let state: State | undefined;
  let toggles: { entry: MethodEntry; button: HTMLElement; note: HTMLElement; all: string }[] = [];
  let catalogue: readonly MethodEntry[] = [];
  let firsts: NonNullable<ModelInfo["first"]> = [];
  let comparing = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let before = "";
  context.signal.addEventListener("abort", () => clearTimeout(timer));

  const popover = createPopover(
    context,
    panel,
    [front, add],
    (opener) => {
      comparing = opener === add;
      before = state?.traits.method ?? "";
      search.value = "";
      card.hidden = true;
      filter();
      place();
      search.focus();
    },
    () => {
      clearTimeout(timer);
      context.root.style.minHeight = "";
    },
  );

  /** Below the sentence; the widget grows if it must, so that nothing is cut off. */
  function place(): void {
    const frame = context.root.getBoundingClientRect();
    const text = context.root.querySelector(".mix-say")?.getBoundingClientRect();
    const top = Math.min((text ?? frame).bottom - frame.top + 6, 260);
    panel.style.top = `${Math.round(top)}px`;
    context.root.style.minHeight = `${Math.round(top + panel.offsetHeight + 12)}px`;
  }

  const found = (event: Event) => {
    const button = (event.target as Element).closest?.('[data-part="method-toggle"]');
    return toggles.find((one) => one.button === button);
  };

  function choose(entry: MethodEntry, beside: boolean): void {
    clearTimeout(timer);
    if (beside) compare(entry);
    else context.set({ method: entry.id });
    popover.close(true);
  }

  function compare({ id, title, available }: MethodEntry): void {
    if (!state || !available) return;
    const chosen = state.traits.compared;
    if (chosen.includes(id)) {
      context.set({ compared: chosen.filter((other) => other !== id) });
      context.announce(`${title} is no longer compared.`);
    } else if (chosen.length < MOST_COMPARED) {
      context.set({ compared: [...chosen, id] });
      context.announce(`${title} is compared.`);
    } else context.announce(`At most ${MOST_COMPARED} methods can be compared.`);
  }

  function showCard(entry: MethodEntry | undefined): void {
    if (!entry || !state) return;
    const { params } = state.traits;
    const fields = state.live
      ? optionFields(
          entry,
          params[entry.id] ?? {},
          (values) => context.set({ params: { ...params, [entry.id]: values } }),
          context.signal,
        )
      : null;
    card.replaceChildren(...cardContent(entry), ...(fields ? [fields] : []));
    card.dataset.method = entry.id;
    show(card, true);
    place();
    card.scrollIntoView?.({ block: "nearest" });
  }

  listen(list, "click", (event) => {
    const one = found(event);
    if (one?.entry.available) choose(one.entry, event.shiftKey || comparing);
  });
  listen(panel, "keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Escape") {
      // Walking through the list is taken back.
      if (before && state && state.traits.method !== before) context.set({ method: before });
      return;
    }
    const one = found(event);
    if (event.target === search && (event.key === "ArrowDown" || event.key === "Enter")) {
      event.preventDefault();
      const first = list.querySelector<HTMLElement>(TOGGLE);
      if (event.key === "ArrowDown") return first?.focus();
      const entry = toggles.find(({ button }) => button === first)?.entry;
      if (entry) choose(entry, event.shiftKey || comparing);
    } else if (one && event.key === "?") {
      event.preventDefault();
      showCard(one.entry);
    } else if (one && event.shiftKey && (event.key === "Enter" || event.key === " ")) {
      // Browsers differ in whether a click by the keyboard tells of Shift.
      event.preventDefault();
      if (!event.repeat) choose(one.entry, true);
    }
  });
  listen(list, "focusin", (event) => {
    const one = found(event);
    clearTimeout(timer);
    if (!one || comparing || !state?.live || !one.button.matches(":focus-visible")) return;
    const quick = (one.entry.cost ?? QUICK) < QUICK || state.run(one.entry.id)?.state === "ready";
    if (!quick || one.entry.id === state.traits.method) return;
    timer = setTimeout(() => context.set({ method: one.entry.id }), REST_MS);
  });
  listen(about, "click", () => showCard(state?.method));
  listen(search, "input", () => {
    filter();
    place();
  });
  rove(list, TOGGLE, listen, {
    next: ["ArrowRight", "ArrowDown"],
    previous: ["ArrowLeft", "ArrowUp"],
  });

  function filter(): void {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const { button, all, entry } of toggles)
      button.hidden = !entry.available || !words.every((word) => all.includes(word));
    for (const group of list.querySelectorAll<HTMLElement>(".mix-family"))
      group.hidden = group.querySelector(TOGGLE) === null;
    off.hidden = words.length > 0 || off.childElementCount < 2;
    setRoving(
      list,
      TOGGLE,
      list.querySelector(`${TOGGLE}[aria-pressed="true"]`) ?? list.querySelector(TOGGLE),
    );
  }

  function build(next: State): void {
    toggles = [];
    const first = h("div", { class: "mix-first" });
    const why = new Map(firsts.map((one) => [one.id, one.why]));
    const groups = new Map<string, HTMLElement>();
    const reasons = new Map<string, string[]>();
    for (const entry of catalogue) {
      const note = h("span", { class: "mix-method-note" });
      const chosen = why.has(entry.id) && entry.available;
      const button = h(
        "button",
        {
          type: "button",
          class: "mix-method",
          "data-part": "method-toggle",
          "data-method": entry.id,
        },
        h("span", {}, entry.title),
        note,
        chosen && h("small", {}, why.get(entry.id)),
      );
      toggles.push({ entry, button, note, all: searchable(entry) });
      if (!entry.available) {
        button.setAttribute("aria-disabled", "true");
        reasons.set(entry.reason, [...(reasons.get(entry.reason) ?? []), entry.title]);
      }
      if (chosen) first.append(button);
      else {
        const group =
          groups.get(entry.family) ??
          h(
            "section",
            { class: "mix-family", role: "group", "aria-label": entry.family },
            h("h4", {}, capital(entry.family)),
          );
        groups.set(entry.family, group);
        group.append(button);
      }
    }
    // In the order in which they are recommended, not in that of the catalogue.
    const place = (one: Element) =>
      firsts.findIndex(({ id }) => id === (one as HTMLElement).dataset.method);
    first.replaceChildren(...[...first.children].sort((a, b) => place(a) - place(b)));
    const box = h(
      "section",
      { class: "mix-family mix-first-box" },
      h("h4", {}, "Good first choices"),
      first,
    );
    show(box, first.childElementCount > 0);
    list.replaceChildren(box, h("div", { class: "mix-columns" }, ...groups.values()));
    const count = [...reasons.values()].reduce((sum, names) => sum + names.length, 0);
    const where = next.live ? "Not for this model and text" : "Not on this page";
    off.replaceChildren(
      h("summary", {}, `${where} (${count})`),
      ...[...reasons].map(([reason, names]) =>
        h("p", {}, h("strong", {}, names.join(", ")), ` ${reason}`),
      ),
    );
    if (count === 0) off.replaceChildren();
  }

  return {
    update(next) {
      state = next;
      const { first = [] } = next.traits.model_info;
      const same = JSON.stringify(first) === JSON.stringify(firsts);
      if (next.traits.catalogue !== catalogue || !same) {
        firsts = first;
        catalogue = next.traits.catalogue;
        build(next);
        filter();
      }
      const measured = popover.isOpen() ? next.measured() : undefined;
      let tested = false;
      for (const { entry, button, note } of toggles) {
        const run = next.run(entry.id);
        const beats = measured?.judged.get(entry.id)?.beats.comprehensiveness;
        tested ||= beats !== undefined;
        const busy = run?.state === "computing" ? `${Math.round(100 * run.progress)} %` : "";
        const rank = beats ? `${beats[0]}/${beats[1]}` : "";
        setText(
          note,
          busy || rank || (firsts.some(({ id }) => id === entry.id) ? passes(entry) : ""),
        );
        setAttributes(button, {
          "aria-pressed": String(entry.id === next.traits.method),
          "data-compared": next.traits.compared.includes(entry.id) || null,
          "data-run": run?.state ?? null,
        });
      }
      const page = next.live ? "" : " This page holds what is listed; the rest needs the notebook.";
      setText(
        hint,
        `${tested ? "19/20: on this text, random removals it beats. " : ""}Enter opens, Shift+Enter compares (four at most), ? shows formula and paper.${page}`,
      );
      const shown = card.hidden ? undefined : card.dataset.method;
      setText(
        about,
        next.method ? `${next.method.title}: formula, paper${next.live ? ", options" : ""}` : "",
      );
      if (shown && !next.entry(shown)) show(card, false);
    },
  };
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

function passes({ cost }: MethodEntry): string {
  if (cost === null || cost === undefined) return "";
  const count = Math.max(1, Math.round(cost));
  return count === 1 ? "1 pass" : `${count} passes`;
}

/** What the search looks at. */
function searchable(entry: MethodEntry): string {
  const properties = [
    entry.signed ? "signed for and against" : "unsigned",
    entry.class_specific ? "per class class-specific" : "",
    (entry.cost ?? 99) < 3 ? "fast quick" : "",
    entry.yields === "maps" ? "maps layers graph" : "",
    entry.yields === "layer_scores" ? "layers" : "",
  ];
  return [
    entry.id,
    entry.title,
    entry.family,
    entry.paper,
    entry.year,
    entry.measures,
    ...properties,
  ]
    .join(" ")
    .toLowerCase();
}
