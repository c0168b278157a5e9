/** Pieces that several views use. */

import type { Context } from "../kit/context";
import { h, setText } from "../kit/dom";
import type { State } from "../state/state";
import { lacking } from "../state/words";

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
        ...actions.map((a) => h("button", { type: "button", class: "mix-button" }, a.label)),
      );
    },
  };
}

/** What to do where a method has no maps: a method that has, or the text view. */
export function withoutMaps(state: State, context: Context, needs: string) {
  const method = state.method;
  const others = state.traits.catalogue.filter((e) => e.yields === "maps" && e.available);
  const other =
    others.find((e) => state.run(e.id)?.state === "ready") ??
    others.find((e) => e.family === "contributions") ??
    others[0];
  const why =
    method?.yields === "layer_scores"
      ? "gives each token a score per layer"
      : "gives each token one score";
  const actions = [
    { label: "Show its scores in the text", run: () => context.set({ view: "text" }) },
  ];
  if (method?.yields === "layer_scores" && state.traits.view !== "layers") {
    actions.push({ label: "Show its layers", run: () => context.set({ view: "layers" }) });
  }
  if (other) {
    actions.push({
      label: `Switch to ${other.title}`,
      run: () => context.set({ method: other.id }),
    });
  }
  const text = `${method?.title ?? "This method"} ${why}; it does not say which token took what from which other. ${needs}`;
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

/** Move the focus to the next shown unit, or the layer; true if the key was one of these. */
export function moveFocus(state: State, context: Context, by: number): void {
  const { rows, focus, units } = state.layout;
  const at = rows.indexOf(focus);
  const next = units[rows[Math.min(Math.max(at + by, 0), rows.length - 1)] ?? focus];
  if (next && next.index !== state.traits.focus) context.set({ focus: next.index });
}

export function moveLayer(state: State, context: Context, by: number): void {
  const next = Math.min(Math.max(state.layer + by, 0), Math.max(state.layers - 1, 0));
  if (next !== state.traits.layer) context.set({ layer: next });
}
