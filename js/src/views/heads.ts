import type { Context, View } from "../context";

export function headsView(element: HTMLElement, _context: Context): View {
  return { update: () => element.replaceChildren("…") };
}
