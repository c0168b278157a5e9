/** A method's card: what it measures, its formula, what it ignores, its paper, its cost. */

import { h } from "../kit/dom";
import { mathOf } from "../kit/math";
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
  if (entry.formula) parts.push(formulaOf(entry));
  parts.push(facts);
  if (entry.available) {
    const hint = "Enter puts it in front; Shift and Enter compare it.";
    parts.push(h("p", { class: "mix-card-hint" }, hint));
  }
  return parts;
}

/** Drawn where Python could read it, else as it is written. */
function formulaOf(entry: MethodEntry): HTMLElement {
  const lines = (entry.mathml ?? []).map(mathOf);
  const drawn = lines.filter((line) => line !== null);
  const whole = drawn.length > 0 && drawn.length === lines.length;
  return h("div", { class: "mix-formula" }, ...(whole ? drawn : [h("code", {}, entry.formula)]));
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
    return h(
      "label",
      { class: "mix-option" },
      name,
      select,
      h("span", { class: "mix-option-help" }, option.help),
    );
  };
  return h("fieldset", { class: "mix-options" }, h("legend", {}, "Options"), ...known.map(field));
}
