/** What is shown, what is left out, and which controls do something. */

import { afterEach, expect, test } from "vitest";
import { scene } from "../dev/synthetic";
import { mount } from "../src/app";
import { memoryHost } from "../src/wire/host";
import { createStore } from "../src/wire/store";
import type { RunInfo, Traits } from "../src/wire/types";
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
/** Whether a control is there to be used: what changes nothing is absent. */
const there = ({ find }: Mounted, part: string) => {
  for (let at: HTMLElement | null = find(part); at; at = at.parentElement) {
    if (at.matches(".mix-display")) return true;
    if (at.hidden) return false;
  }
  return true;
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
  expect(find("aggregate").hidden).toBe(false);
  host.set({ aggregate: "layer" });
  await settle();
  expect(caption()).toMatch(/token scores of each layer alone/);
});

test("methods without maps are named where maps are compared", async () => {
  const { root } = await start({ view: "compare", compared: ["attcat", "blank_out"] });
  expect(said(root, "compare")).toBe("");
  button(root, "maps").click();
  await settle();
  expect(said(root, "compare")).toBe(
    "AttCAT and Blank-out have no maps, so they are not drawn here.",
  );
});

test("a correlation states over which tokens it goes", async () => {
  const { host, root, find } = await start({ view: "compare" });
  const n = host.get("tokens").length;
  button(root, "difference").click();
  await settle();
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
  await settle(200);
  const captions = [...find("agreements").querySelectorAll("caption")].map((c) => c.textContent);
  for (const caption of captions) expect(caption).toMatch(/ordinary tokens/);
});

test("words stand once over the bars of all methods, with test and agreement beside them", async () => {
  const { host, root, find, all } = await start({ view: "compare", compared: ["attcat"] });
  await settle(300);
  const words = [...root.querySelectorAll(".mix-bar-words > span")].map((one) => one.textContent);
  const ordinary = host.get("tokens").filter((token) => !token.special);
  expect(words.length).toBeGreaterThan(5);
  expect(words.length).toBeLessThanOrEqual(ordinary.length);
  expect(all("token")).toHaveLength(0); // the sentence would repeat them
  const rows = [...root.querySelectorAll<HTMLElement>(".mix-bar-row")];
  expect(rows.map((row) => row.querySelector("strong")?.textContent)).toEqual(["ALTI", "AttCAT"]);
  for (const row of rows)
    expect(row.querySelectorAll(".mix-bar-bars > div")).toHaveLength(words.length);
  expect(rows[1]?.querySelector(".mix-against")).not.toBeNull();
  expect(rows[0]?.querySelector(".mix-against")).toBeNull();
  expect(rows[0]?.textContent).toMatch(/19\/20reference$/);
  expect(rows[1]?.textContent).toMatch(/ρ −?\d\.\d\d to ALTI$/);
  expect(find("claim").textContent).toMatch(/first/);
  const key = root.querySelector(".mix-key")?.textContent;
  expect(key).toBe("for positiveagainst");
  // Back in another view the sentence is there again.
  host.set({ view: "text" });
  await settle();
  expect(all("token").length).toBeGreaterThan(5);
});

test("each compared method is a text of its own colours, if that is asked for", async () => {
  const { root } = await start({ view: "compare", compared: ["attcat"] });
  button(root, "text").click();
  await settle();
  const rows = [...root.querySelectorAll<HTMLElement>(".mix-compare-row")];
  expect(rows.map((row) => row.querySelector("h4")?.textContent)).toEqual(["ALTI", "AttCAT"]);
  for (const row of rows)
    expect(row.querySelectorAll('.mix-token[style*="background"]').length).toBeGreaterThan(0);
});

test("what is explained can be chosen as long as there is a kernel: the test is about it", async () => {
  const made = await start({ compared: ["globenc"] });
  expect(made.find<HTMLSelectElement>("target-select").tagName).toBe("SELECT");
  made.host.set({ view: "heads" });
  await settle();
  expect(there(made, "target-select")).toBe(true);
});

test("the row is absent where scores are the same for every token", async () => {
  const made = await start({ method: "blank_out", compared: [] });
  expect(there(made, "focus-select")).toBe(false);
  // A language model is asked at the focus.
  const info = made.host.get("model_info");
  made.host.set({ model_info: { ...info, task: "causal_lm" } });
  await settle();
  expect(there(made, "focus-select")).toBe(true);
  const bound = made.host.get("catalogue").map((e) => ({ ...e, any_focus: false }));
  made.host.set({ model_info: info, catalogue: bound });
  await settle();
  expect(there(made, "focus-select")).toBe(true);
});

test("colours are absent where no scale is drawn in them", async () => {
  const made = await start({ method: "attcat", compared: [] });
  expect(there(made, "colours")).toBe(false);
  made.host.set({ method: "alti" });
  await settle();
  expect(there(made, "colours")).toBe(true);
});

test("edges are set only where all of them are drawn", async () => {
  const made = await start({ view: "graph" });
  expect([there(made, "all-edges"), there(made, "threshold")]).toEqual([true, false]);
  const box = made.find<HTMLInputElement>("all-edges");
  box.checked = true;
  box.dispatchEvent(new Event("change", { bubbles: true }));
  await settle();
  expect([there(made, "top-k"), there(made, "threshold")]).toEqual([true, true]);
  expect(made.root.querySelector(".mix-graph canvas")?.getAttribute("aria-label")).toMatch(
    /All edges of ALTI/,
  );
  made.host.set({ top_k: 3 });
  await settle();
  expect(there(made, "threshold")).toBe(false);
  made.host.set({ view: "map" });
  await settle();
  expect(there(made, "all-edges")).toBe(false);
});

