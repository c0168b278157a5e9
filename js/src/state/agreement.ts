/** One sentence on where methods agree and where they part. */

import type { Said } from "./claim";
import { readingOf } from "./reading";
import type { State } from "./state";
import { unitMass } from "./stats";
import { lacking } from "./words";

const HOW = ["", "One", "Both", "All three", "All four"];
/** A method whose two strongest words hold less than this of its weight spreads it. */
const SPREAD = 0.4;

export function agreementOf(state: State): Said {
  const read = state.compared.map((method) => ({
    method,
    reading: readingOf(state, method, state.scores(method.id)?.values),
  }));
  const missing = read.find(({ reading }) => !reading);
  if (missing) return [{ text: lacking(state, missing.method.id) }];
  const tops = read.map(({ method, reading }) => {
    const [first, second] = reading?.order ?? [];
    const mass = unitMass((reading?.order ?? []).map((c) => reading?.values[c] ?? 0));
    const held = Math.abs(mass[0] ?? 0) + Math.abs(mass[1] ?? 0);
    const name = (c: number | undefined) =>
      c === undefined ? "" : state.label(state.layout.cols[c] ?? 0);
    return { title: method.title, first, second, name, held, many: mass.length };
  });
  const [front] = tops;
  if (!front) return [];
  const strong = (text: string) => ({ text, strong: true });
  const said: Said = [];
  const same = tops.filter((one) => one.first === front.first);
  const also = tops.every((one) => one.first === front.first && one.second === front.second);
  if (same.length === tops.length) {
    said.push({ text: `${HOW[tops.length] ?? "All"} put ` }, strong(front.name(front.first)));
    said.push({ text: " first" });
    if (also && front.second !== undefined)
      said.push({ text: " and " }, strong(front.name(front.second)), { text: " second" });
    said.push({ text: ". " });
  } else {
    const groups = new Map<number | undefined, string[]>();
    for (const one of tops) groups.set(one.first, [...(groups.get(one.first) ?? []), one.title]);
    let begun = false;
    for (const [first, titles] of groups) {
      const verb = titles.length > 1 ? "put" : "puts";
      said.push({ text: `${begun ? ", " : ""}${titles.join(" and ")} ${verb} ` });
      said.push(strong(front.name(first)), { text: " first" });
      begun = true;
    }
    said.push({ text: ". " });
  }
  const wide = tops.filter((one) => one.held < SPREAD && one.many > 4).map((one) => one.title);
  if (wide.length > 0 && wide.length < tops.length)
    said.push(strong(wide.join(" and ")), {
      text: ` ${wide.length > 1 ? "spread" : "spreads"} most of the weight over the other words.`,
    });
  return said;
}
