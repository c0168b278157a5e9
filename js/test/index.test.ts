import type { AnyModel } from "@anywidget/types";
import { expect, test } from "vitest";
import { encode, scene } from "../dev/synthetic";
import factory from "../src/index";
import { settle } from "./helpers";

type Callback = (...values: unknown[]) => void;

/** A model as a notebook gives it; `proxy` makes another face of the same model. */
function fakeModel() {
  const made = scene("review", { layers: 2, heads: 2 });
  const traits = made.traits as Record<string, unknown>;
  const listeners = new Map<string, Set<Callback>>();
  const sent: unknown[] = [];
  let saves = 0;
  const emit = (name: string, ...values: unknown[]) => {
    for (const callback of [...(listeners.get(name) ?? [])]) callback(...values);
  };
  const proxy = () =>
    ({
      get: (name: string) => traits[name],
      set(name: string, value: unknown) {
        traits[name] = value;
        emit(`change:${name}`);
      },
      save_changes: () => {
        saves++;
      },
      send: (content: unknown) => sent.push(content),
      on(name: string, callback: Callback) {
        listeners.set(name, (listeners.get(name) ?? new Set()).add(callback));
      },
      off: (name: string, callback: Callback) => listeners.get(name)?.delete(callback),
    }) as unknown as AnyModel;
  const listening = () => [...listeners.values()].reduce((sum, set) => sum + set.size, 0);
  return { made, traits, sent, emit, proxy, listening, saves: () => saves };
}

test("two views share one store; both follow; all stops on the signals", async () => {
  const fake = fakeModel();
  const widget = factory();
  const whole = new AbortController();
  widget.initialize({ model: fake.proxy(), signal: whole.signal });
  const views = [0, 1].map(() => {
    const el = document.createElement("div");
    document.body.append(el);
    const life = new AbortController();
    widget.render({ model: fake.proxy(), el, signal: life.signal });
    return { el, life };
  });
  await settle(20);
  const needs = fake.sent.filter((message) => (message as { kind: string }).kind === "need");
  expect(needs).toHaveLength(1);
  const { id, wants } = needs[0] as { id: string; wants: Parameters<typeof fake.made.answer>[0][] };
  for (const want of wants) {
    const { shape, values } = fake.made.answer(want) ?? { shape: [], values: [] };
    const { buffer, scale } = encode(values, "f4");
    const content = { kind: "array", id, v: 1, seq: -1, dtype: "f4", shape, scale, ...want };
    fake.emit("msg:custom", content, [new DataView(buffer)]);
  }
  fake.emit("msg:custom", { kind: "done", id, v: 1, missing: [] }, []);
  await settle();
  for (const { el } of views)
    expect(el.querySelector<HTMLElement>('[data-part="token"]')?.dataset.score).toBeTruthy();

  views[0]?.el.querySelector<HTMLElement>('[data-part="token"][data-index="4"]')?.click();
  await settle(120);
  expect(fake.saves()).toBe(0); // looking is of one view alone
  views[0]?.el.querySelector<HTMLElement>('[data-part="into"]')?.click();
  await settle(120);
  expect(fake.traits.focus).toBe(4);
  expect(fake.saves()).toBe(1);
  expect(views[1]?.el.querySelector('[data-index="4"]')?.getAttribute("aria-selected")).toBe(
    "true",
  );

  views[0]?.life.abort();
  expect(views[0]?.el.childElementCount).toBe(0);
  expect(views[1]?.el.childElementCount).toBe(1);
  views[1]?.life.abort();
  whole.abort();
  expect(fake.listening()).toBe(0);
});

test("a host without signal and without initialize uses the cleanup", async () => {
  const fake = fakeModel();
  const el = document.createElement("div");
  const cleanup = factory().render({ model: fake.proxy(), el });
  await settle(20);
  expect(el.querySelector(".mixwidget")).not.toBeNull();
  cleanup();
  expect(el.childElementCount).toBe(0);
  expect(fake.listening()).toBe(0);
});

test("it works in a shadow root", async () => {
  const fake = fakeModel();
  const outer = document.createElement("div");
  document.body.append(outer);
  const shadow = outer.attachShadow({ mode: "open" });
  const el = document.createElement("div");
  shadow.append(el);
  const cleanup = factory().render({ model: fake.proxy(), el });
  await settle();
  shadow.querySelector<HTMLElement>('[data-view="map"]')?.click();
  expect(fake.traits.view).toBe("map");
  cleanup();
});

test("a model that knows nothing yet shows an empty widget, not an error", async () => {
  const model = {
    get: () => undefined,
    set() {},
    save_changes() {},
    send() {},
    on() {},
    off() {},
  } as unknown as AnyModel;
  const el = document.createElement("div");
  const cleanup = factory().render({ model, el });
  await settle();
  expect(el.querySelector<HTMLElement>(".mixwidget")?.dataset.state).toBe("computing");
  cleanup();
});
