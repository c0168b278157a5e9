/** A method's card: what it measures, its formula, what it ignores, its paper, its cost. */

import type { Context } from "../kit/context";
import { h, show } from "../kit/dom";
import { partsOf, toMath, toText } from "../kit/tex";
import { cost } from "../state/format";
import type { Json, MethodEntry, MethodOption } from "../wire/types";

const YIELDS: Record<MethodEntry["yields"], string> = {
  maps: "what every token takes from every other, layer by layer",
  layer_scores: "a score for every token in every layer",
  scores: "one score for every token",
};

function safeLink(link: string): string | null {
  return /^https?:\/\//.test(link) ? link : null;
}

export function cardContent(entry: MethodEntry): HTMLElement[] {
  const formula = h("div", { class: "mix-formula" });
  if (entry.formula) {
    for (const part of partsOf(entry.formula)) {
      const math = toMath(part);
      math.setAttribute("aria-label", toText(part));
      formula.append(math);
    }
  }
  const link = safeLink(entry.link);
  const paper = `${entry.paper}${entry.year ? ` (${entry.year})` : ""}`;
  const facts = h("dl", {});
  const fact = (name: string, ...content: (Node | string)[]) => {
    facts.append(h("dt", {}, name), h("dd", {}, ...content));
  };
  fact("Gives", `${YIELDS[entry.yields]}${entry.signed ? "; scores may be negative" : ""}`);
  if (entry.ignores) fact("Ignores", entry.ignores);
  fact("Cost", cost(entry.cost));
  fact(
    "Paper",
    link ? h("a", { href: link, target: "_blank", rel: "noopener noreferrer" }, paper) : paper,
  );
  const parts: HTMLElement[] = [h("h4", {}, entry.title)];
  if (!entry.available) {
    parts.push(h("p", { class: "mix-card-reason" }, `Not available here: ${entry.reason}`));
  }
  parts.push(h("p", {}, entry.measures));
  if (entry.formula) parts.push(formula);
  parts.push(facts);
  if (entry.available) {
    const hint = "Click puts it in front; shift-click adds it to the comparison.";
    parts.push(h("p", { class: "mix-card-hint" }, hint));
  }
  return parts;
}

const OPEN_AFTER_MS = 280;
/** Long enough to cross from a method to the card. */
const CLOSE_AFTER_MS = 400;
const AIM_PX = 30; // how far beside the card a pointer may aim at it
const STEP_PX = 6; // shorter moves have no direction

export interface Card {
  element: HTMLElement;
  /** Opens when pointer or focus has rested; another method's card closes at once. */
  rest(entry: MethodEntry, opener: HTMLElement): void;
  /** Opens and stays until it is closed. */
  pin(entry: MethodEntry, opener: HTMLElement): void;
  pinnedBy(): HTMLElement | null;
  leave(): void;
  close(): void;
  /** To be told of every move of the pointer over the methods. */
  follow(event: PointerEvent): void;
}

/** The one card of a list of methods. It lies under the tabs: what is next after pointing at a
 * method, another method or a view, is never covered. */
