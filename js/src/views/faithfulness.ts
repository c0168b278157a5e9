/** Should you believe the map? Probability against tokens removed, one curve per method. */

import type { Context, View } from "../kit/context";
import { createCurves } from "../kit/curves";
import { type Line, type Point, pen, styleOf } from "../kit/curves-draw";
import { h, setText, show, sync } from "../kit/dom";
import { createTable } from "../kit/table";
import { number, percent, plural } from "../state/format";
import type { State } from "../state/state";
import { lacking, leftOutWords, quoted } from "../state/words";
import type { Measured } from "../wire/measures";
import type { CurvePart, StartPart } from "../wire/protocol";
import { createNotice } from "./shared";

const LISTED = 12; // tokens that are named in words
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
  const caption = h("p", { class: "mix-caption" });
  const dropped = h("p", { class: "mix-notes", "data-part": "left-out" });
  const notice = createNotice(context);
  const stop = h(
    "button",
    { type: "button", class: "mix-button", "data-part": "measure-cancel" },
    "Stop measuring",
  );
  const bar = h("progress", {
    max: 1,
    "data-part": "measure-progress",
    "aria-label": "Progress of measuring",
  });
  const words = h("span", {});
  const work = h("div", { class: "mix-measuring", hidden: true }, bar, words, stop);
  const verdict = h("p", {
    class: "mix-verdict",
    "data-part": "verdict",
    "aria-live": "polite",
  });
  const legend = h("div", { class: "mix-lines" });
  const reading = h("p", { class: "mix-notes" });
  const sentence = h("p", { class: "mix-sentence", "data-part": "removed" });
  const metrics = h("div", { class: "mix-metrics", "data-part": "metrics" });
  const agreement = h("div", { class: "mix-agreements", "data-part": "agreements" });
  const table = createTable(context.signal);
  const curves = createCurves(context, {
    // The tokens themselves are struck through below: naming them would cover the curves.
    describe: (at, whole) => (shown ? inWords(shown, at).slice(0, whole ? 4 : 3) : []),
    choose(at) {
      point = at;
      drawSentence();
    },
  });
  const body = h("div", {}, curves.element, legend, reading, sentence, metrics, agreement);
  element.append(caption, dropped, notice.element, work, verdict, body, table.element);
  let stopIt = () => {};
  context.listen(stop, "click", () => stopIt());

  function hide(text: string | null, actions: { label: string; run(): void }[] = []): void {
    notice.update(text, actions);
    body.hidden = true;
    setText(verdict, "");
    table.update(null);
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
      words,
      maps && !measured.start
        ? "Measuring begins when the methods are computed."
        : `Asking the model about the text with tokens removed: ${Math.round(100 * measured.progress)} %`,
    );
  }

  function drawSentence(): void {
    if (!shown) return;
    const curve = point && shown.curves[point.line];
    const count = point ? (shown.start.counts[point.at] ?? 0) : 0;
    const gone = new Set(curve?.order.slice(0, count));
    setText(
      reading,
      curve && point
        ? inWords(shown, point).slice(0, 3).join(", ")
        : "Point at a curve, or move along it with the arrow keys, to see which tokens are gone.",
    );
    const { tokens } = shown.state;
    const line = shown.lines[point?.line ?? 0];
    sentence.style.setProperty("--mix-gone", line?.colour ?? "currentColor");
    sentence.replaceChildren(
      ...tokens.flatMap((token, i) => {
        const glued = token.word !== null && token.word === tokens[i - 1]?.word;
        const made = gone.has(i)
          ? h("del", {}, token.text)
          : h("span", { class: token.special ? "mix-special" : null }, token.text);
        return i === 0 || glued ? [made] : [" ", made];
      }),
    );
  }

  return {
    update(state) {
      const measured = state.measured();
      const front = state.method;
      const target = measured?.start?.target ?? state.targetLabel;
      setText(
        caption,
        `Tokens are taken away, those with the highest score first. The faster the probability${target ? ` of ${quoted(target)}` : ""} falls, the more the model needs what the method calls important.`,
      );
      setText(dropped, leftOutWords(state));
      show(dropped, state.leftOut.length > 0);
      drawWork(state, measured);
      if (!front) return hide(null);
      if (!measured) return hide(lacking(state, front.id));
      const start = measured.start;
      const message = measured.phase === "error" ? measured.message : null;
      const actions =
        message !== null && measurable(state)
          ? [{ label: "Measure again", run: measured.again }]
          : [];
      if (!start) return hide(message, actions);
      notice.update(message, actions);
      if (shown?.start !== start) {
        curves.update(null); // another question: no point of it has been chosen yet
        point = null;
      }
      const methods = start.methods.filter((id) => measured.curves.has(id));
      const parts = methods.map((id) => measured.curves.get(id) as CurvePart);
      const lines = parts.map((part) => ({
        id: part.method,
        title: state.entry(part.method)?.title ?? part.method,
        values: part.probabilities,
        ...styleOf(start.methods.indexOf(part.method), context),
      }));
      shown = { state, start, curves: parts, lines };
      body.hidden = false;
      setText(verdict, measured.verdict);
      const drawn = lines.length > 0;
      curves.update(
        drawn
          ? {
              shares: start.shares,
              lines,
              band: measured.random ?? null,
              xTitle: "share of tokens removed",
              yTitle: start.target ? `probability of ${quoted(start.target)}` : "probability",
              label: summary(shown, measured),
            }
          : null,
      );
      drawLegend(legend, shown, measured, context);
      drawSentence();
      show(reading, drawn);
      show(sentence, drawn);
      drawMetrics(metrics, shown, measured);
      drawAgreement(agreement, state, measured, context);
      table.update(drawn ? numbers(shown, measured) : null);
    },
  };
}

