/** Should you believe it? The probability as words are taken away, and what random orders do. */

import type { Context, View } from "../kit/context";
import { createCurves } from "../kit/curves";
import { type Line, type Point, pen, styleOf } from "../kit/curves-draw";
import { h, setAttributes, setText, show, sync } from "../kit/dom";
import { createTable } from "../kit/table";
import { duration, number, percent, plural, share } from "../state/format";
import type { State } from "../state/state";
import { lacking, leftOutWords } from "../state/words";
import type { Measured } from "../wire/measures";
import type { CurvePart, StartPart } from "../wire/protocol";
import { agreementTables, metricsTable } from "./faithfulness-tables";
import { createNotice } from "./shared";

const LISTED = 12; // words that are named one by one
const RANDOM = "random order";

/** What is drawn: methods in their order, with what was measured of them. */
interface Shown {
  state: State;
  start: StartPart;
  curves: CurvePart[];
  lines: Line[];
}

export function faithfulnessView(element: HTMLElement, context: Context): View {
  let shown: Shown | null = null;
  let point: Point | null = null;
  const dropped = h("p", { class: "mix-hint", "data-part": "left-out" });
  const notice = createNotice(context);
  const stop = h(
    "button",
    { type: "button", class: "mix-chip", "data-part": "measure-cancel" },
    "Stop",
  );
  const bar = h("progress", {
    max: 1,
    "data-part": "measure-progress",
    "aria-label": "Progress of measuring",
  });
  const doing = h("span", {});
  const work = h("div", { class: "mix-note", hidden: true }, doing, bar, stop);
  const slider = h("input", {
    type: "range",
    min: 0,
    step: 1,
    "data-part": "removal",
    "aria-label": "Words removed",
  });
  const output = h("output", {});
  const gauge = h("label", { class: "mix-gauge" }, h("span", {}, "words removed"), slider, output);
  const legend = h("div", { class: "mix-lines" });
  const strips = h("div", { class: "mix-strips" });
  const metrics = h("details", { class: "mix-table", "data-part": "metrics" });
  const agreement = h("details", { class: "mix-table", "data-part": "agreements" });
  const table = createTable(context.signal);
  const curves = createCurves(context, {
    describe: (at, whole) => (shown ? inWords(shown, at).slice(0, whole ? 4 : 3) : []),
    choose(at) {
      point = at;
      drawPoint();
    },
  });
  const body = h(
    "div",
    { class: "mix-test" },
    h("div", { class: "mix-test-main" }, curves.element, legend),
    strips,
  );
  element.append(dropped, notice.element, work, gauge, body, metrics, agreement, table.element);
  let stopIt = () => {};
  context.listen(stop, "click", () => stopIt());
  context.listen(slider, "input", () => {
    point = { line: point?.line ?? 0, at: Number(slider.value) };
    curves.select(point);
    drawPoint();
  });

  function hide(text: string | null, actions: { label: string; run(): void }[] = []): void {
    notice.update(text, actions);
    for (const one of [gauge, body, metrics, agreement]) show(one, false);
    table.update(null);
    context.marks.remove([]);
    shown = null;
  }

  function drawWork(state: State, measured: Measured | undefined): void {
    const busy = measured?.phase === "waiting" || measured?.phase === "asked";
    show(work, busy);
    if (!busy) return;
    stopIt = measured.stop;
    stop.hidden = measured.phase !== "asked";
    bar.value = measured.progress;
    const maps = state.traits.status.state === "computing";
    setText(
      doing,
      maps && !measured.start
        ? "Measuring begins when the methods are computed."
        : `Asking the model about the text with words removed: ${Math.round(100 * measured.progress)} %`,
    );
  }

  /** What is gone at the chosen point: in the sentence, on the slider, in words. */
  function drawPoint(): void {
    if (!shown) return;
    const { start, state } = shown;
    const curve = shown.curves[point?.line ?? 0];
    const at = point?.at ?? 0;
    const count = start.counts[at] ?? 0;
    context.marks.remove(point && curve ? curve.order.slice(0, count) : []);
    slider.max = String(start.counts.length - 1);
    slider.value = String(at);
    const value = curve?.probabilities[at] ?? start.probability;
    const whose = shown.lines.length > 1 ? `${shown.lines[point?.line ?? 0]?.title}: ` : "";
    const of = `${whose}${count} of ${start.removable.length}`;
    setText(output, `${of}, ${start.target || state.targetLabel} ${share(value)}`);
    slider.setAttribute("aria-valuetext", output.textContent ?? "");
  }

  return {
    leave: () => context.marks.remove([]),
    update(state) {
      const measured = state.measured();
      const front = state.method;
      setText(dropped, leftOutWords(state));
      show(dropped, state.leftOut.length > 0);
      drawWork(state, measured);
      if (!front) return hide(null);
      if (!measured)
        return hide(state.traits.model_info.prediction ? lacking(state, front.id) : NO_HEAD);
      const start = measured.start;
      const message = measured.phase === "error" ? measured.message : null;
      const actions =
        message !== null && state.live ? [{ label: "Measure again", run: measured.again }] : [];
      const waits = measured.costs !== null && measured.phase === "done" && !measured.random;
      if (waits && state.live) actions.push({ label: "Measure all of it", run: measured.insist });
      const where = state.live ? "" : " in the notebook";
      const words = waits
        ? `Random orders would take about ${duration(measured.costs ?? 0)}${where}.`
        : message;
      if (!start) return hide(words, actions);
      notice.update(words, actions);
      const methods = start.methods.filter((id) => measured.curves.has(id));
      const parts = methods.map((id) => measured.curves.get(id) as CurvePart);
      if (shown?.start !== start) {
        curves.update(null); // another question: its point is chosen anew
        point = null;
      }
      if (shown === null || shown.start !== start)
        point = parts.length > 0 ? { line: 0, at: 1 } : null;
      const lines = parts.map((part) => ({
        id: part.method,
        title: state.entry(part.method)?.title ?? part.method,
        values: part.probabilities,
        ...styleOf(start.methods.indexOf(part.method), context),
      }));
      const first = shown === null || shown.start !== start;
      shown = { state, start, curves: parts, lines };
      const drawn = lines.length > 0;
      for (const one of [gauge, body]) show(one, drawn);
      const single = lines.length === 1 && start.counts.every((count, k) => count === k);
      curves.update(
        drawn
          ? {
              shares: start.shares,
              lines,
              band: measured.random ?? null,
              marks: single
                ? (parts[0]?.order.map((token) => state.tokens[token]?.text.trim() ?? "") ?? null)
                : null,
              xTitle: single ? "" : "share of words removed",
              yTitle: start.target ? `probability of “${start.target}”` : "probability",
              label: summary(shown, measured),
            }
          : null,
      );
      if (first && point) curves.select(point);
      drawPoint();
      drawLegend(legend, shown, measured, context);
      drawStrips(strips, shown, measured);
      metricsTable(metrics, state, start, measured);
      agreementTables(agreement, state, measured, context);
      table.update(drawn ? numbers(shown, measured) : null);
    },
  };
}

