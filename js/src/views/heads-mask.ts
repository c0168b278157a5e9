/** Choosing heads: the mask of Mask-LRP, and the note that says which heads it takes. */

import type { Context } from "../kit/context";
import { h, setAttributes, setText, show } from "../kit/dom";
import { plural } from "../state/format";
import type { State } from "../state/state";

const METHOD = "mask_lrp";
type Mask = number[][];

export interface HeadMask {
  /** The button that begins and ends choosing. */
  toggle: HTMLElement;
  /** The note, and what can be done with the heads. */
  note: HTMLElement;
  choosing(): boolean;
  /** The heads that Mask-LRP takes, as far as that is known. */
  mask(state: State): Mask | null;
  turn(state: State, layer: number, head: number): void;
  update(state: State): void;
}

export function createHeadMask(context: Context): HeadMask {
  const toggle = h(
    "button",
    { type: "button", class: "mix-chip", "data-part": "choose-heads" },
    "Choose heads for Mask-LRP",
  );
  const words = h("span", { "data-part": "mask-note" });
  const chip = (text: string) => h("button", { type: "button", class: "mix-chip" }, text);
  const explain = chip("Explain by these heads");
  const none = chip("Choose none");
  const own = chip("Its own heads");
  const note = h("p", { class: "mix-mask-note" }, words, explain, none, own);
  let state: State | undefined;
  let on = false;

  const given = (of: State) => (of.traits.params[METHOD]?.mask as Mask | null | undefined) ?? null;
  const empty = (of: State): Mask =>
    Array.from({ length: of.layers }, () => new Array<number>(of.traits.model_info.heads).fill(0));
  const fits = (mask: Mask, of: State) =>
    mask.length === of.layers && mask.every((row) => row.length === of.traits.model_info.heads);

  function mask(of: State): Mask | null {
    const known = given(of) ?? of.run(METHOD)?.mask ?? null;
    return known && fits(known, of) ? known : null;
  }

  function put(of: State, chosen: Mask | null): void {
    const { mask: _former, ...rest } = of.traits.params[METHOD] ?? {};
    const options = chosen ? { ...rest, mask: chosen } : rest;
    context.set({ params: { ...of.traits.params, [METHOD]: options } });
  }

  context.listen(toggle, "click", () => {
    on = !on;
    context.redraw();
  });
  context.listen(explain, "click", () => context.set({ method: METHOD }));
  context.listen(none, "click", () => state && put(state, empty(state)));
  context.listen(own, "click", () => state && put(state, null));

  return {
    toggle,
    note,
    choosing: () => on,
    mask,
    turn(of, layer, head) {
      const chosen = (mask(of) ?? empty(of)).map((row) => [...row]);
      const row = chosen[layer];
      if (row) row[head] = row[head] === 1 ? 0 : 1;
      put(of, chosen);
    },
    update(next) {
      state = next;
      const possible = next.live && next.entry(METHOD)?.available === true;
      if (!possible) on = false;
      show(toggle, possible);
      setAttributes(toggle, { "aria-pressed": String(on) });
      const known = mask(next);
      const text = noteOf(next, known, given(next) !== null, on);
      setText(words, text);
      show(note, text !== "");
      show(explain, possible && known !== null && next.method?.id !== METHOD);
      show(none, on && known?.some((row) => row.includes(1)) === true);
      show(own, on && given(next) !== null);
    },
  };
}

function noteOf(state: State, mask: Mask | null, chosen: boolean, choosing: boolean): string {
  const told = state.run(METHOD)?.mask_note;
  if (!chosen && told) return `Mask-LRP takes the heads with a dot: ${told}.`;
  if (!mask || !chosen)
    return choosing
      ? "Click heads of the grid: those that you choose pass relevance on in Mask-LRP."
      : "";
  const count = mask.flat().filter((one) => one === 1).length;
  const all = mask.flat().length;
  return count === 0
    ? "No head is chosen: in Mask-LRP relevance goes down the residual path only."
    : `${plural(count, "head")} of ${all} chosen here, with a dot: only they pass relevance on in Mask-LRP.`;
}
