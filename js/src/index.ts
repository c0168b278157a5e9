/** The widget's entry: what anywidget asks for, and what a saved page uses. */

import type { AnyModel } from "@anywidget/types";
import { mount } from "./app";
import { openPage } from "./page";
import { hideStill } from "./still";
import { anywidgetHost, type Host } from "./wire/host";
import { createStore, type Store } from "./wire/store";

export { memoryHost } from "./wire/host";
export { createStore, mount };

interface Shared {
  host: Host;
  store: Store;
}

interface Props {
  model: AnyModel;
  signal?: AbortSignal;
}

/** A signal that is there, and its end for hosts that call a cleanup instead. */
function lifetime(given: AbortSignal | undefined): { signal: AbortSignal; end: () => void } {
  const controller = new AbortController();
  if (given?.aborted) controller.abort();
  given?.addEventListener("abort", () => controller.abort(), { once: true });
  return { signal: controller.signal, end: () => controller.abort() };
}

/** Called once per widget: arrays are shared by all its views. */
export default function widget() {
  let shared: Shared | undefined;

  function open(model: AnyModel, signal: AbortSignal): Shared {
    const host = anywidgetHost(model, signal);
    return { host, store: createStore(host, signal) };
  }

  return {
    initialize({ model, signal }: Props): () => void {
      const life = lifetime(signal);
      shared = open(model, life.signal);
      return life.end;
    },
    render({ model, el, signal }: Props & { el: HTMLElement }): () => void {
      const life = lifetime(signal);
      // A host that does not initialize gives every view a store of its own.
      const { store } = shared ?? open(model, life.signal);
      hideStill(el, model.get("_still"), life.signal);
      mount(el, anywidgetHost(model, life.signal), store, life.signal);
      return life.end;
    },
  };
}

// In a saved page nobody calls: this module is the page's only script.
if (globalThis.document?.documentElement.hasAttribute("data-mixwidget-page")) {
  void openPage(document);
}
