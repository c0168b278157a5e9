/** The answer above the picture: a click on one of its tokens asks about it, and what it could have
 * been stands below. The one place where a click asks again. */

import type { Context, View } from "../kit/context";
import { h, rove, setAttributes, setRoving, setText, show, sync } from "../kit/dom";
import { ANSWER_TOKEN, aboutReply } from "../kit/turns";
import { choicesOf, inTurns, written } from "../state/answer";
import { plural, share, shorten } from "../state/format";
import type { State } from "../state/state";
import type { Json } from "../wire/types";

/** So many tokens more are written when it is to go on. */
const MOST = 256;

export interface Turns extends View {
  element: HTMLElement;
  /** Turns that are not folded. */
  opened: Set<string>;
}

/** @param blocks where the turns are drawn */
export function createTurns(blocks: HTMLElement, context: Context): Turns {
  const { listen, marks } = context;
  const opened = new Set<string>();
  let state: State | undefined;

  const chip = (part: string, text: string) =>
    h("button", { type: "button", class: "mix-chip", "data-part": part }, text);
  const whole = chip("answer-whole", "All of it");
  const words = h("span", {});
  const choices = h("span", { class: "mix-chips", role: "group", "aria-label": "Could have been" });
  const generate = chip("generate", "Write an answer");
  const more = chip("generate-more", "Write on");
  const element = h("div", { class: "mix-alts" }, whole, words, choices, more, generate);

  const tokenOf = (event: Event) => (event.target as Element).closest<HTMLElement>(ANSWER_TOKEN);
  const ask = (event: Event) => {
    const token = tokenOf(event);
    if (!token || !state?.live || state.traits.reply.state === "writing") return;
    const step = Number(token.dataset.index);
    marks.hold(null);
    if (step !== state.traits.step) context.set({ step, target: null });
  };
  const point = (token: HTMLElement | null) => {
    if (!state) return;
    marks.point(token ? Number(token.dataset.token) : null);
    if (token) context.tip.over(token, aboutReply(state.traits.reply, Number(token.dataset.index)));
    else context.tip.hide();
  };
  // Before the listeners of the sentence, which are for the words of the text.
  listen(blocks, "click", (event) => {
    const fold = (event.target as Element).closest<HTMLElement>('[data-part="turn-fold"]');
    if (!fold && !tokenOf(event)) return;
    event.stopImmediatePropagation();
    if (!fold) return ask(event);
    const name = fold.dataset.fold ?? "";
    if (!opened.delete(name)) opened.add(name);
    context.redraw();
  });
  for (const name of ["pointerover", "focusin"] as const)
    listen(blocks, name, (event) => {
      const token = tokenOf(event);
      if (!token) return;
      event.stopImmediatePropagation();
      point(token);
    });
  listen(blocks, "keydown", (event) => {
    if (!tokenOf(event)) return;
    if (event.key === "Enter" || event.key === " ") ask(event);
    else return;
    event.preventDefault();
    event.stopImmediatePropagation();
    event.stopPropagation();
  });
  rove(blocks, ANSWER_TOKEN, listen);
  listen(whole, "click", () => context.set({ step: null, target: null }));
  listen(choices, "click", (event) => {
    const button = (event.target as Element).closest<HTMLElement>("button");
    if (!state?.live || !button) return;
    const [said, ...others] = choicesOf(state).map((one) => one.value);
    const at = Number(button.dataset.place);
    const foil = others[at - 1];
    if (at === 0) context.set({ target: null });
    else if (said !== undefined && foil !== undefined) context.set({ target: [said, foil] });
  });
  const write = (longest?: number) => {
    if (!state) return;
    const { answer, text, max_new_tokens: now } = state.traits;
    const again = answer === true && (longest ?? now) === now;
    context.set({ ...written(text), ...(longest ? { max_new_tokens: longest } : {}) });
    if (again) context.rerun();
  };
  listen(generate, "click", () => write());
  listen(more, "click", () => write(Math.min(MOST, 2 * (state?.traits.max_new_tokens ?? 64))));

  return {
    element,
    opened,
    update(next) {
      state = next;
      const { reply, step, view, max_new_tokens: longest, target } = next.traits;
      const there = reply.tokens.length > 0;
      const writing = reply.state === "writing";
      show(element, inTurns(next) || (view === "answer" && next.answers));
      const tokens = [...blocks.querySelectorAll<HTMLElement>(ANSWER_TOKEN)];
      const active = tokens.find(
        (one) => one.tabIndex === 0 && one === one.ownerDocument.activeElement,
      );
      setRoving(blocks, ANSWER_TOKEN, active ?? tokens[step ?? 0] ?? null);
      show(whole, there && !writing && next.live);
      setAttributes(whole, { "aria-pressed": String(step === null) });
      const choice = there && !writing ? choicesOf(next) : [];
      setText(words, wordsOf(next));
      show(words, words.textContent !== "");
      show(choices, choice.length > 1);
      drawChoices(choices, choice, target, next.live);
      show(generate, next.live && reply.offer && !writing);
      setText(
        generate,
        !there ? "Write an answer" : reply.own ? "Write again" : "Let the model answer",
      );
      show(more, next.live && reply.own && reply.state === "full" && longest < MOST);
    },
  };
}

function wordsOf(state: State): string {
  const { reply, step, max_new_tokens: longest } = state.traits;
  const count = reply.tokens.length;
  if (reply.state === "writing")
    return count > 0 ? `Writing, ${plural(count, "token")} so far.` : "Writing …";
  if (count === 0) return "";
  if (step === null) {
    const end =
      reply.state === "stopped"
        ? "Stopped. "
        : reply.state === "full"
          ? `Cut at ${plural(longest, "token")}. `
          : "";
    return `${end}${state.live ? "Click a token to ask about it." : "All of it is explained."}`;
  }
  if (choicesOf(state).length < 2) return "";
  return state.live ? "It said" : "It could have said";
}

function drawChoices(
  parent: HTMLElement,
  choices: ReturnType<typeof choicesOf>,
  target: Json,
  live: boolean,
): void {
  const foil = Array.isArray(target) ? target[1] : undefined;
  sync(
    parent,
    choices,
    () =>
      h(
        "button",
        { type: "button", class: "mix-chip" },
        h("span", { dir: "auto" }),
        h("small", {}),
      ),
    (button, one, at) => {
      const [name, part] = button.children as unknown as [HTMLElement, HTMLElement];
      const text = shorten(one.label.trim() || "⏎", 20);
      setText(name, at === 0 || !live ? text : `why not ${text}?`);
      setText(part, one.probability === null ? "" : share(one.probability));
      const pressed = at === 0 ? !Array.isArray(target) : foil !== undefined && foil === one.value;
      setAttributes(button, {
        "data-part": at === 0 ? "said" : "alternative",
        "data-place": at,
        "aria-pressed": String(pressed),
        "data-static": !live,
        tabindex: live ? null : -1,
      });
    },
  );
}
