import type { Context, View } from "../context";

export function graphView(element: HTMLElement, _context: Context): View {
  return { update: () => element.replaceChildren("…") };
}
