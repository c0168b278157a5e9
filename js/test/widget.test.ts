import { afterEach, expect, test } from "vitest";
import { type Mounted, mounted, settle } from "./helpers";

let open: Mounted[] = [];
const start = async (...given: Parameters<typeof mounted>) => {
  const made = await mounted(...given);
  open.push(made);
  return made;
};
afterEach(() => {
  for (const { life } of open) life.abort();
  open = [];
});
const press = (target: Element, key: string) =>
  target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));

test("the stable handles are there", async () => {
  const { root, all } = await start();
  expect(root.dataset.state).toBe("ready");
  expect(all("view-tab").map((tab) => tab.dataset.view)).toEqual([
    "text",
    "layers",
    "map",
    "graph",
    "multiples",
    "compare",
    "heads",
    "faithfulness",
  ]);
  const one = [
    "layer-slider",
    "play",
    "aggregate",
    "target-select",
    "status",
    "progress",
    "cancel",
    "text-input",
    "export",
  ];
  for (const part of one) expect(all(part), part).toHaveLength(1);
  expect(all("method-toggle").every((toggle) => toggle.dataset.method)).toBe(true);
  expect(all("token").map((token) => token.dataset.index)).toEqual(
    all("token").map((_, i) => String(i)),
  );
});

test("tokens carry score, colour and rank; a click sets the focus", async () => {
  const { host, all } = await start();
  const token = all("token")[3] as HTMLElement;
  expect(Number(token.dataset.score)).toBeGreaterThan(0);
  expect(token.style.backgroundColor).toMatch(/^rgb/);
  expect(token.getAttribute("aria-label")).toMatch(/rank \d+ of \d+/);
  token.click();
  expect(host.get("focus")).toBe(3);
  await settle();
  expect(all("token")[3]?.getAttribute("aria-selected")).toBe("true");
});

test("scores shown are the focus row of the rollout", async () => {
  const { host, store, all } = await start("review", { focus: 2 });
  const map = store.get({ run: host.get("runs").alti?.run ?? "", what: "rollout", layer: 3 });
  const n = host.get("tokens").length;
  const wanted = [...(map?.values.subarray(2 * n, 3 * n) ?? [])];
  expect(all("token").map((token) => Number(token.dataset.score))).toEqual(
    wanted.map((v) => Number(v.toPrecision(4))),
  );
});

test("markup in tokens, labels and messages is shown as text", async () => {
  const evil = "<img src=x onerror=alert(1)>";
  const { host, root, all, find } = await start("hostile");
  expect(all("token").some((token) => token.textContent === evil)).toBe(true);
  host.set({ status: { state: "error", message: `${evil} failed`, hint: evil } });
  const info = host.get("model_info");
  host.set({ model_info: { ...info, prediction: { label: evil, index: 0, probability: 1 } } });
  for (const view of [
    "layers",
    "map",
    "graph",
    "multiples",
    "compare",
    "heads",
    "faithfulness",
  ] as const) {
    host.set({ view });
    await settle(450);
    expect(root.querySelector("img, script"), view).toBeNull();
  }
  expect(find("status").textContent).toBe(`${evil} failed`);
});

test("layer slider and aggregate are traits, both ways", async () => {
  const { host, find } = await start();
  const slider = find<HTMLInputElement>("layer-slider");
  expect([slider.type, slider.min, slider.max, slider.value]).toEqual(["range", "0", "3", "3"]);
  slider.value = "1";
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  expect(host.get("layer")).toBe(1);
  host.set({ layer: 2, aggregate: "sum" });
  await settle();
  expect(slider.value).toBe("2");
  expect(find<HTMLSelectElement>("aggregate").value).toBe("sum");
  expect(find("caption").textContent).toContain("layers 0 to 2");
});

test("the sentence says what is shown", async () => {
  const { host, find } = await start("review", { layer: 2 });
  expect(find("caption").textContent).toMatch(
    /What went into “\[CLS\]” at layer 2, from the input/,
  );
  host.set({ aggregate: "layer" });
  await settle();
  expect(find("caption").textContent).toMatch(/in layer 2 alone/);
  host.set({ method: "blank_out" });
  await settle();
  expect(find("caption").textContent).toMatch(/speaks for or against “positive”/);
});

