/** A panel that hangs below a button: opened by it, closed by Escape or by a click elsewhere. */

import type { Context } from "./context";
import { show } from "./dom";

export interface Popover {
  isOpen(): boolean;
  open(opener?: HTMLElement): void;
  close(back?: boolean): void;
}

export function createPopover(
  context: Context,
  panel: HTMLElement,
  openers: HTMLElement[],
  opened: (opener: HTMLElement | undefined) => void = () => {},
  closed: () => void = () => {},
): Popover {
  const { listen } = context;
  let by: HTMLElement | undefined;
  panel.hidden = true;
  const tell = () => {
    for (const opener of openers)
      opener.setAttribute("aria-expanded", String(!panel.hidden && opener === by));
  };
  function open(opener?: HTMLElement): void {
    by = opener;
    show(panel, true);
    tell();
    opened(opener);
  }
  function close(back = false): void {
    if (panel.hidden) return;
    const inside = panel.matches(":focus-within");
    show(panel, false);
    tell();
    closed();
    if (back || inside) by?.focus();
  }
  for (const opener of openers) {
    opener.setAttribute("aria-expanded", "false");
    listen(opener, "click", () => (panel.hidden || by !== opener ? open(opener) : close()));
  }
  listen(panel, "keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    close(true);
  });
  listen(context.root, "pointerdown", (event) => {
    const path = event.composedPath();
    if (!path.includes(panel) && !openers.some((opener) => path.includes(opener))) close();
  });
  return { isOpen: () => !panel.hidden, open, close };
}
