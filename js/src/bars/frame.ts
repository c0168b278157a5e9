/** All that stands around the picture, in the order in which it is read. */

import type { Context, View } from "../kit/context";
import { h } from "../kit/dom";
import type { State } from "../state/state";
import { beside } from "./beside";
import { claim } from "./claim";
import { display } from "./display";
import { layerBar } from "./layers";
import { question } from "./question";
import { sentence } from "./sentence";
import { statusBar } from "./status";
import { type Tab, toolbar } from "./toolbar";

export interface Frame {
  /** Where pictures go, and what saves them. */
  panel: HTMLElement;
  save: HTMLElement;
  layer: HTMLElement;
  refusal: HTMLElement;
  parts: View[];
  labelOf(tab: Tab["name"]): string;
  /** A key that is meant for the whole widget; true if it was used. */
  key(event: KeyboardEvent, state: State | undefined): boolean;
}

export function frame(
  root: HTMLElement,
  context: Context,
  tabs: readonly (Tab | null)[],
  cancel: () => void,
): Frame {
  const bar = (name: string, attributes = {}) => h("div", { class: name, ...attributes });
  const ask = bar("mix-question");
  const say = bar("mix-say");
  const claims = bar("mix-claims");
  const tools = bar("mix-bar");
  const panel = bar("mix-panel", { role: "tabpanel", tabindex: "-1" });
  const under = bar("mix-under", { role: "group", "aria-label": "Layers" });
  const foot = bar("mix-foot");
  const help = helpPanel();
  const refusal = h("p", {
    class: "mix-refusal",
    role: "alert",
    "data-part": "refusal",
    hidden: true,
  });
  const asking = question(ask, context, root);
  const text = sentence(say, context);
  const claimed = claim(claims, context);
  const toolBar = toolbar(tools, context, tabs);
  const layers = layerBar(under, context);
  const status = statusBar(foot, context, cancel);
  const words = beside(panel, context);
  const shown = display(root, context, toolBar.display);
  root.append(ask, say, claims, status.line, refusal, tools, panel, under, foot, help);

  function present(on = !root.hasAttribute("data-present")): void {
    root.toggleAttribute("data-present", on);
    toolBar.present.setAttribute("aria-pressed", String(on));
    context.redraw();
  }
  context.listen(toolBar.present, "click", () => present());

  function key(event: KeyboardEvent, state: State | undefined): boolean {
    const tab = tabs.filter((one) => one !== null)[Number(event.key) - 1];
    if (tab && (tab.name !== "answer" || state?.answers)) context.set({ view: tab.name });
    else if (event.key === "p" || event.key === "P") present();
    else if (event.key === "/")
      ask.querySelector<HTMLElement>('[data-part="method-picker"]')?.click();
    else if (event.key === "e" || event.key === "E")
      say.querySelector<HTMLElement>('[data-part="edit"]:not([hidden])')?.click();
    else if (event.key === "?") help.hidden = !help.hidden;
    else if (event.key === " ") layers.play();
    else if (event.key === "Escape") {
      if (!help.hidden) help.hidden = true;
      else if (root.hasAttribute("data-present")) present(false);
      else if (context.marks.pin !== null) {
        context.marks.hold(null);
        context.redraw();
      } else if (state?.live) status.stop();
    } else return false;
    return true;
  }

  return {
    panel,
    save: toolBar.save,
    layer: root,
    refusal,
    parts: [asking, text, claimed, toolBar, layers, status, shown, words],
    labelOf: toolBar.idOf,
    key,
  };
}

const KEYS: [string, string][] = [
  ["1 … 9", "views"],
  ["← →", "words"],
  ["↑ ↓, Page Up, Page Down", "layers"],
  ["space", "play through the layers"],
  ["/", "methods"],
  ["E", "edit the text"],
  ["P", "present"],
  ["esc", "let go, or stop the work"],
];

function helpPanel(): HTMLElement {
  const list = h("dl", {});
  for (const [name, does] of KEYS) list.append(h("dt", {}, name), h("dd", {}, does));
  return h(
    "div",
    { class: "mix-menu mix-help", role: "dialog", "aria-label": "Keys", hidden: true },
    h("h4", {}, "Keys"),
    list,
  );
}
