import type { Context } from "./context";
import { h } from "./dom";
import type { State } from "./state";
import type { Store } from "./store";

export function exportMenu(
  element: HTMLElement,
  _panel: HTMLElement,
  _context: Context,
  _store: Store,
  _state: () => State | undefined,
): void {
  element.append(
    h("button", { type: "button", class: "mix-button", "data-part": "export" }, "Export"),
  );
}
