/** The views as tabs, all in sight; display, saving and presenting beside them. */

import type { Context, View } from "../kit/context";
import { h, rove, setAttributes, setRoving } from "../kit/dom";
import { icon } from "../kit/icons";
import type { ViewName } from "../wire/types";

const TAB = '[data-part="view-tab"]';

export interface Tab {
  name: ViewName;
  title: string;
}

export interface Toolbar extends View {
  display: HTMLElement;
  save: HTMLElement;
  present: HTMLElement;
  /** The name that a panel is labelled by. */
  idOf(name: ViewName): string;
}

export function toolbar(
  element: HTMLElement,
  context: Context,
  tabs: readonly (Tab | null)[],
): Toolbar {
  const { listen } = context;
  const strip = h("div", { class: "mix-tabs", role: "tablist", "aria-label": "Views" });
  const prefix = `mix-${Math.random().toString(36).slice(2, 8)}`;
  const idOf = (name: ViewName) => `${prefix}-${name}`;
  const labels = new Map<ViewName, HTMLElement>();
  for (const tab of tabs) {
    if (!tab) {
      strip.append(h("span", { class: "mix-gap", "aria-hidden": "true" }));
      continue;
    }
    const { name, title } = tab;
    const button = h(
      "button",
      { type: "button", role: "tab", id: idOf(name), "data-part": "view-tab", "data-view": name },
      title,
    );
    button.dataset.title = title;
    labels.set(name, button);
    strip.append(button);
  }
  const ico = (name: "display" | "save" | "present", label: string, part: string) =>
    h(
      "button",
      { type: "button", class: "mix-ico", "aria-label": label, title: label, "data-part": part },
      icon(name),
    );
  const display = ico("display", "Display: words, special tokens, colours, edges", "display");
  const save = ico("save", "Save: picture, page, numbers", "export");
  const present = ico("present", "Present (P)", "present");
  save.setAttribute("aria-haspopup", "menu");
  element.append(strip, h("span", { class: "mix-tools mix-push" }, display, save, present));

  listen(strip, "click", (event) => {
    const tab = (event.target as Element).closest<HTMLElement>(TAB);
    if (tab) context.set({ view: tab.dataset.view as ViewName });
  });
  rove(strip, TAB, listen);

  return {
    display,
    save,
    present,
    idOf,
    update(state) {
      const { traits } = state;
      const known = labels.has(traits.view) && (traits.view !== "answer" || state.answers);
      const open = known ? traits.view : "text";
      for (const [name, tab] of labels) {
        setAttributes(tab, { "aria-selected": String(name === open) });
        // Of a model that reads there is no answer to look at.
        if (name === "answer" && tab.isConnected !== state.answers) {
          if (state.answers) strip.append(tab);
          else tab.remove();
        }
      }
      const focused = strip.querySelector(`${TAB}:focus`);
      setRoving(strip, TAB, focused ?? labels.get(open) ?? null);
    },
  };
}
