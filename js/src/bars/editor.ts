/** The box in which the text is edited, in the place of the sentence. */

import type { Context } from "../kit/context";
import { h, setAttributes, setText, show } from "../kit/dom";
import { inTurns, questionOf, withQuestion, written } from "../state/answer";
import type { State } from "../state/state";
import type { Traits } from "../wire/types";

const NO_TEXT = "Type a text first.";

/** What the second text is called, and the button that adds it. */
const SECOND = {
  pair: ["Second text (optional)", "second text"],
  decoder: ["Beginning of the answer (optional)", "beginning of the answer"],
} as const;

export interface Editor {
  element: HTMLElement;
  editing(): boolean;
  open(): void;
  update(state: State): void;
}

export function createEditor(context: Context, changedState: () => void): Editor {
  const { listen } = context;
  const box = (part: string) =>
    h("textarea", {
      "data-part": part,
      class: "mix-text-input",
      rows: 1,
      dir: "auto",
      spellcheck: "false",
    });
  const input = box("text-input");
  input.setAttribute("aria-label", "Text");
  const pair = box("text-pair-input");
  const addPair = h("button", { type: "button", class: "mix-chip mix-add" });
  const go = h(
    "button",
    { type: "submit", class: "mix-chip mix-primary", "data-part": "run" },
    "Run",
  );
  const back = h(
    "button",
    { type: "button", class: "mix-chip", "data-part": "edit-cancel" },
    "Cancel",
  );
  // For the eye alone: screen readers are told by the status line or by an announcement.
  const problem = h("p", {
    class: "mix-refusal",
    "data-part": "text-problem",
    "aria-hidden": "true",
  });
  const element = h(
    "form",
    { class: "mix-form", hidden: true },
    input,
    pair,
    problem,
    h("div", { class: "mix-form-buttons" }, go, back, addPair),
  );
  const known = { text: "", pair: "" };
  /** What another text, or question, is set as: a conversation is gone on with. */
  let asks = (text: string): Partial<Traits> => ({ text });
  let wanted = false;
  let wantsPair = false;
  let live = true;
  let empty = false;
  let failure = "";
  let lacksText = false;
  /** Methods to compute again when the text is as it was. */
  let stopped: string[] = [];

  const grow = (area: HTMLTextAreaElement) => {
    area.style.height = "auto";
    if (area.scrollHeight > 0) area.style.height = `${Math.min(area.scrollHeight + 2, 160)}px`;
  };
  const changed = () => input.value !== known.text || pair.value !== known.pair;
  const refresh = () => {
    lacksText &&= input.value.trim() === "";
    const words = lacksText ? NO_TEXT : failure;
    setText(problem, words);
    show(problem, words !== "");
    grow(input);
    if (!pair.hidden) grow(pair);
  };
  const close = () => {
    wanted = false;
    changedState();
  };
  const submit = () => {
    if (!live) return;
    if (input.value.trim() === "") {
      lacksText = true;
      refresh();
      context.announce(NO_TEXT);
      return;
    }
    if (changed()) context.set({ ...asks(input.value), text_pair: pair.value });
    else for (const method of stopped) context.rerun(method);
    failure = "";
    close();
  };
  const undo = () => {
    input.value = known.text;
    pair.value = known.pair;
    lacksText = false;
    refresh();
    close();
  };
  listen(element, "submit", (event) => {
    event.preventDefault();
    submit();
  });
  listen(back, "click", undo);
  for (const area of [input, pair]) {
    listen(area, "input", refresh);
    listen(area, "keydown", (event) => {
      event.stopPropagation(); // the notebook has keys of its own
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        submit();
      } else if (event.key === "Escape") undo();
    });
  }
  listen(addPair, "click", () => {
    wantsPair = true;
    show(pair, true);
    show(addPair, false);
    pair.focus();
  });
  const editing = () => live && (wanted || empty || failure !== "");

  return {
    element,
    editing,
    open() {
      if (!live) return;
      wanted = true;
      changedState();
      show(element, true);
      grow(input);
      input.focus();
      input.setSelectionRange?.(input.value.length, input.value.length);
    },
    update(state) {
      const { text_pair: second, model_info: info, status } = state.traits;
      const whole = state.traits.text;
      const text = questionOf(whole);
      const turned = inTurns(state);
      asks = (typed) => {
        const next = withQuestion(whole, typed);
        return turned ? { ...written(next), text: next } : { text: next };
      };
      // What is being typed stays, unless the kernel has a new text.
      if (known.text !== text) input.value = known.text = text;
      if (known.pair !== second) pair.value = known.pair = second;
      live = state.live;
      stopped = toComputeAgain(state);
      const failed = isOfAnotherText(state) && status.state === "error";
      const words = failed ? [status.message, status.hint].filter(Boolean).join(" ") : "";
      failure = words;
      empty = text.trim() === "" && state.n === 0;
      const [what, add] = SECOND[info.task === "seq2seq_lm" ? "decoder" : "pair"];
      setAttributes(pair, { "aria-label": what, placeholder: what });
      setAttributes(input, { placeholder: turned ? "Ask something" : "Type a text" });
      setText(go, turned ? "Ask" : "Run");
      setAttributes(addPair, { "aria-label": `Add a ${add}` });
      setText(addPair, `+ ${add}`);
      show(pair, second !== "" || wantsPair);
      show(addPair, second === "" && !wantsPair && !turned);
      show(back, !empty);
      show(element, editing());
      refresh();
    },
  };
}

/** Whether the model has not got through the shown text: what is known is of the one before. */
export function isOfAnotherText({ traits }: State): boolean {
  if (traits.status.state !== "error") return Object.keys(traits.runs).length === 0;
  return traits.runs[traits.method]?.state !== "error";
}

/** What was stopped or has failed, the method in front first. */
export function toComputeAgain(state: State): string[] {
  const { method, runs, status } = state.traits;
  const stage = state.run(method)?.state;
  const none = Object.keys(runs).length === 0 && status.state !== "computing";
  if (!none && stage !== "cancelled" && stage !== "error") return [];
  // Cancel has stopped those beside it too.
  const others = state.compared.map(({ id }) => id);
  return [method, ...others.filter((id) => id !== method && state.run(id)?.state === "cancelled")];
}
