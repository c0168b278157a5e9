/** What is shown, what is left out, and which controls do something. */

import { afterEach, expect, test } from "vitest";
import { scene } from "../dev/synthetic";
import { mount } from "../src/app";
import { memoryHost } from "../src/wire/host";
import { createStore } from "../src/wire/store";
import type { Traits } from "../src/wire/types";
import { type Mounted, mounted, settle } from "./helpers";

let open: { life: AbortController }[] = [];
const start = async (traits: Partial<Traits>): Promise<Mounted> => {
  const made = await mounted("review", traits);
  open.push(made);
  return made;
};
afterEach(() => {
  for (const { life } of open) life.abort();
  open = [];
});

const FIVE = ["globenc", "attention_rollout", "attcat", "blank_out"];
const button = (root: HTMLElement, words: string) =>
  [...root.querySelectorAll<HTMLElement>("button")].find(
    (one) => one.textContent === words,
  ) as HTMLElement;
const idle = ({ find }: Mounted, part: string) => {
  const control = find<HTMLSelectElement>(part);
  return control.disabled ? control.title : null;
};
const said = (root: HTMLElement, view: string) =>
  root.querySelector(`.mix-view-${view} [data-part="left-out"]`)?.textContent;

test.each(["compare", "faithfulness"] as const)(
  "%s says which ticked method is left out",
  async (view) => {
    const { host, root } = await start({ view, compared: FIVE });
    expect(said(root, view)).toBe("Four are shown at a time; Blank-out is left out.");
    host.set({ compared: FIVE.slice(0, 3) });
    await settle();
    expect(said(root, view)).toBe("");
  },
);

test("thumbnails of methods say which is left out and what each of them shows", async () => {
  const { host, root } = await start({ view: "multiples", compared: FIVE, layer: 2 });
  button(root, "methods side by side").click();
  await settle(200);
  expect(said(root, "multiples")).toMatch(/Blank-out is left out/);
  const about = () =>
    [...root.querySelectorAll(".mix-thumb-about")].map((line) => line.textContent);
  expect(about()).toEqual([
    ...new Array(3).fill("from the input up to layer 2"),
    "layers 0 to 2 added up",
  ]);
  const keys = [...root.querySelectorAll<HTMLElement>(".mix-thumbs .mix-legend")];
  expect(keys.map((key) => key.hidden)).toEqual([false, false, false, false]);
  host.set({ aggregate: "sum", compared: ["blank_out"] });
  await settle();
  expect(about()).toEqual(["layers 0 to 2 added up", "final scores, no layers"]);
});

test("thumbnails of layers are what the aggregate says", async () => {
  const { host, store, root, find } = await start({ view: "multiples", aggregate: "sum" });
  await settle();
  expect(root.querySelector(".mix-view-multiples .mix-caption")?.textContent).toMatch(
    /added up to each layer/,
  );
  expect(store.get({ run: "run-alti", what: "sum", layer: 3 })).toBeDefined();
  host.set({ method: "attcat" });
  await settle();
  const caption = () => root.querySelector(".mix-view-multiples .mix-caption")?.textContent;
  expect(caption()).toMatch(/token scores added up to each layer/);
  expect(find<HTMLSelectElement>("aggregate").disabled).toBe(false);
  host.set({ aggregate: "layer" });
  await settle();
  expect(caption()).toMatch(/token scores of each layer alone/);
});

test("methods without maps are named where maps are compared", async () => {
  const { root } = await start({ view: "compare", compared: ["attcat", "blank_out"] });
  expect(said(root, "compare")).toBe("");
  button(root, "as maps").click();
  await settle();
  expect(said(root, "compare")).toBe(
    "AttCAT and Blank-out have no maps, so they are not drawn here.",
  );
});

test("a correlation states over which tokens it goes", async () => {
  const { host, root, find } = await start({ view: "compare" });
  const n = host.get("tokens").length;
  expect(find("agreement").textContent).toContain(
    `over all ${n} shown tokens, special tokens included.`,
  );
  expect(root.querySelector(".mix-correlations caption")?.textContent).toContain(`all ${n} shown`);
  host.set({ special: false });
  await settle();
  expect(find("agreement").textContent).toContain(
    `over the ${n - 2} ordinary tokens, special tokens hidden.`,
  );
  host.set({ view: "faithfulness" });
  await settle();
  const captions = [...find("agreements").querySelectorAll("caption")].map((c) => c.textContent);
  for (const caption of captions) expect(caption).toMatch(/ordinary tokens/);
});

