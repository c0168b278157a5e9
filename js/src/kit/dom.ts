/** Building and following elements. Data goes in as text, never as markup. */

type Attributes = Record<string, string | number | boolean | null | undefined>;
type Child = Node | string | null | undefined | false;

/** An element with attributes and children; strings become text nodes. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  setAttributes(element, attributes);
  element.append(...children.filter((child): child is Node | string => !!child));
  return element;
}

export function setAttributes(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) element.removeAttribute(name);
    else {
      const text = value === true ? "" : String(value);
      if (element.getAttribute(name) !== text) element.setAttribute(name, text);
    }
  }
}

export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

export function show(element: HTMLElement, visible: boolean): void {
  if (element.hidden === visible) element.hidden = !visible;
}

export type Listen = <K extends keyof HTMLElementEventMap>(
  target: EventTarget,
  name: K,
  callback: (event: HTMLElementEventMap[K]) => void,
  options?: AddEventListenerOptions,
) => void;

/** Listeners that end with the signal. */
export const listener =
  (signal: AbortSignal): Listen =>
  (target, name, callback, options = {}) =>
    target.addEventListener(name, callback as EventListener, { ...options, signal });

/** Run once in the next frame, however often asked for. */
export function oncePerFrame(work: () => void, signal: AbortSignal): () => void {
  let handle: number | undefined;
  signal.addEventListener("abort", () => {
    if (handle !== undefined) cancelAnimationFrame(handle);
  });
  return () => {
    if (signal.aborted) return;
    handle ??= requestAnimationFrame(() => {
      handle = undefined;
      if (!signal.aborted) work();
    });
  };
}

export function onResize(element: Element, work: () => void, signal: AbortSignal): void {
  if (typeof ResizeObserver === "undefined") return;
  const observer = new ResizeObserver(work);
  observer.observe(element);
  signal.addEventListener("abort", () => observer.disconnect());
}

/** One child of a group takes part in the tab order; arrows move between them. */
export function rove(
  group: HTMLElement,
  selector: string,
  listen: Listen,
  keys: { next: string[]; previous: string[] } = {
    next: ["ArrowRight"],
    previous: ["ArrowLeft"],
  },
): void {
  listen(group, "keydown", (event) => {
    const items = [...group.querySelectorAll<HTMLElement>(selector)].filter((e) => !e.hidden);
    const from = (event.target as HTMLElement).closest<HTMLElement>(selector);
    const at = from ? items.indexOf(from) : -1;
    if (at < 0) return;
    let to: number;
    if (keys.next.includes(event.key)) to = (at + 1) % items.length;
    else if (keys.previous.includes(event.key)) to = (at - 1 + items.length) % items.length;
    else if (event.key === "Home") to = 0;
    else if (event.key === "End") to = items.length - 1;
    else return;
    event.preventDefault();
    items[to]?.focus();
  });
  listen(group, "focusin", (event) => {
    const item = (event.target as HTMLElement).closest<HTMLElement>(selector);
    if (item) setRoving(group, selector, item);
  });
}

export function setRoving(group: HTMLElement, selector: string, chosen: Element | null): void {
  for (const item of group.querySelectorAll<HTMLElement>(selector)) {
    const index = item === chosen ? 0 : -1;
    if (item.tabIndex !== index || !item.hasAttribute("tabindex")) item.tabIndex = index;
  }
}

/** Keep as many children as there are items, made and filled by the given functions. */
export function sync<T, E extends HTMLElement>(
  parent: HTMLElement,
  items: readonly T[],
  make: (item: T, index: number) => E,
  fill: (element: E, item: T, index: number) => void,
): E[] {
  while (parent.children.length > items.length) parent.lastElementChild?.remove();
  return items.map((item, index) => {
    let element = parent.children[index] as E | undefined;
    if (!element) {
      element = make(item, index);
      parent.append(element);
    }
    fill(element, item, index);
    return element;
  });
}
