/** A method's card: what it measures, its formula, what it ignores, its paper, its cost. */

import { h } from "./dom";
import { cost } from "./format";
import { partsOf, toMath, toText } from "./tex";
import type { MethodEntry } from "./types";

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
  const parts: HTMLElement[] = [h("h4", {}, entry.title), h("p", {}, entry.measures)];
  if (entry.formula) parts.push(formula);
  parts.push(facts);
  parts.push(
    h(
      "p",
      { class: "mix-card-hint" },
      "Click puts it in front; shift-click adds it to the comparison.",
    ),
  );
  if (!entry.available) {
    parts.push(h("p", { class: "mix-card-reason" }, `Not available here: ${entry.reason}`));
  }
  return parts;
}
