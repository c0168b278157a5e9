/** Below the sentence: what the picture shows, how far it is tested, and the word that is held. */

import type { Context, View } from "../kit/context";
import { h, setAttributes, setText, show } from "../kit/dom";
import { agreementOf } from "../state/agreement";
import { claimOf, type Said } from "../state/claim";
import { duration, percent, signed } from "../state/format";
import { type Reading, readingOf, shareOf } from "../state/reading";
import type { State } from "../state/state";
import { ranks } from "../state/stats";
import { verdictOf } from "../state/verdict";
import { lacking } from "../state/words";

/** Words in which a number stays with its unit. */
const unbroken = (text: string): (string | HTMLElement)[] =>
  text
    .split(/([+−]?[\d.]+ %)/)
    .map((part, i) => (i % 2 === 1 ? h("span", { class: "mix-number" }, part) : part));

export function claim(element: HTMLElement, context: Context): View {
  const { listen, marks } = context;
  const words = h("p", { class: "mix-claim", "data-part": "claim" });
  const ways = h("div", { class: "mix-actions" });
  const dot = h("span", { class: "mix-dot", "aria-hidden": "true" });
  const headline = h("strong", {});
  const tested = h("span", {});
  const link = h("u", {});
  const verdict = h(
    "button",
    { type: "button", class: "mix-verdict", "data-part": "verdict" },
    dot,
    h("span", {}, headline, " ", tested, " ", link),
  );
  const held = h("span", {});
  const into = h(
    "button",
    { type: "button", class: "mix-chip", "data-part": "into" },
    "What went into it",
  );
  const drop = h(
    "button",
    {
      type: "button",
      class: "mix-ico",
      "data-part": "drop",
      "aria-label": "Let go",
      title: "Let go (esc)",
    },
    "×",
  );
  const card = h("p", { class: "mix-held", "data-part": "card", hidden: true }, held, into, drop);
  const back = h("button", { type: "button", class: "mix-chip", "data-part": "back" });
  const away = h("p", { class: "mix-held", hidden: true }, h("span", {}), back);
  element.append(words, ways, away, card, verdict);
  let state: State | undefined;
  let reading: Reading | null = null;

  listen(into, "click", () => {
    const { pin } = marks;
    marks.hold(null);
    if (pin !== null) context.set({ focus: pin });
  });
  listen(drop, "click", () => {
    marks.hold(null);
    context.redraw();
  });
  listen(back, "click", () => state && context.set({ focus: state.answer }));
  listen(verdict, "click", () => {
    const measured = state?.measured();
    if (measured?.costs !== null && measured?.costs !== undefined && measured.judged.size === 0)
      measured.insist();
    context.set({ view: "faithfulness" });
  });
  listen(ways, "click", (event) => {
    const button = (event.target as Element).closest<HTMLElement>("button");
    if (!button) return;
    const { method } = button.dataset;
    if (method) context.set({ method });
    else if (state?.method) {
      context.own.stretch = state.method.id;
      context.redraw();
    }
  });

  function write(said: Said): void {
    const key = JSON.stringify(said);
    if (words.dataset.key === key) return;
    words.dataset.key = key;
    words.replaceChildren(
      ...said.flatMap(({ text, strong }) =>
        strong ? [h("strong", { dir: "auto" }, text)] : unbroken(text),
      ),
    );
  }

  function drawWays(next: State): void {
    const mute = reading !== null && reading.sink >= 0 && context.own.stretch !== reading.method.id;
    const better = mute
      ? (next.traits.model_info.first ?? [])
          .map(({ id }) => next.entry(id))
          .filter((one) => one?.available && one.id !== next.traits.method)
          .slice(0, 2)
      : [];
    show(ways, mute);
    const key = `${mute} ${better.map((one) => one?.id)}`;
    if (ways.dataset.key === key) return;
    ways.dataset.key = key;
    ways.replaceChildren(
      ...better.map((one) =>
        h(
          "button",
          { type: "button", class: "mix-chip", "data-method": one?.id },
          `Use ${one?.title}`,
        ),
      ),
      ...(mute
        ? [h("button", { type: "button", class: "mix-chip mix-add" }, "Stretch anyway")]
        : []),
    );
  }

  function drawHeld(next: State): void {
    const unit = next.layout.unitOf[marks.pin ?? -1];
    const c = unit === undefined ? -1 : (next.layout.columnOf[unit] ?? -1);
    show(card, unit !== undefined);
    if (unit === undefined) return;
    const name = `“${next.label(unit)}”`;
    const value = reading?.values[c];
    if (!reading || value === undefined) setText(held, name);
    else {
      const place = ranks(reading.values)[c];
      const size = reading.method.signed ? signed(value) : percent(shareOf(reading, c));
      setText(held, `${name}: ${size}, rank ${place} of ${reading.values.length}`);
    }
    const maps = next.method?.yields === "maps";
    show(into, maps && unit !== next.layout.focus);
  }

  function drawVerdict(next: State): void {
    const said = verdictOf(next);
    show(verdict, said !== null);
    if (!said) return;
    setAttributes(dot, { "data-level": said.level });
    setText(headline, said.headline);
    setText(tested, said.text);
    const open = next.traits.view === "faithfulness";
    const long = said.seconds === null ? "" : `Test, about ${duration(said.seconds)}`;
    setText(link, long || (open ? "" : "Test"));
  }

  return {
    update(next) {
      state = next;
      const { view } = next.traits;
      const method = next.method;
      const layer = method ? next.reached(method.id) : next.layer;
      reading = method ? readingOf(next, method, next.scores(method.id, layer)?.values) : null;
      if (view === "compare" && next.compared.length > 1) write(agreementOf(next));
      else if (view === "faithfulness" || next.n === 0) write([]);
      else if (reading) write(claimOf(next, reading));
      else write(method ? [{ text: lacking(next, method.id) }] : []);
      show(words, words.childNodes.length > 0);
      drawWays(next);
      drawHeld(next);
      show(away, next.away);
      setText(
        away.firstElementChild as HTMLElement,
        `You look at what went into “${next.focusLabel}”.`,
      );
      setText(back, next.targetLabel ? `Back to ${next.targetLabel}` : "Back to the answer");
      drawVerdict(next);
    },
  };
}