export function createCard(
  context: Context,
  options: (entry: MethodEntry) => HTMLElement | null,
  changed: () => void,
): Card {
  const { listen } = context;
  const element = h("div", {
    class: "mix-card",
    role: "dialog",
    "aria-label": "About this method",
    hidden: true,
  });
  let timer: ReturnType<typeof setTimeout> | undefined;
  let opener: HTMLElement | null = null;
  let pinned = false;
  let at = { x: 0, y: 0 };
  let aimed = false;
  context.signal.addEventListener("abort", () => clearTimeout(timer));

  function open(entry: MethodEntry, by: HTMLElement, stays: boolean): void {
    clearTimeout(timer);
    opener = by;
    pinned = stays;
    element.replaceChildren(...cardContent(entry));
    const fields = pinned ? options(entry) : null;
    if (fields) element.append(fields);
    // Tab goes on from what has opened it.
    by.closest(".mix-families, .mix-about")?.after(element);
    show(element, true);
    element.scrollTop = 0;
    place(by.getBoundingClientRect());
    changed();
  }
  function place(by: DOMRect): void {
    const frame = element.parentElement?.getBoundingClientRect();
    const tabs = context.root.querySelector(".mix-tab-row")?.getBoundingClientRect();
    if (!frame) return;
    const left = Math.min(by.left - frame.left, frame.width - element.offsetWidth);
    element.style.left = `${Math.max(left, 0)}px`;
    element.style.top = `${(tabs ?? frame).bottom - frame.top + 4}px`;
  }
  function close(): void {
    clearTimeout(timer);
    pinned = false;
    show(element, false);
    changed();
  }
  function later(work: () => void, delay: number): void {
    clearTimeout(timer);
    timer = setTimeout(work, delay);
  }
  const leave = () => {
    if (pinned) return;
    later(() => !element.querySelector(":focus-visible") && close(), CLOSE_AFTER_MS);
  };

  listen(element, "pointerenter", () => clearTimeout(timer));
  listen(element, "pointerleave", leave);
  listen(element, "focusin", () => clearTimeout(timer));
  listen(element, "focusout", leave);

  return {
    element,
    rest(entry, by) {
      if (pinned) return;
      if (opener === by && !element.hidden) return clearTimeout(timer);
      // On its way to the card the pointer may cross other methods.
      if (!aimed) close();
      later(() => open(entry, by, false), OPEN_AFTER_MS);
    },
    pin: (entry, by) => open(entry, by, true),
    pinnedBy: () => (pinned ? opener : null),
    leave,
    close() {
      const inside = element.matches(":focus-within");
      close();
      if (!inside) return;
      opener?.focus();
      clearTimeout(timer); // going back to a method is no wish to see its card again
    },
    follow(event) {
      const step = { x: event.clientX - at.x, y: event.clientY - at.y };
      if (Math.hypot(step.x, step.y) < STEP_PX) return;
      at = { x: event.clientX, y: event.clientY };
      aimed = !element.hidden && aims(at, step, element.getBoundingClientRect());
    },
  };
}

interface Place {
  x: number;
  y: number;
}

/** Whether a pointer that goes on downwards as it does comes to a box. */
function aims(at: Place, step: Place, box: DOMRect): boolean {
  if (step.y <= 0) return false;
  const top = at.x + (step.x * (box.top - at.y)) / step.y;
  if (top > box.left - AIM_PX && top < box.right + AIM_PX) return true;
  const edge = step.x > 0 ? box.left : box.right;
  const side = at.y + (step.y * (edge - at.x)) / step.x;
  return (edge - at.x) * step.x > 0 && side > box.top && side < box.bottom;
}

const inWords = (value: Json) =>
  value === true ? "yes" : value === false ? "no" : value === null ? "none" : String(value);

/** The method's options that have a fixed set of values; others are set from Python. */
export function optionFields(
  entry: MethodEntry,
  given: Record<string, Json>,
  change: (values: Record<string, Json>) => void,
  signal: AbortSignal,
): HTMLElement | null {
  const known = entry.options.filter((option) => (option.choices?.length ?? 0) > 1);
  if (known.length === 0) return null;
  const field = (option: MethodOption) => {
    const select = h("select", { "aria-label": option.name, "data-option": option.name });
    for (const choice of option.choices ?? []) {
      const usual = JSON.stringify(choice) === JSON.stringify(option.default) ? " (usual)" : "";
      select.append(h("option", { value: JSON.stringify(choice) }, `${inWords(choice)}${usual}`));
    }
    select.value = JSON.stringify(given[option.name] ?? option.default);
    select.addEventListener(
      "change",
      () => {
        const { [option.name]: _former, ...rest } = given;
        const value = JSON.parse(select.value) as Json;
        const same = JSON.stringify(value) === JSON.stringify(option.default);
        change(same ? rest : { ...rest, [option.name]: value });
      },
      { signal },
    );
    const name = h("code", {}, option.name);
    return h("label", { class: "mix-option" }, name, select, h("span", {}, option.help));
  };
  return h("fieldset", { class: "mix-options" }, h("legend", {}, "Options"), ...known.map(field));
}
