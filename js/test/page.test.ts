import { expect, test } from "vitest";
import { measuredParts } from "../dev/measured";
import { savedHost } from "../src/page";
import { hideStill } from "../src/still";
import type { ArrayMessage, FaithfulnessPart, Question } from "../src/wire/protocol";
import { createStore } from "../src/wire/store";
import { DEFAULTS, type RunInfo } from "../src/wire/types";

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

function saved(faithfulness: FaithfulnessPart[] = []) {
  const traits = { ...DEFAULTS, focus: 1, runs: { free: run("a"), bound: run("b") } };
  const arrays: [ArrayMessage, number][] = [
    [message("a", "scores"), 2],
    [message("b", "scores"), 2],
  ];
  const host = savedHost(
    { traits, focused: ["bound"], faithfulness, arrays, data: "" },
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

/** What a page says about a question: its parts, or why it has none. */
function asked(faithfulness: FaithfulnessPart[], question: Partial<Question>) {
  const { host } = saved(faithfulness);
  const life = new AbortController();
  const parts: FaithfulnessPart[] = [];
  let message = "";
  createStore(host, life.signal).request(
    (id) => ({ kind: "measure", id, v: 1, runs: {}, target: null, focus: 1, ...question }),
    (answer) => {
      if (answer.kind === "error") message = answer.message;
    },
    (part) => parts.push(part),
  );
  life.abort();
  return { parts, message };
}

test("a page holds what was measured, for the methods that are compared", () => {
  const runs = { a: "a-1", b: "b-1", c: "c-1" };
  const whole = measuredParts({ runs, target: null, focus: 1 }, []);
  const verdict = whole.at(-1);
  if (verdict?.part === "verdict") verdict.methods = { a: "of a", c: "of c" };
  const agreement = whole.find((part) => part.part === "agreement");
  if (agreement) agreement.spearman = [0, 1, 2].map((r) => [0, 1, 2].map((c) => 3 * r + c));

  const { parts } = asked(whole, { runs: { c: "c-1", a: "a-1" } });
  const kinds = parts.map((part) => part.part).join(" ");
  expect(kinds).toBe("start curve curve random agreement verdict");
  expect(parts[0]).toMatchObject({ methods: ["c", "a"] });
  expect(parts[1]).toMatchObject({ method: "c" });
  expect(parts[4]).toMatchObject({ methods: ["c", "a"] });
  expect(parts[4]).toMatchObject({
    spearman: [
      [8, 6],
      [2, 0],
    ],
  });
  expect(parts[5]).toMatchObject({ text: "of c" });

  const other = asked(whole, { runs: { a: "a-1", new: "n-1" } }).parts;
  expect(other[2]).toMatchObject({ method: "new", error: expect.stringContaining("not measured") });
  expect(other.some((part) => part.part === "agreement")).toBe(false);
});

test("a page says why it holds no faithfulness", () => {
  const runs = { a: "a-1" };
  expect(asked([], { runs }).message).toContain("had not been measured");
  const refused: FaithfulnessPart = { part: "curve", method: "a", error: "There is no head." };
  expect(asked([refused], { runs }).message).toBe("There is no head.");
  const whole = measuredParts({ runs, target: null, focus: 1 }, []);
  expect(asked(whole, { runs, focus: 0 }).message).toContain("focus token");
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
