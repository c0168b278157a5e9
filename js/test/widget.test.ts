import { expect, test } from "vitest";
import { mounted, press, settle } from "./helpers";

test("the stable handles are there", async () => {
  const { root, all } = await mounted();
  expect(root.dataset.state).toBe("ready");
  expect(all("view-tab").map((tab) => tab.dataset.view)).toEqual([
    "text",
    "graph",
    "layers",
    "map",
    "multiples",
    "compare",
    "faithfulness",
    "heads",
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
    "claim",
    "verdict",
    "method-picker",
  ];
  for (const part of one) expect(all(part), part).toHaveLength(1);
  expect(all("method-toggle").every((toggle) => toggle.dataset.method)).toBe(true);
  expect(all("token").map((token) => token.dataset.index)).toEqual(
    all("token").map((_, i) => String(i)),
  );
});

test("tokens carry score, colour and rank; a click holds one and asks for nothing", async () => {
  const { host, find, all } = await mounted();
  await settle(300); // the verdict is asked for by itself
  const strongest = [...all("token")].sort(
    (a, b) => Number(b.dataset.score) - Number(a.dataset.score),
  );
  const token = strongest.find((one) => one.style.backgroundColor) as HTMLElement;
  expect(Number(token.dataset.score)).toBeGreaterThan(0);
  expect(token.style.backgroundColor).toMatch(/^rgb/);
  expect(token.getAttribute("aria-label")).toMatch(/rank \d+ of \d+/);
  const sent = host.sent.length;
  const claim = find("claim").textContent;
  token.click();
  await settle();
  expect(host.get("focus")).toBe(0);
  expect(host.sent.length).toBe(sent);
  expect(token.getAttribute("aria-selected")).toBe("true");
  expect(token.classList.contains("mix-on")).toBe(true);
  expect(find("card").textContent).toContain(`“${token.textContent}”`);
  expect(find("claim").textContent).toBe(claim);
  // What went into it is one step further; the way back is beside it.
  find("into").click();
  await settle();
  expect(host.get("focus")).toBe(Number(token.dataset.index));
  expect(find("claim").textContent).not.toBe(claim);
  find("back").click();
  await settle();
  expect([host.get("focus"), find("claim").textContent]).toEqual([0, claim]);
});

test("special tokens and the place of the answer are beside the scale", async () => {
  const { all } = await mounted();
  const special = all("token").filter((token) => token.classList.contains("mix-special"));
  expect(special.map((token) => token.textContent?.split(" ")[0])).toEqual(["[CLS]", "[SEP]"]);
  expect(special.every((token) => token.style.backgroundColor === "")).toBe(true);
});

test("scores shown are the focus row of the rollout", async () => {
  const { host, store, all } = await mounted("review", { focus: 2 });
  const map = store.get({ run: host.get("runs").alti?.run ?? "", what: "rollout", layer: 3 });
  const n = host.get("tokens").length;
  const wanted = [...(map?.values.subarray(2 * n, 3 * n) ?? [])];
  expect(all("token").map((token) => Number(token.dataset.score))).toEqual(
    wanted.map((v) => Number(v.toPrecision(4))),
  );
});

test("markup in tokens, labels and messages is shown as text", async () => {
  const evil = "<img src=x onerror=alert(1)>";
  const { host, root, all, find } = await mounted("hostile");
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
  const { host, find } = await mounted();
  const slider = find<HTMLInputElement>("layer-slider");
  expect([slider.type, slider.min, slider.max, slider.value]).toEqual(["range", "0", "3", "3"]);
  slider.value = "1";
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  expect(host.get("layer")).toBe(1);
  host.set({ layer: 2, aggregate: "sum" });
  await settle();
  expect(slider.value).toBe("2");
  expect(find<HTMLSelectElement>("aggregate").value).toBe("sum");
  await expect.poll(() => find("claim").textContent).toContain("Added up over layers 0 to 2");
});

test("the claim says what is shown", async () => {
  const { host, find } = await mounted("review", { layer: 2 });
  await expect
    .poll(() => find("claim").textContent)
    .toMatch(/^\S+ makes up \d+ % of \[CLS\] up to layer 2, /);
  host.set({ layer: 3 });
  await settle();
  await expect
    .poll(() => find("claim").textContent)
    .toMatch(/makes up \d+ % of what the answer is read from/);
  host.set({ aggregate: "layer" });
  await settle();
  await expect.poll(() => find("claim").textContent).toMatch(/^In layer 3 alone, /);
  host.set({ method: "blank_out" });
  await settle();
  await expect
    .poll(() => find("claim").textContent)
    .toMatch(/^Without \S+, positive (falls|rises) by \d+ points?/);
});

test("words and hidden special tokens are stated", async () => {
  const { root, all } = await mounted("review", { unit: "words", special: false });
  const notes = root.querySelector('[data-part="notes"]')?.textContent ?? "";
  expect(notes).toMatch(/what they give is added/);
  expect(notes).toMatch(/Special tokens are hidden/);
  expect(all("token").some((token) => token.textContent === "actors")).toBe(true);
  expect(all("token").some((token) => token.textContent === "[SEP]")).toBe(false);
});

test("a pair is two blocks", async () => {
  const { root } = await mounted("pair");
  const names = [...root.querySelectorAll(".mix-block-name")].map((name) => name.textContent);
  expect(names).toEqual(["Text", "Second text"]);
});

test("where a method has no maps, those of another are drawn and named", async () => {
  const { host, root, find } = await mounted("review", { method: "blank_out", view: "map" });
  const notice = () => root.querySelector(".mix-view-map .mix-notice") as HTMLElement;
  await settle(300);
  await expect
    .poll(() => notice().textContent)
    .toBe("The map is that of ALTI: Blank-out has none.");
  host.set({ view: "graph" });
  await settle();
  expect(find("graph-words").textContent).toContain("The ways are those of ALTI");
  await expect.poll(() => find("claim").textContent).toMatch(/^Without/);
  const { alti: _alti, globenc: _globenc, ...runs } = host.get("runs");
  const bare = Object.fromEntries(Object.entries(runs).filter(([id]) => id === "blank_out"));
  host.set({ runs: bare, view: "map" });
  await settle();
  await expect
    .poll(() => notice().textContent)
    .toMatch(/^Blank-out scores tokens; it does not say/);
  (notice().querySelector("button") as HTMLElement).click();
  expect(host.get("compared")).toContain("alti");
  host.set({ method: "attcat", view: "layers" });
  await settle();
  expect((root.querySelector(".mix-view-layers .mix-heatmap") as HTMLElement).hidden).toBe(true);
});

test("every canvas has a role, a label and a table behind it", async () => {
  const { host, root } = await mounted();
  for (const view of ["layers", "map", "graph", "heads", "multiples"] as const) {
    host.set({ view });
    await settle(700);
    const panel = root.querySelector(`.mix-view-${view}`) as HTMLElement;
    const canvases = [...panel.querySelectorAll("canvas:not([aria-hidden])")];
    expect(canvases.length, view).toBeGreaterThan(0);
    for (const canvas of canvases) {
      expect(canvas.getAttribute("role")).toBe("img");
      expect(canvas.getAttribute("aria-label")?.length, view).toBeGreaterThan(5);
    }
    await expect
      .poll(() => panel.querySelector("table")?.textContent?.length ?? 0, { timeout: 3000 })
      .toBeGreaterThan(20);
  }
});

test("tabs and tokens are one stop each; arrows move between them", async () => {
  const { host, root, all } = await mounted();
  for (const part of ["view-tab", "token"]) {
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
  await settle();
  expect(next.getAttribute("aria-selected")).toBe("true");
  press(next, "ArrowDown");
  expect(host.get("layer")).toBe(2);
  expect(root.contains(document.activeElement)).toBe(true);
});

test("the graph is walked and traced by keyboard", async () => {
  const { host, root, find } = await mounted("review", { view: "graph" });
  const stage = root.querySelector(".mix-graph") as HTMLElement;
  const label = () => stage.querySelector("canvas")?.getAttribute("aria-label");
  expect(label()).toMatch(/Where “positive” comes from, layer by layer, by ALTI/);
  expect(stage.dataset.token).toBe("0");
  press(stage, "ArrowRight");
  press(stage, "ArrowDown");
  expect([host.get("focus"), host.get("layer")]).toEqual([0, 2]);
  await settle();
  press(stage, "Enter");
  await settle();
  expect(find("trace-clear").hidden).toBe(false);
  expect(label()).toMatch(/Where “the” at layer 2 comes from/);
  expect([stage.dataset.token, stage.dataset.level]).toEqual(["1", "3"]);
  press(stage, "Escape");
  await settle();
  expect(find("trace-clear").hidden).toBe(true);
  expect(label()).toMatch(/Where “positive”/);
});

test("the map is walked by keyboard: rows are words, pages the layers, plus zooms", async () => {
  const { host, root } = await mounted("review", { view: "map" });
  const scroller = root.querySelector(".mix-view-map .mix-scroll") as HTMLElement;
  press(scroller, "ArrowDown");
  await settle();
  const held = root.querySelector('[data-part="token"].mix-on') as HTMLElement;
  expect(held.dataset.index).toBe("1");
  expect(host.get("focus")).toBe(0);
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

test("keys of the whole widget: views, layers, present, help, edit", async () => {
  const { host, root, find } = await mounted("review", { view: "text" });
  press(root, "2");
  expect(host.get("view")).toBe("graph");
  press(root, "PageDown");
  expect(host.get("layer")).toBe(2);
  press(root, "p");
  expect(root.hasAttribute("data-present")).toBe(true);
  press(root, "Escape");
  expect(root.hasAttribute("data-present")).toBe(false);
  press(root, "?");
  expect(root.querySelector<HTMLElement>(".mix-help")?.hidden).toBe(false);
  press(root, "Escape");
  expect(root.querySelector<HTMLElement>(".mix-help")?.hidden).toBe(true);
  press(root, "/");
  expect(root.querySelector<HTMLElement>(".mix-picker")?.hidden).toBe(false);
  press(root.querySelector(".mix-picker input") as Element, "Escape");
  press(root, "e");
  const input = find<HTMLTextAreaElement>("text-input");
  expect(document.activeElement).toBe(input);
  // What is typed is no command.
  press(input, "2");
  press(input, "p");
  expect([host.get("view"), root.hasAttribute("data-present")]).toEqual(["graph", false]);
});

test("an edited text is sent with Enter or Run; Escape takes it back", async () => {
  const { host, find } = await mounted();
  expect(find("text-input").closest("form")?.hidden).toBe(true);
  find("edit").click();
  const input = find<HTMLTextAreaElement>("text-input");
  expect(input.closest("form")?.hidden).toBe(false);
  input.value = "something else";
  input.dispatchEvent(new Event("input", { bubbles: true }));
  press(input, "Escape");
  expect(input.value).toBe(host.get("text"));
  find("edit").click();
  input.value = "something else";
  input.dispatchEvent(new Event("input", { bubbles: true }));
  press(input, "Enter");
  expect(host.get("text")).toBe("something else");
});

test("work in progress: bar, time left, cancel", async () => {
  const { host, find } = await mounted();
  expect(find("progress").parentElement?.hidden).toBe(true);
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
  expect(find("progress").parentElement?.hidden).toBe(false);
  find("cancel").click();
  expect(host.sent.at(-1)).toMatchObject({ kind: "cancel", v: 1 });
  await settle(400); // what is pushed is given a moment before it is asked for
  await expect.poll(() => find("claim").textContent).toContain("up to layer 1");
});

test("an error is said in words with what to do, and the rest stays usable", async () => {
  const { host, root, find, all } = await mounted();
  host.set({ status: { state: "error", message: "The text is too long.", hint: "Shorten it." } });
  await settle();
  expect(root.dataset.state).toBe("error");
  expect(root.querySelector(".mix-foot")?.textContent).toContain("Shorten it.");
  find("edit-cancel").click();
  host.set({ runs: { alti: { ...host.get("runs").alti, state: "error" } } as never });
  await settle();
  expect(all("token").length).toBeGreaterThan(5);
  host.deliver({ kind: "error", id: "", v: 1, message: "The text is empty.", hint: "" });
  expect(find("refusal").hidden).toBe(false);
});

test("compare states the rank correlation and shows the difference", async () => {
  const { root, find } = await mounted("review", { view: "compare", compared: ["globenc"] });
  (root.querySelector('[data-mode="difference"]') as HTMLElement).click();
  await settle();
  expect(find("agreement").textContent).toMatch(/Spearman's rank correlation is −?\d/);
  expect(root.querySelectorAll(".mix-difference .mix-token").length).toBeGreaterThan(10);
});

test("a click on a head shows it", async () => {
  const { host, root } = await mounted("review", { view: "heads" });
  const cell = root.querySelector('.mix-head-grid [data-layer="1"][data-head="2"]') as HTMLElement;
  cell.click();
  expect([host.get("layer"), host.get("head")]).toEqual([1, 2]);
  await settle();
  expect(root.querySelector(".mix-head-words")?.textContent).toContain("Layer 1, head 2");
});

test("the end removes everything", async () => {
  const { host, life, root } = await mounted();
  life.abort();
  expect(root.isConnected).toBe(false);
  host.set({ layer: 0 });
  await settle();
});

test("where one token takes all, the method says so, offers better ones, and can be stretched", async () => {
  const { host, store, find, all, root } = await mounted();
  const n = host.get("tokens").length;
  const map = Float32Array.from({ length: n * n }, (_, i) =>
    i % n === 0 ? 0.999 : 0.001 / (n - 1),
  );
  store.put({ run: "run-alti", what: "rollout", layer: 3 }, { shape: [n, n], values: map });
  host.set({ colours: "greys" });
  await settle();
  expect(find("claim").textContent).toMatch(
    /^This method says nothing here\. \[CLS\] itself keeps 99\.9 %/,
  );
  const coloured = () => all("token").filter((token) => token.style.backgroundColor !== "");
  expect(coloured()).toHaveLength(0);
  const offers = [...root.querySelectorAll<HTMLElement>(".mix-actions button")];
  expect(offers.map((one) => one.textContent)).toEqual([
    "Use Gradient × input",
    "Use Blank-out",
    "Stretch anyway",
  ]);
  offers[2]?.click();
  await settle();
  expect(coloured().length).toBeGreaterThan(3);
  expect(find("claim").textContent).toMatch(/^This method says nothing here/);
});
