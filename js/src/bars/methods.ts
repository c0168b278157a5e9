/** The method toggles, by family, with their cards. */

import type { Context, View } from "../kit/context";
import { h, onResize, rove, setAttributes, setRoving, setText, show } from "../kit/dom";
import type { State } from "../state/state";
import type { MethodEntry } from "../wire/types";
import { createCard, optionFields } from "./card";

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
  const families = h("div", { class: "mix-families", role: "group", "aria-label": "Methods" });
  const measures = h("span", { class: "mix-measures" });
  const about = h(
    "button",
    { type: "button", class: "mix-link", "aria-expanded": "false" },
    "formula, paper, options",
  );
  const card = createCard(context, optionsOf, () =>
    about.setAttribute("aria-expanded", String(card.pinnedBy() === about)),
  );
  element.append(families, h("p", { class: "mix-about" }, measures, " ", about), card.element);

  let chips: Chip[] = [];
  let catalogue: readonly MethodEntry[] = [];
  let state: State | undefined;
  let shown = "";

  /** Options can be set in a card that stays open. */
  function optionsOf(entry: MethodEntry): HTMLElement | null {
    if (!state?.live) return null;
    const { params } = state.traits;
    return optionFields(
      entry,
      params[entry.id] ?? {},
      (values) => {
        context.set({ params: { ...params, [entry.id]: values } });
        card.close();
      },
      context.signal,
    );
  }
  const chipOf = (event: Event) => {
    const box = (event.target as Element).closest?.(".mix-chip");
    return chips.find((chip) => chip.box === box);
  };

  listen(families, "pointermove", card.follow);
  listen(families, "pointerover", (event) => {
    if (event.pointerType === "touch") return;
    card.follow(event);
    const chip = chipOf(event);
    if (chip) card.rest(chip.entry, chip.toggle);
    else card.leave();
  });
  listen(families, "pointerleave", card.leave);
  listen(families, "focusin", (event) => {
    const chip = chipOf(event);
    if (chip?.toggle.matches(":focus-visible")) card.rest(chip.entry, chip.toggle);
  });
  listen(families, "focusout", card.leave);
  // Wherever the focus is: the card may have been opened by the pointer alone.
  listen(
    element.ownerDocument,
    "keydown",
    (event) => {
      if (event.key === "Escape" && !card.element.hidden) card.close();
    },
    { capture: true },
  );
  listen(about, "click", () => {
    if (card.pinnedBy() === about) card.close();
    else if (state?.method) card.pin(state.method, about);
  });
  listen(context.root, "pointerdown", (event) => {
    const inside = event.composedPath().some((at) => at === card.element || at === about);
    if (card.pinnedBy() && !inside) card.close();
  });
  listen(families, "click", (event) => {
    const chip = chipOf(event);
    const onTick = (event.target as Element).closest(".mix-tick") !== null;
    if (!chip || onTick) return;
    if (event.shiftKey) compare(chip.entry);
    else if (chip.entry.available) {
      card.close();
      context.set({ method: chip.entry.id });
    } else card.pin(chip.entry, chip.toggle);
  });
  // Browsers differ in whether a click by the keyboard tells of Shift.
  let handled = false;
  listen(families, "keydown", (event) => {
    const chip = chipOf(event);
    handled = event.shiftKey && (event.key === " " || event.key === "Enter");
    if (!handled || !chip) return;
    event.preventDefault();
    if (!event.repeat) compare(chip.entry);
  });
  listen(families, "keyup", (event) => {
    if (handled && event.key === " ") event.preventDefault();
  });
  listen(families, "change", (event) => {
    const chip = chipOf(event);
    if (chip) compare(chip.entry);
  });
  rove(families, TOGGLE, listen, {
    next: ["ArrowRight", "ArrowDown"],
    previous: ["ArrowLeft", "ArrowUp"],
  });

  function compare({ id, title, available }: MethodEntry): void {
    if (!state) return;
    const chosen = state.traits.compared;
    if (chosen.includes(id)) {
      context.set({ compared: chosen.filter((other) => other !== id) });
      context.announce(`${title} is no longer compared.`);
    } else if (!available) context.announce(`${title} is not available here.`);
    else if (chosen.length < MOST_COMPARED) {
      context.set({ compared: [...chosen, id] });
      context.announce(`${title} is compared.`);
    } else context.announce(`At most ${MOST_COMPARED} methods can be compared.`);
    context.redraw();
  }

  /** Scrolls the list where it is a box of its own, never what is around it. */
  function reveal(): void {
    const box = chips.find((chip) => chip.entry.id === shown)?.box;
    if (!box || families.scrollHeight <= families.clientHeight) return;
    const frame = families.getBoundingClientRect();
    const style = getComputedStyle(families);
    const inner = (edge: string) => Number.parseFloat(edge) || 0;
    const { top, bottom } = box.getBoundingClientRect();
    const above = frame.top + inner(style.paddingTop) - top;
    const below = bottom - (frame.bottom - inner(style.paddingBottom));
    if (above > 0) families.scrollTop -= above;
    else if (below > 0) families.scrollTop += below;
  }
  onResize(families, reveal, context.signal);

  function build(): void {
    chips = [];
    const groups = new Map<string, HTMLElement>();
    for (const entry of catalogue) {
      const known = groups.get(entry.family);
      const group =
        known ?? h("div", { class: "mix-family", role: "group", "aria-label": entry.family });
      groups.set(entry.family, group);
      // Not a stop of its own: there would be one for every method.
      const tick = h("input", {
        type: "checkbox",
        tabindex: "-1",
        "aria-label": `Compare ${entry.title}`,
      });
      const toggle = h(
        "button",
        {
          type: "button",
          "data-part": "method-toggle",
          "data-method": entry.id,
          "aria-pressed": "false",
          "aria-description": entry.available
            ? "Shift and Space together compare it with others."
            : `Not available here: ${entry.reason}`,
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
        shown = "";
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
      if (shown !== next.traits.method) {
        shown = next.traits.method;
        reveal();
      }
      const method = next.method;
      setText(measures, method ? `${method.title}: ${method.measures}` : "");
      show(about, method !== undefined);
      setText(about, next.live ? "formula, paper, options" : "formula, paper");
    },
  };
}
