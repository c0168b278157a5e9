/** Methods side by side: words once, and a row of bars for each under them. */

import { type BarRow, createBars } from "../kit/bars";
import type { Context, View } from "../kit/context";
import { h, setAttributes, setText, show, sync } from "../kit/dom";
import { createTable } from "../kit/table";
import { drawBlocks, sentenceScale } from "../kit/tokens";
import { readingOf } from "../state/reading";
import type { State } from "../state/state";
import { spearman } from "../state/stats";
import { lacking, leftOutWords, othersWords, withoutMapsWords } from "../state/words";
import type { MethodEntry } from "../wire/types";
import { createDifference, type Scored } from "./compare-difference";
import { createMaps } from "./compare-maps";
import { createNotice } from "./shared";

const MODES = ["bars", "text", "maps", "difference"] as const;
type Mode = (typeof MODES)[number];

export function compareView(element: HTMLElement, context: Context): View {
  const notice = createNotice(context);
  const dropped = h("p", { class: "mix-hint", "data-part": "left-out" });
  const choice = h("div", {
    class: "mix-segments",
    role: "group",
    "aria-label": "How methods are shown",
  });
  for (const mode of MODES) choice.append(h("button", { type: "button", "data-mode": mode }, mode));
  const bars = createBars(context);
  const rows = h("div", { class: "mix-compare-rows" });
  const maps = createMaps(context);
  const difference = createDifference(context);
  const table = createTable(context.signal);
  element.append(
    notice.element,
    bars.element,
    rows,
    maps.element,
    difference.element,
    dropped,
    choice,
    table.element,
  );
  let mode: Mode = "bars";
  context.listen(choice, "click", (event) => {
    const name = (event.target as Element).closest<HTMLElement>("button")?.dataset.mode;
    if (!name) return;
    mode = name as Mode;
    context.redraw();
  });

  function drawRows(next: State, methods: MethodEntry[]): void {
    sync(
      rows,
      methods,
      () =>
        h(
          "section",
          { class: "mix-compare-row" },
          h("h4", {}),
          h("div", { class: "mix-sentence mix-small" }),
          h("p", { class: "mix-hint" }),
        ),
      (row, method) => {
        const [title, blocks, lack] = row.children as unknown as HTMLElement[] as [
          HTMLElement,
          HTMLElement,
          HTMLElement,
        ];
        const reading = readingOf(next, method, next.scores(method.id)?.values);
        setText(title, method.title);
        drawBlocks(blocks, next, reading, sentenceScale(context.palette(), reading));
        setText(lack, reading ? "" : lacking(next, method.id));
        show(lack, !reading);
        setAttributes(row, { "aria-label": method.title });
      },
    );
  }

  return {
    update(next) {
      const methods = next.compared;
      const enough = methods.length >= 2;
      for (const button of choice.children)
        button.setAttribute("aria-pressed", String((button as HTMLElement).dataset.mode === mode));
      notice.update(
        enough ? null : othersWords(next, "compare them with this one"),
        enough ? [] : suggestions(next, context),
      );
      show(choice, enough);
      const scored = methods.map(
        (method): Scored => ({ method, values: next.scores(method.id)?.values ?? null }),
      );
      const mapped = mode === "maps" ? methods.filter((method) => method.yields === "maps") : [];
      const lost = mode === "maps" ? [withoutMapsWords(methods), ...missing(next, mapped)] : [];
      setText(dropped, [leftOutWords(next), ...lost].filter(Boolean).join(" "));
      show(dropped, dropped.textContent !== "");
      show(bars.element, mode === "bars" && methods.length > 0);
      show(rows, mode === "text");
      show(maps.element, mode === "maps");
      show(difference.element, mode === "difference" && enough);
      if (mode === "bars") bars.update(next, barRows(next, scored));
      if (mode === "text") drawRows(next, methods);
      maps.update(next, mapped);
      if (mode === "difference" && enough) difference.update(next, scored);
      table.update(
        enough
          ? {
              caption: "Scores by method",
              rowTitle: "method",
              colTitle: "token",
              rows: scored.filter((s) => s.values).map((s) => s.method.title),
              cols: next.layout.cols.map(next.label),
              values: scored.flatMap((s) => [...(s.values ?? [])]),
            }
          : null,
      );
    },
  };
}

function barRows(state: State, scored: Scored[]): BarRow[] {
  const measured = state.measured();
  const [front] = scored;
  return scored.map(({ method, values }): BarRow => {
    const judged = measured?.judged.get(method.id);
    const beats = judged?.beats.comprehensiveness;
    const rho = values && front?.values ? spearman(values, front.values) : null;
    const failed = measured?.failed.has(method.id) ?? false;
    return {
      title: method.title,
      about: method.signed ? "for and against" : method.family,
      reading: readingOf(state, method, values ?? undefined),
      lack: lacking(state, method.id),
      level: judged?.level ?? "none",
      beats: beats
        ? `${beats[0]}/${beats[1]}`
        : measured && !failed && measured.phase !== "done"
          ? "…"
          : "not tested",
      agrees:
        method === front?.method
          ? "reference"
          : rho === null
            ? ""
            : `ρ ${rho.toFixed(2).replace("-", "−")} to ${front?.method.title}`,
    };
  });
}

/** Why maps of methods that have maps are not there. */
const missing = (state: State, methods: MethodEntry[]) =>
  methods
    .filter(({ id }) => !state.map(id, state.traits.aggregate, state.layer))
    .map(({ id }) => lacking(state, id));

/** Quick methods of other families, to begin with. */
function suggestions(state: State, context: Context) {
  const families = new Set([state.method?.family]);
  const found: MethodEntry[] = [];
  for (const entry of state.traits.catalogue) {
    if (!entry.available || families.has(entry.family) || (entry.cost ?? 0) > 5) continue;
    families.add(entry.family);
    found.push(entry);
  }
  return found.slice(0, 3).map((entry) => ({
    label: `Compare with ${entry.title}`,
    run: () => context.set({ compared: [...state.traits.compared, entry.id] }),
  }));
}
