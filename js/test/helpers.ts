/** What the tests share. */

import { onTestFinished } from "vitest";
import { sceneHost } from "../dev/kernel";
import { scene } from "../dev/synthetic";
import { mount } from "../src/app";
import { createStore } from "../src/wire/store";
import type { Traits } from "../src/wire/types";

export interface Mounted {
  host: ReturnType<typeof sceneHost>;
  store: ReturnType<typeof createStore>;
  root: HTMLElement;
  life: AbortController;
  find<E extends HTMLElement = HTMLElement>(part: string): E;
  all(part: string): HTMLElement[];
}

/** A widget on an invented model, drawn once; it ends with its test. */
export async function mounted(
  name = "review",
  traits: Partial<Traits> = {},
  shape = { layers: 4, heads: 3 },
  prepare: (host: Mounted["host"]) => void = () => {},
): Promise<Mounted> {
  const made = scene(name, shape);
  Object.assign(made.traits, traits);
  const host = sceneHost(made);
  prepare(host);
  const life = new AbortController();
  onTestFinished(() => life.abort());
  const store = createStore(host, life.signal);
  const element = document.createElement("div");
  document.body.append(element);
  mount(element, host, store, life.signal);
  await settle();
  const root = element.querySelector(".mixwidget") as HTMLElement;
  const all = (part: string) => [...root.querySelectorAll<HTMLElement>(`[data-part="${part}"]`)];
  return {
    host,
    store,
    root,
    life,
    all,
    find<E extends HTMLElement>(part: string) {
      const found = all(part)[0];
      if (!found) throw new Error(`There is no part ${part}.`);
      return found as E;
    },
  };
}

/**
 * Until requests are answered and the next frames are drawn: `ms`, and then until four frames in a
 * row have changed nothing, because a busy machine needs longer for what is drawn step by step.
 */
export async function settle(ms = 80): Promise<void> {
  const pause = (time: number) => new Promise((resolve) => setTimeout(resolve, time));
  let quiet = 0;
  const watcher = new MutationObserver(() => {
    quiet = 0;
  });
  const everything = { subtree: true, childList: true, characterData: true, attributes: true };
  watcher.observe(document.body, everything);
  await pause(ms);
  for (let frames = 0; quiet < 4 && frames < 120; frames++) {
    quiet += 1;
    await pause(16);
  }
  watcher.disconnect();
}

export const press = (target: Element, key: string) =>
  target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
