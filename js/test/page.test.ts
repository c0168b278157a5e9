import { expect, test } from "vitest";
import { savedHost } from "../src/page";
import type { ArrayMessage } from "../src/protocol";
import { hideStill } from "../src/still";
import { createStore } from "../src/store";
import { DEFAULTS, type RunInfo } from "../src/types";

const run = (name: string): RunInfo => ({
  run: name,
  state: "ready",
  progress: 1,
  seconds_left: null,
  message: "",
  done_layers: [0],
});

const message = (name: string, what: "scores" | "layer"): ArrayMessage => ({
  kind: "array",
  id: "",
  run: name,
  what,
  layer: 0,
  seq: -1,
  dtype: "u1",
  shape: [2],
  scale: 0.5,
});

function saved() {
  const traits = { ...DEFAULTS, focus: 1, runs: { free: run("a"), bound: run("b") } };
  const arrays: [ArrayMessage, number][] = [
    [message("a", "scores"), 2],
    [message("b", "scores"), 2],
  ];
  const host = savedHost(
    { traits, focused: ["bound"], arrays, data: "" },
    new Uint8Array([2, 4, 6, 8]),
  );
  return { host, life: new AbortController() };
}

test("a saved page answers from what it holds and computes nothing", async () => {
  const { host, life } = saved();
  const store = createStore(host, life.signal);
  expect(host.live).toBe(false);
  expect(store.need({ run: "b", what: "scores" })).toBeUndefined();
  store.need({ run: "b", what: "layer", layer: 0 });
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect([...(store.get({ run: "b", what: "scores" })?.values ?? [])]).toEqual([3, 4]);
  expect(store.get({ run: "b", what: "layer", layer: 0 })).toBeUndefined();
  let final = "";
  store.request(
    (id) => ({ kind: "export", id, v: 1, format: "json" }),
    (answer) => {
      final = answer.kind;
    },
  );
  expect(final).toBe("done");
  life.abort();
});

test("runs that hold for one focus token are away while another is chosen", () => {
  const { host } = saved();
  host.set({ focus: 0 });
  expect(Object.keys(host.get("runs"))).toEqual(["free"]);
  host.set({ layer: 2 });
  expect(Object.keys(host.get("runs"))).toEqual(["free"]);
  host.set({ focus: 1 });
  expect(Object.keys(host.get("runs"))).toEqual(["free", "bound"]);
});

test("the still picture is hidden as long as the view is there", () => {
  const element = document.createElement("div");
  const life = new AbortController();
  hideStill(element, "bWl4d2lkZ2V0LTAwMDAwMDAw", life.signal);
  expect(element.querySelector("style")?.textContent).toContain(
    'img[src*="bWl4d2lkZ2V0LTAwMDAwMDAw"]',
  );
  life.abort();
  expect(element.childElementCount).toBe(0);
});

test("only a mark makes a rule", () => {
  const element = document.createElement("div");
  const { signal } = new AbortController();
  for (const mark of ["", undefined, 'x"] , body { display: none } [a="', "short"])
    hideStill(element, mark, signal);
  expect(element.childElementCount).toBe(0);
});