test("words and hidden special tokens are stated", async () => {
  const { root, all } = await start("review", { unit: "words", special: false });
  const notes = root.querySelector(".mix-notes")?.textContent ?? "";
  expect(notes).toMatch(/what they give is added/);
  expect(notes).toMatch(/Special tokens are hidden/);
  expect(all("token").some((token) => token.textContent === "actors")).toBe(true);
  expect(all("token").some((token) => token.textContent === "[SEP]")).toBe(false);
});

test("a pair is two blocks", async () => {
  const { root } = await start("pair");
  const names = [...root.querySelectorAll(".mix-block-name")].map((name) => name.textContent);
  expect(names).toEqual(["Text", "Second text"]);
});

test("a click on a method puts it in front, with shift it is compared", async () => {
  const { host, root } = await start("review", { compared: [] });
  const toggle = root.querySelector<HTMLElement>('[data-method="globenc"]') as HTMLElement;
  toggle.dispatchEvent(new MouseEvent("click", { bubbles: true, shiftKey: true }));
  expect([host.get("method"), host.get("compared")]).toEqual(["alti", ["globenc"]]);
  toggle.click();
  expect(host.get("method")).toBe("globenc");
  const off = root.querySelector<HTMLElement>(
    '[data-method="integrated_gradients"]',
  ) as HTMLElement;
  off.click();
  expect(host.get("method")).toBe("globenc");
});

test("a method without maps says so in words and offers a way on", async () => {
  const { host, root } = await start("review", { method: "blank_out", view: "map" });
  const notice = root.querySelector(".mix-view-map .mix-notice") as HTMLElement;
  expect(notice.textContent).toMatch(/Blank-out gives each token one score/);
  (notice.querySelectorAll("button")[1] as HTMLElement).click();
  expect(host.get("method")).not.toBe("blank_out");
  host.set({ method: "attcat", view: "layers" });
  await settle();
  expect((root.querySelector(".mix-view-layers .mix-heatmap") as HTMLElement).hidden).toBe(false);
});

test("every canvas has a role, a label and a table behind it", async () => {
  const { host, root } = await start();
  for (const view of ["layers", "map", "graph", "heads", "multiples"] as const) {
    host.set({ view });
    await settle(480);
    const panel = root.querySelector(`.mix-view-${view}`) as HTMLElement;
    const canvases = [...panel.querySelectorAll("canvas:not([aria-hidden])")];
    expect(canvases.length, view).toBeGreaterThan(0);
    for (const canvas of canvases) {
      expect(canvas.getAttribute("role")).toBe("img");
      expect(canvas.getAttribute("aria-label")?.length, view).toBeGreaterThan(5);
    }
    expect(panel.querySelector("table")?.textContent?.length, view).toBeGreaterThan(20);
  }
});

test("tabs and tokens are one stop each; arrows move between them", async () => {
  const { host, root, all } = await start();
  for (const part of ["view-tab", "token", "method-toggle"]) {
    expect(
      all(part).filter((item) => item.tabIndex === 0),
      part,
    ).toHaveLength(1);
  }
  const tab = all("view-tab")[0] as HTMLElement;
  tab.focus();
  press(tab, "ArrowRight");
  expect(document.activeElement).toBe(all("view-tab")[1]);
  const token = all("token")[0] as HTMLElement;
  token.focus();
  press(token, "ArrowRight");
  const next = all("token")[1] as HTMLElement;
  expect(document.activeElement).toBe(next);
  press(next, "Enter");
  expect(host.get("focus")).toBe(1);
  press(next, "ArrowDown");
  expect(host.get("layer")).toBe(2);
  expect(root.contains(document.activeElement)).toBe(true);
});

test("the graph is walked and traced by keyboard", async () => {
  const { host, root, find, all } = await start("review", { view: "graph" });
  const stage = root.querySelector(".mix-graph") as HTMLElement;
  press(stage, "ArrowRight");
  expect(host.get("focus")).toBe(1);
  press(stage, "ArrowDown");
  expect(host.get("layer")).toBe(2);
  press(stage, "Enter");
  await settle(480);
  expect(find("trace-clear").hidden).toBe(false);
  expect(root.querySelector(".mix-view-graph .mix-caption")?.textContent).toMatch(
    /Where “the” at layer 2 comes from/,
  );
  press(stage, "Escape");
  await settle();
  expect(all("trace-clear")[0]?.hidden).toBe(true);
});

