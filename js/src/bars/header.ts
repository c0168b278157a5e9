/** The text, what the model makes of it, and how far the work has come. */

import type { Context, View } from "../kit/context";
import { h, setAttributes, setText, show } from "../kit/dom";
import { duration, percent } from "../state/format";
import type { State } from "../state/state";
import { addsUp, NEEDS_KERNEL } from "../state/words";

const NO_TEXT = "Type a text first.";

/** What the second text is called, and the button that adds it. */
const SECOND = {
  pair: ["Second text (optional)", "second text"],
  decoder: ["Beginning of the answer (optional)", "beginning of the answer"],
} as const;

export function header(element: HTMLElement, context: Context): View {
  const { listen } = context;
  const input = h("textarea", {
    "data-part": "text-input",
    class: "mix-text-input",
    rows: 1,
    dir: "auto",
    spellcheck: "false",
    "aria-label": "Text",
  });
  const pair = h("textarea", {
    "data-part": "text-pair-input",
    class: "mix-text-input",
    rows: 1,
    dir: "auto",
    spellcheck: "false",
  });
  const addPair = h("button", { type: "button", class: "mix-button mix-quiet" });
  const go = h(
    "button",
    { type: "submit", class: "mix-button mix-primary", "data-part": "run" },
    "Run",
  );
  const form = h(
    "form",
    { class: "mix-form" },
    h("div", { class: "mix-inputs" }, input, pair),
    h("div", { class: "mix-form-buttons" }, addPair, go),
  );
  // For the eye alone: screen readers are told by the status line or by an announcement.
  const problem = h("p", {
    class: "mix-refusal",
    "data-part": "text-problem",
    "aria-hidden": "true",
    hidden: true,
  });
  const says = h("span", {});
  const label = h("bdi", {});
  const chance = h("span", {});
  const prediction = h(
    "span",
    { class: "mix-prediction", "data-part": "prediction" },
    says,
    label,
    chance,
  );
  const badge = h("span", { class: "mix-badge", "data-part": "adds-up" });
  const facts = h("div", { class: "mix-facts" }, prediction, badge);
  element.append(form, problem, facts);

  let wantsPair = false;
  const known = { text: "", pair: "" };
  let live = true;
  /** Methods to compute again when the text is as it was. */
  let stopped: string[] = [];
  let failure = "";
  let lacksText = false;

  const grow = (area: HTMLTextAreaElement) => {
    area.style.height = "auto";
    if (area.scrollHeight > 0) area.style.height = `${Math.min(area.scrollHeight + 2, 104)}px`;
  };
  const changed = () => input.value !== known.text || pair.value !== known.pair;
  const refresh = () => {
    const empty = input.value.trim() === "";
    lacksText &&= empty;
    go.disabled = !live || empty || !(changed() || stopped.length > 0);
    const words = lacksText ? NO_TEXT : failure;
    setText(problem, words);
    show(problem, words !== "");
    grow(input);
    if (!pair.hidden) grow(pair);
  };
  const submit = () => {
    if (live && input.value.trim() === "") {
      lacksText = true;
      refresh();
      context.announce(NO_TEXT);
    }
    if (go.disabled) return;
    if (changed()) context.set({ text: input.value, text_pair: pair.value });
    else for (const method of stopped) context.rerun(method);
  };
  listen(form, "submit", (event) => {
    event.preventDefault();
    submit();
  });
  for (const area of [input, pair]) {
    listen(area, "input", refresh);
    listen(area, "keydown", (event) => {
      event.stopPropagation(); // the notebook has keys of its own
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        submit();
      } else if (event.key === "Escape") {
        input.value = known.text;
        pair.value = known.pair;
        refresh();
      }
    });
  }
  listen(addPair, "click", () => {
    wantsPair = true;
    show(pair, true);
    show(addPair, false);
    pair.focus();
  });

  return {
    update(state) {
      const { text, text_pair: second, model_info: info } = state.traits;
      // What is being typed stays, unless the kernel has a new text.
      if (known.text !== text) input.value = known.text = text;
      if (known.pair !== second) pair.value = known.pair = second;
      live = state.live;
      stopped = toComputeAgain(state);
      const old = isOfAnotherText(state);
      const { status } = state.traits;
      const failed = old && status.state === "error";
      failure = failed ? [status.message, status.hint].filter(Boolean).join(" ") : "";
      input.readOnly = pair.readOnly = !live;
      for (const area of [input, pair]) setAttributes(area, { title: live ? null : NEEDS_KERNEL });
      const [what, add] = SECOND[info.task === "seq2seq_lm" ? "decoder" : "pair"];
      setAttributes(pair, { "aria-label": what, placeholder: what });
      setAttributes(addPair, { "aria-label": `Add a ${add}` });
      setText(addPair, `+ ${add}`);
      show(pair, second !== "" || wantsPair);
      show(addPair, live && second === "" && !wantsPair);
      show(go, live);
      refresh();
      const guess = failed ? null : info.prediction;
      const probability = guess?.probability ?? null;
      setText(says, guess ? `${/lm/.test(info.task) ? "Predicts" : "Prediction"}: ` : "");
      setText(label, guess?.label ?? "");
      setText(chance, probability === null ? "" : ` (${percent(probability)})`);
      const check = failed ? null : addsUp(info.adds_up);
      // Out of sight but in place while the next is on its way: nothing below jumps.
      facts.style.visibility = old ? "hidden" : "";
      show(badge, check !== null);
      setText(badge, check?.text ?? "");
      setAttributes(badge, { "data-good": check ? String(check.good) : null });
    },
  };
}

