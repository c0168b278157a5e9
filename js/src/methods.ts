/** The method toggles, by family, with their cards. */

import { cardContent, optionFields } from "./card";
import type { Context, View } from "./context";
import { h, rove, setAttributes, setRoving, setText, show } from "./dom";
import type { State } from "./state";
import type { MethodEntry } from "./types";

const OPEN_AFTER_MS = 350;
const CLOSE_AFTER_MS = 180;
const TOGGLE = '[data-part="method-toggle"]';
export const MOST_COMPARED = 4;

interface Chip {
  entry: MethodEntry;
  box: HTMLElement;
  toggle: HTMLElement;
  tick: HTMLInputElement;
}

export function methodsBar(element: HTMLElement, context: Context): View {
  const { listen } = context;
  const families = h("div", { class: "mix-families" });
  const measures = h("span", { class: "mix-measures" });
  const about = h(
    "button",
    { type: "button", class: "mix-link", "aria-expanded": "false" },
    "formula, paper, options",
  );
  const card = h("div", {
    class: "mix-card",
    role: "dialog",
    "aria-label": "About this method",
    hidden: true,
  });
  element.append(families, h("p", { class: "mix-about" }, measures, " ", about), card);

  let chips: Chip[] = [];
  let catalogue: readonly MethodEntry[] = [];
  let state: State | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let pinned = false;
  context.signal.addEventListener("abort", () => clearTimeout(timer));

  function open(entry: MethodEntry, anchor: Element): void {
    clearTimeout(timer);
    card.replaceChildren(...cardContent(entry));
    const options = pinned && state?.live ? optionsOf(entry) : null;
    if (options) card.append(options);
    show(card, true);
    const frame = element.getBoundingClientRect();
    const box = anchor.getBoundingClientRect();
    const left = Math.min(box.left - frame.left, frame.width - card.offsetWidth - 4);
    card.style.left = `${Math.max(left, 0)}px`;
    card.style.top = `${box.bottom - frame.top + 6}px`;
    about.setAttribute("aria-expanded", String(pinned));
  }
  /** Options can be set in a card that stays open. */
  function optionsOf(entry: MethodEntry): HTMLElement | null {
    const params = state?.traits.params ?? {};
    return optionFields(
      entry,
      params[entry.id] ?? {},
      (values) => {
        context.set({ params: { ...params, [entry.id]: values } });
        close();
      },
      context.signal,
    );
  }
  function close(): void {
    clearTimeout(timer);
    pinned = false;
    show(card, false);
    about.setAttribute("aria-expanded", "false");
  }
  const later = (work: () => void, delay: number) => {
    clearTimeout(timer);
    timer = setTimeout(work, delay);
  };
  const chipOf = (event: Event) => {
    const box = (event.target as Element).closest?.(".mix-chip");
    return chips.find((chip) => chip.box === box);
  };

  listen(families, "pointerover", (event) => {
    const chip = chipOf(event);
    if (chip && event.pointerType !== "touch" && !pinned) {
      later(() => open(chip.entry, chip.box), card.hidden ? OPEN_AFTER_MS : 80);
    }
  });
  listen(families, "pointerleave", () => !pinned && later(close, CLOSE_AFTER_MS));
  listen(card, "pointerenter", () => clearTimeout(timer));
  listen(card, "pointerleave", () => !pinned && later(close, CLOSE_AFTER_MS));
  listen(families, "focusin", (event) => {
    const chip = chipOf(event);
    if (chip?.toggle.matches(":focus-visible")) open(chip.entry, chip.box);
  });
  listen(families, "focusout", () => !pinned && later(close, CLOSE_AFTER_MS));
  listen(card, "focusin", () => clearTimeout(timer));
  listen(element, "keydown", (event) => {
    if (event.key !== "Escape" || card.hidden) return;
    event.stopPropagation();
    close();
  });
  listen(about, "click", () => {
    if (pinned) return close();
    if (!state?.method) return;
    pinned = true;
    open(state.method, about);
  });
  listen(context.root, "pointerdown", (event) => {
    const inside = event.composedPath().some((at) => at === card || at === about);
    if (pinned && !inside) close();
  });
  listen(families, "click", (event) => {
    const chip = chipOf(event);
    const onTick = (event.target as Element).closest(".mix-tick") !== null;
    if (!chip || onTick) return;
    if (event.shiftKey) compare(chip.entry.id);
    else if (chip.entry.available) {
      close();
      context.set({ method: chip.entry.id });
    }
  });
  listen(families, "change", (event) => {
    const chip = chipOf(event);
    if (chip) compare(chip.entry.id);
  });
  rove(families, TOGGLE, listen, {
    next: ["ArrowRight", "ArrowDown"],
    previous: ["ArrowLeft", "ArrowUp"],
  });

  function compare(id: string): void {
    if (!state) return;
    const chosen = state.traits.compared;
    if (chosen.includes(id)) context.set({ compared: chosen.filter((other) => other !== id) });
    else if (chosen.length < MOST_COMPARED) context.set({ compared: [...chosen, id] });
    else context.announce(`At most ${MOST_COMPARED} methods can be compared.`);
    context.redraw();
  }

  function build(): void {
    chips = [];
    const groups = new Map<string, HTMLElement>();
    for (const entry of catalogue) {
      const known = groups.get(entry.family);
      const group =
        known ?? h("div", { class: "mix-family", role: "group", "aria-label": entry.family });
      groups.set(entry.family, group);
      const tick = h("input", { type: "checkbox", "aria-label": `Compare ${entry.title}` });
      const toggle = h(
        "button",
        {
          type: "button",
          "data-part": "method-toggle",
          "data-method": entry.id,
          "aria-pressed": "false",
        },
        entry.title,
      );
      const ticked = h("label", { class: "mix-tick", title: "Compare with others" }, tick);
      const box = h("span", { class: "mix-chip" }, toggle, ticked);
      chips.push({ entry, box, toggle, tick });
      // The family's name stays with its first method when lines break.
      const name = h("span", { class: "mix-family-name", "aria-hidden": "true" }, entry.family);
      group.append(known ? box : h("span", { class: "mix-family-start" }, name, box));
    }
    families.replaceChildren(...groups.values());
  }

  return {
    update(next) {
      state = next;
      if (next.traits.catalogue !== catalogue) {
        catalogue = next.traits.catalogue;
        build();
      }
      let front: Element | null = null;
      const full = next.traits.compared.length >= MOST_COMPARED;
      for (const chip of chips) {
        const { id, available } = chip.entry;
        const chosen = id === next.traits.method;
        if (chosen) front = chip.toggle;
        const run = next.run(id);
        setAttributes(chip.toggle, {
          "aria-pressed": String(chosen),
          "aria-disabled": available ? null : "true",
        });
        const ticked = next.traits.compared.includes(id);
        if (chip.tick.checked !== ticked) chip.tick.checked = ticked;
        chip.tick.disabled = !available || (full && !ticked);
        setAttributes(chip.box, {
          "data-chosen": chosen || null,
          "data-ticked": ticked || null,
          "data-run": run?.state ?? null,
          "data-off": available ? null : true,
        });
        const busy = run?.state === "computing" ? Math.round(100 * run.progress) : 100;
        chip.box.style.setProperty("--mix-done", `${busy}%`);
      }
      const active = families.querySelector(`${TOGGLE}[tabindex="0"]`);
      const focused = active?.matches(":focus") ? active : front;
      setRoving(families, TOGGLE, focused ?? families.querySelector(TOGGLE));
      const method = next.method;
      setText(measures, method ? `${method.title}: ${method.measures}` : "");
      show(about, method !== undefined);
      setText(about, next.live ? "formula, paper, options" : "formula, paper");
    },
  };
}