test("the map is walked by keyboard: rows are the focus, pages the layers, plus zooms", async () => {
  const { host, root } = await start("review", { view: "map" });
  const scroller = root.querySelector(".mix-view-map .mix-scroll") as HTMLElement;
  press(scroller, "ArrowDown");
  expect(host.get("focus")).toBe(1);
  press(scroller, "PageDown");
  expect(host.get("layer")).toBe(2);
  press(scroller, "ArrowRight");
  expect(root.querySelector(".mix-tip")?.textContent).toMatch(/takes from/);
  const inner = scroller.querySelector(".mix-scroll-inner") as HTMLElement;
  const before = Number.parseFloat(inner.style.width);
  press(scroller, "+");
  expect(Number.parseFloat(inner.style.width)).toBeGreaterThan(before);
  press(scroller, "0");
  expect(Number.parseFloat(inner.style.width)).toBeCloseTo(before);
});

test("an edited text is sent with Enter or Run; Escape takes it back", async () => {
  const { host, find } = await start();
  const input = find<HTMLTextAreaElement>("text-input");
  input.value = "something else";
  input.dispatchEvent(new Event("input", { bubbles: true }));
  press(input, "Escape");
  expect(input.value).toBe(host.get("text"));
  input.value = "something else";
  input.dispatchEvent(new Event("input", { bubbles: true }));
  press(input, "Enter");
  expect(host.get("text")).toBe("something else");
});

test("work in progress: bar, time left, cancel", async () => {
  const { host, find } = await start();
  expect(find("progress").hidden).toBe(true);
  host.set({
    status: { state: "computing", message: "ALTI: layer 2 of 4", hint: "" },
    runs: {
      alti: {
        run: "run-alti",
        state: "computing",
        progress: 0.5,
        seconds_left: 3,
        message: "",
        done_layers: [0, 1],
      },
    },
  });
  await settle();
  expect(find("progress").hidden).toBe(false);
  find("cancel").click();
  expect(host.sent.at(-1)).toMatchObject({ kind: "cancel", v: 1 });
  expect(find("caption").textContent).toContain("at layer 1");
});

test("an error is said in words with what to do, and the rest stays usable", async () => {
  const { host, root, find, all } = await start();
  host.set({ status: { state: "error", message: "The text is too long.", hint: "Shorten it." } });
  await settle();
  expect(root.dataset.state).toBe("error");
  expect(root.querySelector(".mix-status")?.textContent).toContain("Shorten it.");
  (all("token")[2] as HTMLElement).click();
  expect(host.get("focus")).toBe(2);
  host.deliver({ kind: "error", id: "", v: 1, message: "The text is empty.", hint: "" });
  expect(find("refusal").hidden).toBe(false);
});

test("compare states the rank correlation and shows the difference", async () => {
  const { root, find } = await start("review", { view: "compare", compared: ["globenc"] });
  expect(find("agreement").textContent).toMatch(/Spearman's rank correlation is −?\d/);
  expect(root.querySelectorAll(".mix-difference .mix-token").length).toBeGreaterThan(10);
});

test("a click on a head shows it", async () => {
  const { host, root } = await start("review", { view: "heads" });
  const cell = root.querySelector('.mix-head-grid [data-layer="1"][data-head="2"]') as HTMLElement;
  cell.click();
  expect([host.get("layer"), host.get("head")]).toEqual([1, 2]);
  await settle();
  expect(root.querySelector(".mix-head-words")?.textContent).toContain("Layer 1, head 2");
});

test("the card has formula, paper and cost", async () => {
  const { root } = await start();
  (root.querySelector(".mix-about button") as HTMLElement).click();
  const card = root.querySelector(".mix-card") as HTMLElement;
  expect(card.hidden).toBe(false);
  expect(card.querySelector("math")).not.toBeNull();
  expect(card.textContent).toMatch(/Ignores.*Cost.*passes of the model.*Paper/);
  expect(card.querySelector("a")?.getAttribute("rel")).toContain("noopener");
});

test("options with fixed values can be set in the card", async () => {
  const { host, root } = await start();
  const choose = (value: string) => {
    (root.querySelector(".mix-about button") as HTMLElement).click();
    const select = root.querySelector('[data-option="p"]') as HTMLSelectElement;
    select.value = value;
    select.dispatchEvent(new Event("change", { bubbles: true }));
  };
  choose("2");
  expect(host.get("params")).toEqual({ alti: { p: 2 } });
  await settle();
  choose("1");
  expect(host.get("params")).toEqual({ alti: {} });
});

test("the end removes everything", async () => {
  const { host, life, root } = await start();
  life.abort();
  expect(root.isConnected).toBe(false);
  host.set({ layer: 0 });
  await settle();
});
