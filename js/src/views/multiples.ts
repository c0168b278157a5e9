import type { Context, View } from "../context";

export function multiplesView(element: HTMLElement, _context: Context): View {
  return { update: () => element.replaceChildren("…") };
}