/** Whether the model has not got through the shown text: what is known is of the one before. */
function isOfAnotherText({ traits }: State): boolean {
  if (traits.status.state !== "error") return Object.keys(traits.runs).length === 0;
  return traits.runs[traits.method]?.state !== "error";
}

/** What Run is for while the text stays: the method in front, if it was stopped or has failed. */
function toComputeAgain(state: State): string[] {
  const { method, runs, status } = state.traits;
  const stage = state.run(method)?.state;
  const none = Object.keys(runs).length === 0 && status.state !== "computing";
  if (!none && stage !== "cancelled" && stage !== "error") return [];
  // Cancel has stopped those beside it too.
  const others = state.compared.map(({ id }) => id);
  return [method, ...others.filter((id) => id !== method && state.run(id)?.state === "cancelled")];
}

export function statusLine(element: HTMLElement, context: Context, cancel: () => void): View {
  const words = h("span", { "data-part": "status", role: "status", "aria-live": "polite" });
  const hint = h("span", { class: "mix-hint" });
  const progress = h("progress", { "data-part": "progress", max: 1, "aria-label": "Progress" });
  const left = h("span", { class: "mix-left" });
  const stop = h(
    "button",
    { type: "button", class: "mix-button", "data-part": "cancel" },
    "Cancel",
  );
  element.append(words, hint, progress, left, stop);
  context.listen(stop, "click", cancel);
  return {
    update(state) {
      const { status, runs } = state.traits;
      setText(words, status.message);
      setText(hint, status.hint ?? "");
      show(hint, !!status.hint);
      const working = Object.values(runs).filter(
        (run) => run.state === "computing" || run.state === "waiting",
      );
      const busy = status.state === "computing" || working.length > 0;
      show(progress, busy);
      show(stop, busy && state.live);
      show(left, busy);
      setAttributes(element, { "data-stage": status.state });
      if (!busy) return;
      const current = working.find((run) => run.state === "computing") ?? working[0];
      if (current && current.progress > 0) progress.value = current.progress;
      else progress.removeAttribute("value");
      const seconds = current?.seconds_left;
      setText(
        left,
        [
          current && current.progress > 0 ? percent(current.progress) : "",
          seconds !== null && seconds !== undefined ? `${duration(seconds)} left` : "",
        ]
          .filter(Boolean)
          .join(", "),
      );
    },
  };
}
