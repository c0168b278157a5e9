/** One view of a widget: puts the parts together and draws them from the state. */

import { controls } from "./bars/controls";
import { header, statusLine } from "./bars/header";
import { methodsBar } from "./bars/methods";
import { palette } from "./kit/colour";
import type { Context, View } from "./kit/context";
import {
  h,
  listener,
  oncePerFrame,
  onResize,
  rove,
  setAttributes,
  setRoving,
  setText,
} from "./kit/dom";
import { exportMenu } from "./kit/export";
import { followTheme, readInks } from "./kit/theme";
import { createTooltip } from "./kit/tooltip";
import { derive, type State } from "./state/state";
import { captionOf, treatment } from "./state/words";
import { compareView } from "./views/compare";
import { faithfulnessView } from "./views/faithfulness";
import { graphView } from "./views/graph";
import { headsView } from "./views/heads";
import { layersView } from "./views/layers";
import { mapView } from "./views/map";
import { multiplesView } from "./views/multiples";
import { moveLayer } from "./views/shared";
import { textView } from "./views/text";
import type { Host } from "./wire/host";
import { cancel, rerun } from "./wire/protocol";
import type { Store } from "./wire/store";
import type { ViewName } from "./wire/types";

const VIEWS: [ViewName, string, (element: HTMLElement, context: Context) => View][] = [
  ["text", "Text", textView],
  ["layers", "Layers", layersView],
  ["map", "Map", mapView],
  ["graph", "Graph", graphView],
  ["multiples", "Multiples", multiplesView],
  ["compare", "Compare", compareView],
  ["heads", "Heads", headsView],
  ["faithfulness", "Faithfulness", faithfulnessView],
];
/** Views that say themselves what they show. */
const OWN_CAPTION: ReadonlySet<ViewName> = new Set([
  "graph",
  "multiples",
  "compare",
  "heads",
  "faithfulness",
]);
/** Keeps Jupyter's shortcuts away; it looks at the focused element first, then at those around. */
const OWN_KEYS = "data-lm-suppress-shortcuts";
const REFUSAL_MS = 8000;
const TAB = '[data-part="view-tab"]';