const NO_HEAD = "This model predicts nothing that could be tested: it has no head.";

function summary(shown: Shown, measured: Measured): string {
  const { start, lines } = shown;
  const ends = lines.map(({ title, values }) => {
    const half = start.shares.findIndex((part) => part >= 0.5);
    return `${title} ${number(values[half] ?? Number.NaN)}`;
  });
  const floor = measured.random ? ", with the band of random orders" : "";
  return `Probability of “${start.target}” as words are removed, ${plural(lines.length, "curve")}${floor}. Whole text ${number(start.probability)}; half of them removed: ${ends.join(", ")}`;
}

function inWords({ state, start, curves, lines }: Shown, { line, at }: Point): string[] {
  const curve = curves[line];
  const count = start.counts[at] ?? 0;
  const gone = curve?.order.slice(0, count) ?? [];
  const named = gone.slice(0, LISTED).map((i) => `“${state.tokens[i]?.text ?? ""}”`);
  const more = gone.length - named.length;
  return [
    lines[line]?.title ?? "",
    `${count} of ${plural(start.removable.length, "token")} gone (${percent(start.shares[at] ?? 0)})`,
    `probability of “${start.target}” ${number(curve?.probabilities[at] ?? Number.NaN)}`,
    gone.length === 0
      ? "the whole text"
      : `gone, in this order: ${named.join(" ")}${more > 0 ? ` and ${more} more` : ""}`,
  ];
}

