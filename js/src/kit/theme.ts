/** Light or dark, as the host has it. */

import type { Theme } from "./colour";
import type { Inks } from "./context";

/** What the host says about itself; null if nothing. */
function hostTheme(element: Element): Theme | null {
  const page = element.ownerDocument;
  const light = page.body?.dataset.jpThemeLight;
  if (light !== undefined) return light === "false" ? "dark" : "light";
  for (const holder of [page.body, page.documentElement]) {
    if (!holder) continue;
    const names = holder.classList;
    const named = holder.dataset.theme ?? holder.dataset.vscodeThemeKind ?? "";
    if (names.contains("dark") || names.contains("dark-theme") || /dark/.test(named)) return "dark";
    if (names.contains("light") || names.contains("light-theme") || /light/.test(named))
      return "light";
  }
  return null;
}

/** Follow the host; `changed` is called at every change. */
export function followTheme(
  root: HTMLElement,
  changed: () => void,
  signal: AbortSignal,
): () => Theme {
  const page = root.ownerDocument;
  const system = globalThis.matchMedia?.("(prefers-color-scheme: dark)");
  const now = (): Theme => hostTheme(root) ?? (system?.matches ? "dark" : "light");
  const apply = () => {
    const theme = now();
    if (root.dataset.theme === theme) return;
    root.dataset.theme = theme;
    changed();
  };
  apply();
  system?.addEventListener?.("change", apply, { signal });
  const observer = new MutationObserver(() => {
    apply();
    changed(); // another theme of the same kind has other colours
  });
  const attributes = ["class", "style", "data-jp-theme-light", "data-jp-theme-name", "data-theme"];
  for (const holder of [page.documentElement, page.body]) {
    if (holder) observer.observe(holder, { attributes: true, attributeFilter: attributes });
  }
  signal.addEventListener("abort", () => observer.disconnect());
  return () => (root.dataset.theme === "dark" ? "dark" : "light");
}

/** Colours for canvases, from the style sheet's variables. */
export function readInks(root: HTMLElement): Inks {
  const style = getComputedStyle(root);
  const variable = (name: string, otherwise: string) =>
    style.getPropertyValue(`--mix-${name}`).trim() || otherwise;
  const size = Number.parseFloat(style.fontSize) || 14;
  return {
    text: variable("text", "#1f2328"),
    muted: variable("muted", "#5b6470"),
    line: variable("line", "#d0d5db"),
    accent: variable("accent", "#b3470a"),
    ground: variable("ground", "#ffffff"),
    edge: variable("edge", "#2a6df0"),
    keep: variable("keep", "#cfd4db"),
    font: style.fontFamily || "sans-serif",
    size: Math.round(size * 0.86 * 2) / 2,
  };
}