/** Put a view into an element; it ends with the signal. */
export function mount(element: HTMLElement, host: Host, store: Store, signal: AbortSignal): void {
  const listen = listener(signal);
  const root = h("div", {
    class: "mixwidget",
    "data-state": "computing",
    [OWN_KEYS]: "true",
  });
  let inks: ReturnType<typeof readInks> | undefined;
  let colours: { name: string; theme: string; palette: ReturnType<typeof palette> } | undefined;
  let state: State | undefined;
  const redraw = oncePerFrame(update, signal);
  const theme = followTheme(
    root,
    () => {
      inks = undefined;
      colours = undefined;
      redraw();
    },
    signal,
  );
  const tip = createTooltip(root);
  const voice = h("div", { class: "mix-hidden", "aria-live": "polite" });

  const context: Context = {
    root,
    signal,
    listen,
    tip,
    redraw,
    set(values) {
      host.set(values);
      redraw();
    },
    rerun: (method) => store.request((id) => rerun(id, method)),
    palette() {
      const name = host.get("colours");
      if (colours?.name !== name || colours.theme !== theme()) {
        colours = { name, theme: theme(), palette: palette(name, theme()) };
      }
      return colours.palette;
    },
    inks() {
      inks ??= readInks(root);
      return inks;
    },
    announce: (text) => setText(voice, text),
  };

  const top = h("div", { class: "mix-header" });
  const methods = h("div", { class: "mix-methods" });
  const tabs = h("div", { class: "mix-tabs", role: "tablist", "aria-label": "Views" });
  const strip = h("div", { class: "mix-controls", role: "group", "aria-label": "Controls" });
  const caption = h("p", { class: "mix-caption", "data-part": "caption" });
  const notes = h("p", { class: "mix-notes" });
  const panel = h("div", { class: "mix-panel", role: "tabpanel", tabindex: "-1" });
  const foot = h("div", { class: "mix-foot" });
  const refusal = h("p", {
    class: "mix-refusal",
    role: "alert",
    "data-part": "refusal",
    hidden: true,
  });
  const status = h("div", { class: "mix-status" });
  root.append(
    top,
    methods,
    h("div", { class: "mix-tab-row" }, tabs),
    strip,
    refusal,
    caption,
    notes,
    panel,
    foot,
    voice,
  );
  foot.append(status);

  const parts: View[] = [
    header(top, context),
    methodsBar(methods, context),
    controls(strip, context),
    statusLine(status, context, () => store.request((id) => cancel(id))),
  ];
  exportMenu(foot, panel, context, store, () => state);
  const made = new Map<ViewName, { holder: HTMLElement; view: View }>();
  const labels = new Map<ViewName, HTMLElement>();
  const prefix = `mix-${Math.random().toString(36).slice(2, 8)}`;
  for (const [name, title] of VIEWS) {
    const tab = h(
      "button",
      {
        type: "button",
        role: "tab",
        id: `${prefix}-${name}`,
        "data-part": "view-tab",
        "data-view": name,
      },
      title,
    );
    labels.set(name, tab);
    tabs.append(tab);
  }
  listen(tabs, "click", (event) => {
    const tab = (event.target as Element).closest<HTMLElement>(TAB);
    if (tab) context.set({ view: tab.dataset.view as ViewName });
  });
  rove(tabs, TAB, listen);

  function viewOf(name: ViewName): { holder: HTMLElement; view: View } {
    const known = made.get(name);
    if (known) return known;
    const make = VIEWS.find(([other]) => other === name)?.[2] ?? textView;
    const holder = h("div", { class: `mix-view mix-view-${name}` });
    panel.append(holder);
    const created = { holder, view: make(holder, context) };
    made.set(name, created);
    return created;
  }

  function update(): void {
    state = derive(host, store);
    const { status: stage, view } = state.traits;
    setAttributes(root, { "data-state": stage.state, "data-view": view });
    for (const part of parts) part.update(state);
    const open = labels.has(view) ? view : "text";
    for (const [name, tab] of labels) tab.setAttribute("aria-selected", String(name === open));
    const focusedTab = tabs.querySelector(`${TAB}:focus`);
    setRoving(tabs, TAB, focusedTab ?? labels.get(open) ?? null);
    panel.setAttribute("aria-labelledby", `${prefix}-${open}`);
    const current = viewOf(open);
    for (const { holder } of made.values()) holder.hidden = holder !== current.holder;
    drawCaption(state, open);
    current.view.update(state);
  }

  function drawCaption(now: State, open: ViewName): void {
    const method = now.method;
    const own = OWN_CAPTION.has(open) || !method || now.n === 0;
    const layer = own ? 0 : open === "layers" ? now.layer : now.reached(method.id);
    setText(caption, own ? "" : captionOf(now, method, open, layer));
    caption.hidden = own;
    // Not read out layer by layer while layers are still coming in.
    setAttributes(caption, { "aria-live": now.traits.status.state === "ready" ? "polite" : "off" });
    const hidden = own ? 0 : (now.scores(method.id, layer)?.hidden ?? 0);
    const said =
      method && open !== "faithfulness" && open !== "heads" ? treatment(now, method, hidden) : [];
    setText(notes, said.join(" "));
    notes.hidden = said.length === 0;
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
  onResize(
    root,
    () => {
      inks = undefined;
    },
    signal,
  );
  listen(root, "focusin", (event) => (event.target as Element).setAttribute(OWN_KEYS, "true"));
  listen(root, "keydown", (event) => {
    // Keys that are used here are not for the notebook around.
    if (event.key === "Escape") tip.hide();
    event.stopPropagation();
  });
  listen(panel, "keydown", (event) => {
    const by = { PageUp: 1, PageDown: -1 }[event.key];
    if (!state || by === undefined) return;
    moveLayer(state, context, by);
    event.preventDefault();
  });
  signal.addEventListener("abort", () => root.remove());
  element.append(root);
  update();
}
