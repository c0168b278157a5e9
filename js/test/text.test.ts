import { expect, test } from "vitest";
import type { Inks } from "../src/kit/context";
import type { HeatSpec } from "../src/kit/heatmap";
import { drawBase, measure } from "../src/kit/heatmap-draw";
import type { Token } from "../src/wire/types";
import { type Mounted, mounted, press, settle } from "./helpers";

const tip = ({ root }: Mounted) => root.querySelector(".mix-tip") as HTMLElement;
const lines = (made: Mounted) => [...tip(made).children].map((line) => line.textContent);

test.each(["pointer", "key"])(
  "by %s: the tooltip follows the row that it is shown for",
  async (by) => {
    const made = await mounted();
    const token = made.all("token")[4] as HTMLElement;
    if (by === "pointer") token.dispatchEvent(new Event("pointerover", { bubbles: true }));
    else token.focus();
    const before = lines(made);
    expect(before[0]).toBe("not");
    made.host.set({ focus: 2 });
    await settle();
    expect(tip(made).hidden).toBe(false);
    expect(lines(made)).not.toEqual(before);
    expect(lines(made).join(", ")).toBe(token.getAttribute("aria-label"));
  },
);

test("a tooltip sent away with Escape stays away", async () => {
  const made = await mounted();
  const token = made.all("token")[4] as HTMLElement;
  token.focus();
  press(token, "Escape");
  press(token, "Enter");
  await settle();
  expect(tip(made).hidden).toBe(true);
});

test("a word that occurs again is named with its position", async () => {
  const { root, all } = await mounted("review", { special: false, view: "text" });
  const names = [...root.querySelectorAll(".mix-rank-name")].map((name) => name.textContent);
  const texts = all("token").map((token) => token.textContent);
  for (const name of names) {
    const [, word, position] = /^(.*?)(?: \((\d+)\))?$/.exec(name ?? "") ?? [];
    expect(texts.filter((text) => text === word).length > 1).toBe(position !== undefined);
    if (!position) continue;
    const named = root.querySelector(`[data-part="token"][data-index="${position}"]`);
    expect(named?.textContent).toBe(word);
  }
  expect(all("token")[1]?.getAttribute("aria-label")).toMatch(/^the \(1\), /);
  expect(all("token")[2]?.getAttribute("aria-label")).toMatch(/^plot, /);
});

const tokensOf = (texts: string[], segment = 0): Token[] =>
  texts.map((text, index) => ({
    piece: text,
    text,
    index,
    special: text.startsWith("["),
    word: text.startsWith("[") ? null : index,
    segment,
  }));

test("tokens run in the direction of their text, and so do the arrow keys", async () => {
  const tokens = tokensOf(["[CLS]", "(", "סרט", "good", "[SEP]"]);
  const { root, all } = await mounted("review", { tokens });
  const row = root.querySelector(".mix-tokens") as HTMLElement;
  expect(row.dir).toBe("rtl");
  const token = all("token");
  token[1]?.focus();
  press(token[1] as HTMLElement, "ArrowLeft");
  expect(document.activeElement).toBe(token[2]);
  press(token[2] as HTMLElement, "ArrowRight");
  expect(document.activeElement).toBe(token[1]);
});

test("a text that begins with Latin letters runs from left to right", async () => {
  const tokens = tokensOf(["[CLS]", "1", "good", "סרט", "[SEP]"]);
  const { root } = await mounted("review", { tokens });
  expect((root.querySelector(".mix-tokens") as HTMLElement).dir).toBe("ltr");
});

test("the grid of heads says how far its colours go and which is the strongest", async () => {
  const { root } = await mounted("review", { view: "heads" });
  const cells = [...root.querySelectorAll<HTMLElement>(".mix-head-grid button")];
  const shares = cells.map((cell) =>
    Number.parseFloat(
      /([\d.]+) %/.exec(cell.ariaLabel ?? cell.getAttribute("aria-label") ?? "")?.[1] ?? "",
    ),
  );
  const most = Math.max(...shares);
  const top = cells[shares.indexOf(most)];
  const caption = root.querySelector(".mix-view-heads .mix-caption")?.textContent;
  expect(caption).toContain(
    `The strongest head here is head ${top?.dataset.head} of layer ${top?.dataset.layer}, with ${most} %.`,
  );
  const ends = root.querySelectorAll(".mix-heads-left .mix-legend-number");
  expect([...ends].map((end) => end.textContent)).toEqual(["0 %", `${most} %`]);
});

test("where no head does much, none looks as if it did", async () => {
  const { host, root, store } = await mounted("review", { view: "heads" });
  const [layers, heads] = [4, 3];
  const values = Float32Array.from({ length: layers * heads * 6 }, (_, i) => (i % 12) / 4000);
  store.put({ run: "", what: "head_stats" }, { shape: [layers, heads, 6], values });
  host.set({ head: 1 });
  await settle();
  const ends = root.querySelectorAll(".mix-heads-left .mix-legend-number");
  expect([...ends].map((end) => end.textContent)).toEqual(["0 %", "10 %"]);
});

test.each([1, 1.25, 1.5, 2])("at %d pixels to one, lines lie on the edges of cells", (ratio) => {
  const rows = Array.from({ length: 23 }, (_, i) => `token ${i}`);
  const spec = { rows, cols: rows, square: true, selectedRow: -1, selectedCol: -1 } as HeatSpec;
  const inks = { size: 13.3, font: "sans-serif" } as Inks;
  const before = globalThis.devicePixelRatio;
  Object.assign(globalThis, { devicePixelRatio: ratio });
  const g = measure(spec, 601, 1, inks, null);
  Object.assign(globalThis, { devicePixelRatio: before });
  const images: number[][] = [];
  const starts: number[][] = [];
  let width = 0;
  const draw = new Proxy(
    {
      drawImage: (_: unknown, ...at: number[]) => images.push(at),
      moveTo: (x: number, y: number) => starts.push([x - width / 2, y]),
      measureText: () => ({ width: 10 }),
    } as Record<string, unknown>,
    {
      get: (known, name: string) => known[name] ?? (() => undefined),
      set: (_, name, value) => {
        if (name === "lineWidth") width = value as number;
        return true;
      },
    },
  );
  const canvas = {
    width: Math.round(g.width * ratio),
    height: Math.round(g.height * ratio),
    getContext: () => draw,
  } as unknown as HTMLCanvasElement;
  const image = { width: 23, height: 23 } as HTMLCanvasElement;
  drawBase(canvas, image, spec, g, { x: 0.3, y: 0 }, inks);
  const [x = 0, , across = 0] = images[0] as number[];
  const upright = starts.slice(0, 22);
  upright.forEach(([at = 0], i) => {
    expect(at).toBeCloseTo(x + ((i + 1) * across) / 23, 6);
    expect(at * ratio).toBeCloseTo(Math.round(at * ratio), 6);
  });
});

test("where nothing could be computed, it says why", async () => {
  const status = { state: "error", message: "The text is empty.", hint: "" } as const;
  const { root } = await mounted("review", { runs: {}, status });
  expect(root.querySelector(".mix-panel")?.textContent).toContain(
    "was not computed: The text is empty.",
  );
});