/** The measures of the method in front, each beside what random orders reach. */
function drawStrips(
  parent: HTMLElement,
  { start, curves, lines }: Shown,
  measured: Measured,
): void {
  const { random } = measured;
  const [curve] = curves;
  const items = start.metrics.filter(({ id }) => curve?.metrics[id] != null);
  sync(
    parent,
    [...items.map((metric) => ({ metric })), { metric: null }],
    () =>
      h(
        "div",
        { class: "mix-strip-box" },
        h("p", {}, h("strong", {}), h("span", {})),
        h("small", {}),
        h("div", { class: "mix-track", "aria-hidden": "true" }),
      ),
    (box, { metric }) => {
      const [head, words, track] = box.children as unknown as HTMLElement[] as [
        HTMLElement,
        HTMLElement,
        HTMLElement,
      ];
      show(head, metric !== null);
      show(track, metric !== null && random !== undefined);
      if (!metric) {
        const methods = lines.length > 1 ? ` Measures are of ${lines[0]?.title}.` : "";
        setText(
          words,
          `${random ? "Grey: eight in ten random orders." : ""}${methods} One text proves little: benchmark() tests many.`.trim(),
        );
        return;
      }
      const value = curve?.metrics[metric.id] ?? 0;
      setText(head.firstElementChild as HTMLElement, metric.title);
      setText(head.lastElementChild as HTMLElement, ` ${number(value)}`);
      const judged = measured.judged.get(curve?.method ?? "")?.beats[metric.id];
      const better = metric.better === "lower" ? "; less is better" : "";
      setText(
        words,
        judged
          ? `beats ${judged[0]} of ${judged[1]} random orders${better}`
          : `${metric.better} is better`,
      );
      const spread = random?.metrics[metric.id];
      if (!spread) return;
      const all = [value, ...(spread.values ?? []), spread.low ?? value, spread.high ?? value, 0];
      const [low, high] = [Math.min(...all), Math.max(...all)];
      const place = (x: number) => `${((100 * (x - low)) / (high - low || 1)).toFixed(1)}%`;
      const band = h("i", {});
      band.style.left = place(spread.low ?? low);
      band.style.right = `${100 - Number.parseFloat(place(spread.high ?? high))}%`;
      const tick = h("u", {});
      tick.style.left = place(value);
      track.replaceChildren(band, tick);
    },
  );
  setAttributes(parent, { "aria-label": "Measures" });
}

function drawLegend(
  parent: HTMLElement,
  { lines }: Shown,
  { random }: Measured,
  context: Context,
): void {
  const inks = context.inks();
  const items = lines.map(({ title, colour, dash }) => ({ title, colour, dash, band: false }));
  if (random) {
    const title = `${RANDOM}: mean, and where eight in ten of ${random.seeds} lie`;
    items.push({ title, colour: inks.muted, dash: [], band: true });
  }
  sync(
    parent,
    items,
    () => h("span", {}, h("canvas", { "aria-hidden": "true" }), h("span", {})),
    (holder, { title, colour, dash, band }) => {
      const [canvas, name] = [...holder.children] as [HTMLCanvasElement, HTMLElement];
      setText(name, title);
      const key = `${colour} ${dash} ${band}`;
      if (canvas.dataset.key === key) return;
      canvas.dataset.key = key;
      const size = { width: 36, height: 14 };
      const ratio = globalThis.devicePixelRatio || 1;
      canvas.width = size.width * ratio;
      canvas.height = size.height * ratio;
      const nowhere = { left: 0, right: 0, top: 0, bottom: 0, ticks: [] };
      const draw = pen(canvas, { ...size, ...nowhere });
      if (!draw) return;
      draw.fillStyle = draw.strokeStyle = colour;
      draw.globalAlpha = 0.18;
      if (band) draw.fillRect(0, 0, size.width, size.height);
      draw.globalAlpha = 1;
      draw.lineWidth = band ? 1.5 : 2;
      draw.setLineDash(dash);
      draw.beginPath();
      draw.moveTo(0, size.height / 2);
      draw.lineTo(size.width, size.height / 2);
      draw.stroke();
    },
  );
}

function numbers({ start, lines }: Shown, { random }: Measured) {
  const rows = lines.map(({ title, values }) => ({ title, values }));
  if (random) {
    rows.push({ title: `${RANDOM}, mean`, values: random.mean });
    rows.push({ title: `${RANDOM}, a tenth lies below`, values: random.low });
    rows.push({ title: `${RANDOM}, nine tenths lie below`, values: random.high });
  }
  return {
    caption: `Probability of “${start.target}” with tokens removed`,
    rowTitle: "method",
    colTitle: "tokens removed",
    rows: rows.map((row) => row.title),
    cols: start.shares.map((share, k) => `${start.counts[k]} (${percent(share)})`),
    values: rows.flatMap((row) => row.values),
  };
}
