import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { memoryHost } from "../src/wire/host";
import { createStore } from "../src/wire/store";
import type { RunInfo } from "../src/wire/types";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const run = (state: RunInfo["state"], done: number[] = []): RunInfo => ({
  run: "r",
  state,
  progress: 0,
  seconds_left: null,
  message: "",
  done_layers: done,
});

function open() {
  const host = memoryHost({ runs: { m: run("computing") } }, () => {});
  const life = new AbortController();
  const store = createStore(host, life.signal);
  const deliver = (layer: number, seq: number, id = "") =>
    host.deliver(
      {
        kind: "array",
        id,
        v: 1,
        run: "r",
        what: "layer",
        layer,
        seq,
        dtype: "f4",
        shape: [1],
        scale: 1,
      },
      [Float32Array.from([layer])],
    );
  const wants = () =>
    host.sent.flatMap((request) => (request.kind === "need" ? request.wants : []));
  return { host, life, store, deliver, wants };
}

test("wants of one frame go out as one request, and only once", () => {
  const { host, store } = open();
  for (const layer of [0, 1, 0]) store.need({ run: "r", what: "layer", layer });
  vi.advanceTimersByTime(10);
  store.need({ run: "r", what: "layer", layer: 1 });
  vi.advanceTimersByTime(1000);
  expect(host.sent).toHaveLength(1);
  expect(host.sent[0]).toMatchObject({ kind: "need", v: 1, wants: [{ layer: 0 }, { layer: 1 }] });
});

test("what is pushed anyway is given time to come", () => {
  const { store, deliver, wants } = open();
  store.need({ run: "r", what: "layer", layer: 0 }, true);
  vi.advanceTimersByTime(100);
  deliver(0, 0);
  vi.advanceTimersByTime(1000);
  expect(wants()).toEqual([]);
  expect(store.get({ run: "r", what: "layer", layer: 0 })?.values[0]).toBe(0);
});

test("a gap in the numbering asks at once for what a view lacks", () => {
  const { store, deliver, wants } = open();
  store.need({ run: "r", what: "layer", layer: 1 }, true);
  deliver(0, 0);
  deliver(2, 2);
  vi.advanceTimersByTime(5);
  expect(wants()).toEqual([{ run: "r", what: "layer", layer: 1 }]);
});

test("a run that begins again counts from 0 again", () => {
  const { store, deliver, wants } = open();
  deliver(0, 0);
  deliver(1, 1);
  deliver(0, 0);
  deliver(1, 1);
  store.need({ run: "r", what: "layer", layer: 2 }, true);
  vi.advanceTimersByTime(100);
  expect(wants()).toEqual([]);
});

test("what was missing is asked for again when the run has gone on", () => {
  const { host, store, wants } = open();
  store.need({ run: "r", what: "layer", layer: 3 });
  vi.advanceTimersByTime(5);
  const id = host.sent[0]?.id;
  host.deliver({ kind: "done", id, v: 1, missing: [{ run: "r", what: "layer", layer: 3 }] });
  store.need({ run: "r", what: "layer", layer: 3 });
  vi.advanceTimersByTime(5);
  expect(wants()).toHaveLength(1);
  host.set({ runs: { m: run("computing", [3]) } });
  store.need({ run: "r", what: "layer", layer: 3 });
  vi.advanceTimersByTime(5);
  expect(wants()).toHaveLength(2);
});

test("arrays of the text go with the text", () => {
  const { host, store } = open();
  store.put({ run: "", what: "head_stats" }, { shape: [1], values: new Float32Array(1) });
  store.put({ run: "r", what: "scores" }, { shape: [1], values: new Float32Array(1) });
  host.set({ tokens: [] });
  expect(store.get({ run: "", what: "head_stats" })).toBeUndefined();
  expect(store.get({ run: "r", what: "scores" })).toBeDefined();
});

test("a file comes with its request; the final answer comes once", () => {
  const { host, store } = open();
  const final = vi.fn();
  store.request((id) => ({ kind: "export", id, v: 1, format: "json" }), final);
  const id = host.sent[0]?.id;
  host.deliver({ kind: "file", id, v: 1, name: "a.json", mime: "application/json" }, [
    new Uint8Array(2),
  ]);
  host.deliver({ kind: "done", id, v: 1, missing: [] });
  host.deliver({ kind: "done", id, v: 1, missing: [] });
  expect(final).toHaveBeenCalledTimes(1);
  expect(final.mock.calls[0]?.[1]).toHaveLength(1);
});

test("a refused value is told", () => {
  const { host, life, store } = open();
  const told = vi.fn();
  store.onRefusal(told, life.signal);
  host.deliver({
    kind: "error",
    id: "",
    v: 1,
    message: "The text is empty.",
    hint: "Type something.",
  });
  expect(told).toHaveBeenCalledWith("The text is empty. Type something.");
});

test("broken arrays are reported and do no harm", () => {
  const { host, store } = open();
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  host.deliver(
    {
      kind: "array",
      id: "",
      v: 1,
      run: "r",
      what: "scores",
      seq: 0,
      dtype: "f4",
      shape: [9],
      scale: 1,
    },
    [new Uint8Array(3)],
  );
  expect(warn).toHaveBeenCalledTimes(1);
  expect(store.get({ run: "r", what: "scores" })).toBeUndefined();
  warn.mockRestore();
});

test("memory is bounded: the arrays used longest ago go first", () => {
  const { store } = open();
  const big = () => ({ shape: [10_000_000], values: new Float32Array(10_000_000) });
  for (let layer = 0; layer < 6; layer++) {
    store.put({ run: "r", what: "layer", layer }, big());
    store.get({ run: "r", what: "layer", layer: 0 });
  }
  expect(store.bytes).toBeLessThanOrEqual(160_000_000);
  expect(store.get({ run: "r", what: "layer", layer: 0 })).toBeDefined();
  expect(store.get({ run: "r", what: "layer", layer: 1 })).toBeUndefined();
});

test("nothing is sent after the end", () => {
  const { host, life, store } = open();
  store.need({ run: "r", what: "scores" });
  life.abort();
  vi.advanceTimersByTime(1000);
  expect(host.sent).toHaveLength(0);
});
