/** Pieces that several views use. */

import type { Context } from "../kit/context";
import { h, setText } from "../kit/dom";
import type { State } from "../state/state";
import { lacking } from "../state/words";
import type { MethodEntry } from "../wire/types";

export interface Notice {
  element: HTMLElement;
  /** Words in place of a picture, with things to do about it. Null hides it. */
  update(text: string | null, actions?: { label: string; run(): void }[]): void;
}

export function createNotice(context: Context): Notice {
  const words = h("p", {});
  const buttons = h("div", { class: "mix-notice-actions" });
  const element = h("div", { class: "mix-notice", hidden: true }, words, buttons);
  let work: (() => void)[] = [];
  context.listen(buttons, "click", (event) => {
    const at = [...buttons.children].indexOf(
      (event.target as Element).closest("button") as Element,
    );
    work[at]?.();
  });
  return {
    element,
    update(text, actions = []) {
      element.hidden = text === null;
      setText(words, text ?? "");
      work = actions.map((action) => action.run);
      const names = actions.map((action) => action.label).join("\n");
      if (buttons.dataset.names === names) return;
      buttons.dataset.names = names;
      buttons.replaceChildren(
        ...actions.map((a) => h("button", { type: "button", class: "mix-chip" }, a.label)),
      );
    },
  };
}

/** Methods whose maps stand in for a method that has none, best first. */
const CARRIERS = ["alti", "ifr", "globenc", "attention_rollout"];

/** The method whose maps are drawn: the one in front, or one that stands in for it. What flows has
 * no sign. */
export function carrierOf(state: State, flow = false): MethodEntry | null {
  const { method } = state;
  const suits = (one: MethodEntry | undefined) => one?.yields === "maps" && !(flow && one.signed);
  if (!method || suits(method)) return method ?? null;
  const ready = (id: string) => suits(state.entry(id)) && state.doneLayers(id).size > 0;
  const found = [...CARRIERS, ...Object.keys(state.traits.runs)].find(ready);
  return (found && state.entry(found)) || null;
}

/** What to do where a method has no maps, and no other stands in for it. */
export function withoutMaps(state: State, context: Context) {
  const method = state.method;
  const others = state.traits.catalogue.filter((e) => e.yields === "maps" && e.available);
  const other = CARRIERS.map((id) => others.find((e) => e.id === id)).find(Boolean) ?? others[0];
  const why = method?.yields === "layer_scores" ? "scores tokens by layer" : "scores tokens";
  const actions = [];
  if (other)
    actions.push({
      label: `Show the ways of ${other.title}`,
      run: () => context.set({ compared: [...state.traits.compared, other.id] }),
    });
  actions.push({ label: "Show the words", run: () => context.set({ view: "text" }) });
  if (method?.yields === "layer_scores" && state.traits.view !== "layers")
    actions.push({ label: "Show its layers", run: () => context.set({ view: "layers" }) });
  const text = `${method?.title ?? "This method"} ${why}; it does not say which token took what from which other.`;
  return { text, actions };
}

/** Words and actions while the numbers of a method are not there. */
export function absent(state: State, context: Context, id: string) {
  const stage = state.run(id)?.state;
  const again = stage === "cancelled" || stage === "error";
  return {
    text: lacking(state, id),
    actions:
      again && state.live ? [{ label: "Compute it again", run: () => context.rerun(id) }] : [],
  };
}

/** Said while the layer asked for is not there and an earlier one stands in for it. */
export function soFar(state: State, layer: number): string | null {
  if (layer === state.layer) return null;
  return `Layer ${layer} of ${state.layer}, as far as it is computed.`;
}

/** Where in a list of units the second text begins; -1 if there is only one. */
export function breakAt(state: State, units: number[]): number {
  const at = units.findIndex((unit) => (state.layout.units[unit]?.segment ?? 0) > 0);
  return at > 0 ? at : -1;
}
