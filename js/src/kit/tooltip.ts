/** One small box per widget that follows pointer or focus. */

import { h, show } from "./dom";

export interface Tooltip {
  element: HTMLElement;
  /** Lines of text near a point of the window; the first is the title. */
  at(x: number, y: number, lines: string[]): void;
  over(target: Element, lines: string[]): void;
  hide(): void;
}

const GAP = 14;

export function createTooltip(root: HTMLElement): Tooltip {
  const element = h("div", { class: "mix-tip", role: "tooltip", hidden: true });
  root.append(element);

  function fill(lines: string[]): void {
    element.replaceChildren(
      ...lines.map((line, i) => h("div", { class: i === 0 ? "mix-tip-title" : null }, line)),
    );
    show(element, true);
  }

  function place(x: number, y: number, below: number): void {
    const frame = root.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = element;
    const left = Math.min(Math.max(x - frame.left, 4), Math.max(frame.width - width - 4, 4));
    let top = below - frame.top;
    if (top + height > frame.height && y - frame.top - height - GAP > 0) {
      top = y - frame.top - height - GAP;
    }
    element.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }

  return {
    element,
    at(x, y, lines) {
      fill(lines);
      place(x + GAP, y, y + GAP);
    },
    over(target, lines) {
      fill(lines);
      const box = target.getBoundingClientRect();
      place(box.left, box.top + GAP - 6, box.bottom + 6);
    },
    hide: () => show(element, false),
  };
}