test("each compared method has its meaning and its colours explained", async () => {
  const { host, root } = await start({ view: "compare", compared: ["attcat"] });
  const rows = [...root.querySelectorAll<HTMLElement>(".mix-compare-row")];
  expect(rows[0]?.textContent).toMatch(/What went into “\[CLS\]”/);
  expect(rows[1]?.textContent).toMatch(/speaks for or against “positive”/);
  expect(rows[1]?.querySelector(".mix-legend")?.textContent).toMatch(/orange speaks against/);
  const [low, high] = [...(rows[1]?.querySelectorAll(".mix-legend-number") ?? [])];
  expect(low?.textContent?.startsWith("≤")).toBe(high?.textContent?.startsWith("≥"));
  host.set({ compared: ["globenc"] });
  await settle();
  expect(root.querySelector(".mix-view-compare .mix-caption")?.textContent).toMatch(
    /What went into “\[CLS\]”.* Each method has its own scale\./,
  );
  expect(rows[0]?.querySelector<HTMLElement>(".mix-notes")?.hidden).toBe(true);
});

test("the target is off where no shown method looks at it", async () => {
  const made = await start({ compared: ["globenc"] });
  expect(idle(made, "target-select")).toBe("The scores of ALTI do not depend on the target.");
  made.host.set({ method: "gae" });
  await settle();
  expect(idle(made, "target-select")).toBeNull();
  made.host.set({ method: "alti", view: "compare" });
  await settle();
  expect(idle(made, "target-select")).toMatch(/these methods/);
  made.host.set({ compared: ["gae"] });
  await settle();
  expect(idle(made, "target-select")).toBeNull();
  made.host.set({ view: "heads" });
  await settle();
  expect(made.find("target-select").closest<HTMLElement>(".mix-field")?.hidden).toBe(true);
  made.host.set({ view: "faithfulness" });
  await settle();
  expect(idle(made, "target-select")).toBeNull();
});

test("the focus is off where scores are the same for every token", async () => {
  const made = await start({ method: "blank_out", compared: [] });
  expect(idle(made, "focus-select")).toBe(
    "The scores of Blank-out do not depend on the focus token.",
  );
  // A language model is asked at the focus.
  const info = made.host.get("model_info");
  made.host.set({ model_info: { ...info, task: "causal_lm" } });
  await settle();
  expect(idle(made, "focus-select")).toBeNull();
  const bound = made.host.get("catalogue").map((e) => ({ ...e, any_focus: false }));
  made.host.set({ model_info: info, catalogue: bound });
  await settle();
  expect(idle(made, "focus-select")).toBeNull();
});

test("colours are off where no scale is drawn in them", async () => {
  const made = await start({ method: "attcat", compared: [] });
  expect(idle(made, "colours")).toMatch(/orange speaks against/);
  made.host.set({ method: "alti" });
  await settle();
  expect(idle(made, "colours")).toBeNull();
  made.host.set({ view: "graph" });
  await settle();
  expect(idle(made, "colours")).toMatch(/trace/);
  made.find("trace").click();
  await settle();
  expect(idle(made, "colours")).toBeNull();
  made.host.set({ view: "faithfulness" });
  await settle();
  expect(idle(made, "colours")).toMatch(/curves/);
});

test("layers and their combination are off where there are none", async () => {
  const made = await start({ method: "blank_out", compared: ["alti"], view: "multiples" });
  expect(idle(made, "aggregate")).toMatch(/Blank-out cannot be drawn here/);
  expect(idle(made, "layer-slider")).toMatch(/Blank-out cannot be drawn here/);
  button(made.root, "methods side by side").click();
  await settle();
  expect([idle(made, "aggregate"), idle(made, "layer-slider")]).toEqual([null, null]);
  made.host.set({ view: "text" });
  await settle();
  expect(idle(made, "aggregate")).toMatch(/one score per token/);
});

test("subwords and special tokens are off where the text has none", async () => {
  const tokens = (scene("review").traits.tokens ?? []).map((token, i) => ({
    ...token,
    word: i,
    special: false,
  }));
  const made = await start({ tokens });
  expect(idle(made, "unit")).toMatch(/No word/);
  expect(idle(made, "special")).toMatch(/Special tokens/);
});

test("a saved page with one method does not ask for others", async () => {
  const { traits } = scene("review", { layers: 4, heads: 3 });
  const catalogue = (traits.catalogue ?? []).map((e) => ({ ...e, available: e.id === "alti" }));
  const host = memoryHost({ ...traits, catalogue, compared: [], view: "compare" });
  const life = new AbortController();
  open.push({ life });
  const element = document.createElement("div");
  mount(element, host, createStore(host, life.signal), life.signal);
  await settle();
  const notice = (view: string) =>
    element.querySelector(`.mix-view-${view} .mix-notice`)?.textContent;
  expect(notice("compare")).toBe("This page holds only ALTI; any other needs the notebook.");
  host.set({ view: "multiples" });
  await settle();
  button(element, "methods side by side").click();
  await settle();
  expect(notice("multiples")).toBe("This page holds only ALTI; any other needs the notebook.");
});