test("layers and their combination are absent where there are none", async () => {
  const made = await start({ method: "blank_out", compared: ["alti"], view: "text" });
  expect([there(made, "aggregate"), there(made, "layer-slider")]).toEqual([false, false]);
  made.host.set({ view: "compare" });
  await settle();
  expect([there(made, "aggregate"), there(made, "layer-slider")]).toEqual([true, true]);
  made.host.set({ view: "faithfulness" });
  await settle();
  expect([there(made, "aggregate"), there(made, "layer-slider")]).toEqual([false, false]);
});

test("subwords and special tokens are absent where the text has none", async () => {
  const tokens = (scene("review").traits.tokens ?? []).map((token, i) => ({
    ...token,
    word: i,
    special: false,
  }));
  const made = await start({ tokens });
  expect([there(made, "unit"), there(made, "special")]).toEqual([false, false]);
});

test("no control is greyed in any view", async () => {
  const made = await start({ compared: ["attcat"] });
  for (const view of ["text", "graph", "layers", "map", "multiples", "compare", "heads"] as const) {
    made.host.set({ view });
    await settle(120);
    const grey = [...made.root.querySelectorAll<HTMLButtonElement>("button, select, input")].filter(
      (one) => one.disabled,
    );
    expect(grey, view).toEqual([]);
  }
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

const cellOf = (root: HTMLElement, layer: number, head: number) =>
  root.querySelector(`.mix-head-grid [data-layer="${layer}"][data-head="${head}"]`) as HTMLElement;

function chooseColour(root: HTMLElement, value: string): void {
  const select = root.querySelector('[data-part="head-stat"]') as HTMLSelectElement;
  select.value = value;
  select.dispatchEvent(new Event("change"));
}

test("heads are coloured by what they wrote into the answer, where that is known", async () => {
  const made = await start({ view: "heads" });
  const select = made.root.querySelector('[data-part="head-stat"]') as HTMLSelectElement;
  expect([...select.options].some((one) => one.value === "written")).toBe(true);
  chooseColour(made.root, "written");
  await settle();
  expect(made.root.textContent).toContain("what each head wrote straight into the score of");
  cellOf(made.root, 1, 2).click();
  await settle();
  expect(cellOf(made.root, 1, 2).getAttribute("aria-label")).toMatch(/written into .*: [+−]/);
  expect(made.root.querySelector(".mix-head-words")?.textContent).toMatch(
    /It wrote [+−][\d.]+ into/,
  );
  const { logit: _gone, ...runs } = made.host.get("runs");
  made.host.set({ runs });
  await settle();
  expect([...select.options].some((one) => one.value === "written")).toBe(false);
  expect(made.root.textContent).toContain("Attention weights by head");
});

test("choosing heads makes the mask of Mask-LRP, and its note is shown", async () => {
  const made = await start({ view: "heads" });
  const note = () => made.root.querySelector('[data-part="mask-note"]')?.textContent;
  const runs = made.host.get("runs");
  const mask = Array.from({ length: 4 }, (_, l) => [0, l === 1 ? 1 : 0, 0]);
  const known = { ...runs.alti, mask, mask_note: "positional heads found in this text (1 of 12)" };
  made.host.set({ runs: { ...runs, mask_lrp: known as RunInfo } });
  await settle();
  expect(note()).toContain("positional heads found in this text (1 of 12)");
  expect(cellOf(made.root, 1, 1).dataset.mask).toBe("in");
  made.find("choose-heads").click();
  await settle();
  cellOf(made.root, 2, 0).click();
  await settle();
  const chosen = made.host.get("params").mask_lrp?.mask as number[][];
  expect(chosen.map((row) => row.join(""))).toEqual(["000", "010", "100", "000"]);
  expect(note()).toContain("2 heads of 12 chosen here");
  expect(cellOf(made.root, 2, 0).getAttribute("aria-pressed")).toBe("true");
  expect(made.host.get("layer")).not.toBe(2); // it was chosen, not looked at
  button(made.root, "Choose none").click();
  await settle();
  expect(note()).toContain("residual path only");
  button(made.root, "Its own heads").click();
  await settle();
  expect(made.host.get("params").mask_lrp?.mask).toBeUndefined();
  button(made.root, "Explain by these heads").click();
  await settle();
  expect(made.host.get("method")).toBe("mask_lrp");
});

test("what a method shares out is checked, and a function without a rule is named", async () => {
  const made = await start({ view: "text" });
  const badge = () => made.find("adds-up");
  expect(badge().textContent).toContain("the model’s own numbers");
  const runs = made.host.get("runs");
  const told = (error: number, unmet: string) =>
    made.host.set({
      runs: { ...runs, alti: { ...runs.alti, balance: { error, unmet } } as RunInfo },
    });
  told(3e-7, "");
  await settle();
  expect(badge().textContent).toBe("parts, biases and softmax add up to the prediction, 3 × 10⁻⁷");
  expect(badge().dataset.good).toBe("true");
  told(0.02, "argmax");
  await settle();
  expect(badge().textContent).toContain("“argmax”");
  expect(badge().textContent).toContain("Do not trust");
  expect(badge().dataset.good).toBe("false");
});

test("the first choices are those that the kernel recommends, in its order", async () => {
  const made = await start({ view: "text" });
  const first = () =>
    [...made.root.querySelectorAll<HTMLElement>(".mix-first [data-method]")].map(
      (one) => one.dataset.method,
    );
  expect(first()).toEqual(["alti", "gradient_x_input", "blank_out"]);
  const info = made.host.get("model_info");
  made.host.set({
    model_info: {
      ...info,
      first: [
        { id: "attcat", why: "w" },
        { id: "alti", why: "v" },
      ],
    },
  });
  await settle();
  expect(first()).toEqual(["attcat", "alti"]);
});
