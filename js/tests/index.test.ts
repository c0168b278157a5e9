import type { AnyModel, RenderProps } from "@anywidget/types";
import { expect, test } from "vitest";
import factory from "../src/index";

type State = { tokens: string[] };

/** The smallest model a host could give: one trait and its change event. */
function fakeModel(tokens: string[]) {
  const listeners = new Set<() => void>();
  const model = {
    get: () => tokens,
    on: (_name: string, callback: () => void) => listeners.add(callback),
    off: (_name: string, callback: () => void) => listeners.delete(callback),
  } as unknown as AnyModel<State>;
  return {
    model,
    listeners,
    set(value: string[]) {
      tokens = value;
      for (const callback of listeners) callback();
    },
  };
}

test("render shows the tokens, follows them and stops on the signal", () => {
  const fake = fakeModel(["not", "bad"]);
  const el = document.createElement("div");
  const abort = new AbortController();
  const props: Partial<RenderProps<State>> = { model: fake.model, el, signal: abort.signal };
  factory().render(props as RenderProps<State>);

  const texts = () => [...el.querySelectorAll('[data-part="token"]')].map((t) => t.textContent);
  expect(el.querySelector(".mixwidget")?.getAttribute("data-state")).toBe("ready");
  expect(texts()).toEqual(["not", "bad"]);

  fake.set(["good"]);
  expect(texts()).toEqual(["good"]);

  abort.abort();
  expect(fake.listeners.size).toBe(0);
});