/** Whether asking again could help: not where the model's kind is the reason. */
const measurable = ({ live, traits: { model_info: info } }: State) =>
  live && info.prediction !== null;

function summary(shown: Shown, measured: Measured): string {
  const { start, lines } = shown;
  const ends = lines.map(({ title, values }) => {
    const half = start.shares.findIndex((share) => share >= 0.5);
    return `${title} ${number(values[half] ?? Number.NaN)}`;
  });
  const floor = measured.random ? ", with the band of random orders" : "";
  return `Probability of ${quoted(start.target)} as tokens are removed, ${plural(lines.length, "curve")}${floor}. Whole text ${number(start.probability)}; half of the tokens removed: ${ends.join(", ")}`;
}

function inWords({ state, start, curves, lines }: Shown, { line, at }: Point): string[] {
  const curve = curves[line];
  const count = start.counts[at] ?? 0;
  const gone = curve?.order.slice(0, count) ?? [];
  const named = gone.slice(0, LISTED).map((i) => quoted(state.tokens[i]?.text ?? ""));
  const more = gone.length - named.length;
  return [
    lines[line]?.title ?? "",
    `${count} of ${plural(start.removable.length, "token")} gone (${percent(start.shares[at] ?? 0)})`,
    `probability of ${quoted(start.target)} ${number(curve?.probabilities[at] ?? Number.NaN)}`,
    gone.length === 0
      ? "the whole text"
      : `gone, in this order: ${named.join(" ")}${more > 0 ? ` and ${more} more` : ""}`,
  ];
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

/** Replace what an element holds, if the words differ: a reader's place in it is kept. */
function refill(parent: HTMLElement, key: string, make: () => Node[]): void {
  if (parent.dataset.key === key) return;
  parent.dataset.key = key;
  parent.replaceChildren(...make());
}

function drawMetrics(parent: HTMLElement, { state, start }: Shown, measured: Measured): void {
  const { curves, failed, random } = measured;
  const title = (id: string) => state.entry(id)?.title ?? id;
  const there = start.methods.filter((id) => curves.has(id) || failed.has(id));
  const key = JSON.stringify([start.metrics, there.map(title), [...curves], [...failed], random]);
  refill(parent, key, () => {
    const head = h("tr", {}, h("td", {}));
    for (const metric of start.metrics) {
      const better = h("span", { class: "mix-better" }, `${metric.better} is better`);
      head.append(h("th", { scope: "col" }, metric.title, " ", better));
    }
    const body = h("tbody");
    for (const id of there) {
      const row = h("tr", {}, h("th", { scope: "row" }, title(id)));
      const values = curves.get(id)?.metrics;
      if (values) {
        for (const metric of start.metrics) row.append(h("td", {}, shownValue(values[metric.id])));
      } else {
        const why = `not measured: ${failed.get(id)}`;
        row.append(h("td", { colspan: start.metrics.length, class: "mix-why" }, why));
      }
      body.append(row);
    }
    if (random) {
      const what = h("span", { class: "mix-better" }, "mean, and eight in ten");
      const row = h("tr", {}, h("th", { scope: "row" }, RANDOM, " ", what));
      for (const metric of start.metrics) {
        const spread = random.metrics[metric.id];
        const cell = h("td", {}, shownValue(spread?.mean));
        if (spread?.low != null && spread.high != null) {
          const range = `${number(spread.low)} to ${number(spread.high)}`;
          cell.append(" ", h("span", { class: "mix-better" }, range));
        }
        row.append(cell);
      }
      body.append(row);
    }
    const caption = h("caption", {}, "On this text; a single text says little about a method");
    const table = h("table", {}, caption, h("thead", {}, head), body);
    const lacked = start.metrics.filter(({ id }) =>
      there.some((method) => curves.get(method)?.metrics[id] === null),
    );
    if (lacked.length === 0) return [table];
    // Replacing by a token needs one: GPT-2's tokenizer has neither mask nor padding.
    const names = lacked.map(({ title }) => title).join(", ");
    const why = `–: ${names} cannot be computed here; log-odds replaces tokens by the padding token, which the tokenizer must have.`;
    return [table, h("p", { class: "mix-notes" }, why)];
  });
}

const shownValue = (value: number | null | undefined) =>
  value == null
    ? h("span", { title: "not defined for this text and tokenizer" }, "–")
    : number(value);

function drawAgreement(
  parent: HTMLElement,
  state: State,
  { agreement }: Measured,
  context: Context,
): void {
  show(parent, agreement !== undefined);
  if (!agreement) return;
  const names = agreement.methods.map((id) => state.entry(id)?.title ?? id);
  const look = `${context.root.dataset.theme} ${state.traits.colours}`;
  refill(parent, JSON.stringify([agreement, names, look]), () => {
    const heading = h("h4", {}, "How far the methods agree on this text");
    const basis = h(
      "p",
      { class: "mix-notes" },
      "By the final scores of each method. Special tokens are left out: nearly all methods agree on them.",
    );
    const tables = (
      [
        [
          "Ranking of all ordinary tokens (Spearman): 1 the same, 0 unrelated, −1 reversed",
          agreement.spearman,
          true,
        ],
        [
          "The top 25 % of ordinary tokens (Jaccard): 1 the same tokens, 0 none in common",
          agreement.jaccard,
          false,
        ],
      ] as const
    ).map(([caption, matrix, signed]) => {
      const scale = context.palette().scale(signed, 1);
      const head = h("tr", {}, h("td", {}));
      for (const name of names) head.append(h("th", { scope: "col" }, name));
      const body = h("tbody");
      matrix.forEach((values, r) => {
        const row = h("tr", {}, h("th", { scope: "row" }, names[r]));
        values.forEach((value, c) => {
          const cell = h("td", {}, value === null ? "–" : value.toFixed(2).replace("-", "−"));
          if (value !== null && r !== c) {
            cell.style.backgroundColor = scale.css(value);
            cell.style.color = scale.ink(value);
          }
          row.append(cell);
        });
        body.append(row);
      });
      return h("table", {}, h("caption", {}, caption), h("thead", {}, head), body);
    });
    return [heading, basis, h("div", { class: "mix-agreement-tables" }, ...tables)];
  });
}

function numbers({ start, lines }: Shown, { random }: Measured) {
  const rows = lines.map(({ title, values }) => ({ title, values }));
  if (random) {
    rows.push({ title: `${RANDOM}, mean`, values: random.mean });
    rows.push({ title: `${RANDOM}, a tenth lies below`, values: random.low });
    rows.push({ title: `${RANDOM}, nine tenths lie below`, values: random.high });
  }
  return {
    caption: `Probability of ${quoted(start.target)} with tokens removed`,
    rowTitle: "method",
    colTitle: "tokens removed",
    rows: rows.map((row) => row.title),
    cols: start.shares.map((share, k) => `${start.counts[k]} (${percent(share)})`),
    values: rows.flatMap((row) => row.values),
  };
}
