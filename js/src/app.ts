/** One view of a widget: puts the parts together and draws them from the state. */

import { frame } from "./bars/frame";
import type { View } from "./kit/context";
import { h, oncePerFrame, setAttributes, setText } from "./kit/dom";
import { exportMenu } from "./kit/export";
import { createContext } from "./kit/live";
import { moveLayer } from "./kit/steps";
import { derive, type State } from "./state/state";
import { TABS, viewCalled } from "./views/table";
import type { Host } from "./wire/host";
import { cancel } from "./wire/protocol";
import type { Store } from "./wire/store";
import type { ViewName } from "./wire/types";

/** Keeps Jupyter's shortcuts away; it looks at the focused element first, then at those around. */
const OWN_KEYS = "data-lm-suppress-shortcuts";
const REFUSAL_MS = 8000;

/** Put a view into an element; it ends with the signal. */
export function mount(element: HTMLElement, host: Host, store: Store, signal: AbortSignal): void {
  const root = h("div", {
    class: "mixwidget",
    "data-state": "computing",
    tabindex: "-1",
    [OWN_KEYS]: "true",
  });
  let state: State | undefined;
  const redraw = oncePerFrame(update, signal);
  const context = createContext(root, host, store, signal, redraw);
  const around = frame(root, context, TABS, () => store.request((id) => cancel(id)));
  const { panel, refusal } = around;
  exportMenu(around.save, root, context, store, () => state);
  const made = new Map<ViewName, { holder: HTMLElement; view: View }>();
  let open: ViewName | undefined;
  let tokens: unknown;

  function viewOf(name: ViewName): { holder: HTMLElement; view: View } {
    const known = made.get(name);
    if (known) return known;
    const holder = h("div", { class: `mix-view mix-view-${name}` });
    panel.append(holder);
    const created = { holder, view: viewCalled(name)(holder, context) };
    made.set(name, created);
    return created;
  }

  function update(): void {
    state = derive(host, store);
    const { status: stage, view } = state.traits;
    if (tokens !== state.traits.tokens) {
      tokens = state.traits.tokens;
      context.marks.hold(null);
      context.marks.remove([]);
    }
    const known = TABS.some((tab) => tab?.name === view);
    const next = known && (view !== "answer" || state.answers) ? view : "text";
    if (open !== undefined && open !== next) {
      made.get(open)?.view.leave?.();
      context.tip.hide();
    }
    open = next;
    setAttributes(root, { "data-state": stage.state, "data-view": view });
    for (const part of around.parts) part.update(state);
    panel.setAttribute("aria-labelledby", around.labelOf(next));
    const current = viewOf(next);
    for (const { holder } of made.values()) holder.hidden = holder !== current.holder;
    current.view.update(state);
    // What had the focus may be gone: keys go on to the widget, not to the page around it.
    if (root.querySelector(":focus")?.closest("[hidden]")) root.focus({ preventScroll: true });
  }

  host.onChange(redraw, signal);
  store.onChange(redraw, signal);
  let fading: ReturnType<typeof setTimeout> | undefined;
  signal.addEventListener("abort", () => clearTimeout(fading));
  store.onRefusal((words) => {
    setText(refusal, words);
    refusal.hidden = false;
    clearTimeout(fading);
    fading = setTimeout(() => {
      refusal.hidden = true;
    }, REFUSAL_MS);
  }, signal);
  context.listen(root, "focusin", (event) =>
    (event.target as Element).setAttribute(OWN_KEYS, "true"),
  );
  context.listen(root, "keydown", (event) => {
    // Keys that are used here are not for the notebook around.
    event.stopPropagation();
    if (event.defaultPrevented) return;
    if (event.key === "Escape") context.tip.hide();
    const typing = (event.target as Element).matches("input, textarea, select");
    const pressing = event.key === " " && (event.target as Element).matches("button, summary");
    if (typing || pressing || event.ctrlKey || event.metaKey || event.altKey) return;
    const by = { PageUp: 1, PageDown: -1 }[event.key];
    if (by !== undefined && state) moveLayer(state, context, by);
    else if (!around.key(event, state)) return;
    event.preventDefault();
  });
  signal.addEventListener("abort", () => root.remove());
  element.append(root);
  update();
}
