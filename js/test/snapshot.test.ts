import { afterEach, expect, test } from "vitest";
import { sceneHost } from "../dev/kernel";
import { scene } from "../dev/synthetic";
import { about, toSvg, withoutInstructions } from "../src/kit/snapshot";
import { derive } from "../src/state/state";
import { createStore } from "../src/wire/store";
import type { Traits } from "../src/wire/types";
import { type Mounted, mounted, settle } from "./helpers";

let open: Mounted[] = [];
afterEach(() => {
  for (const { life } of open) life.abort();
  open = [];
});

const stateOf = (traits: Partial<Traits>) => {
  const made = scene("review", { layers: 4, heads: 3 });
  Object.assign(made.traits, traits);
  const host = sceneHost(made);
  return derive(host, createStore(host, new AbortController().signal));
};
const line = (traits: Partial<Traits>) =>
  about(stateOf({ text: "A good film.", compared: ["globenc"], ...traits }), document.body);

test("a picture says which text, method, focus or target and layers it shows", () => {
  expect(line({ view: "text", layer: 2 })).toBe(
    "“A good film.” · ALTI · focus “[CLS]” · rollout up to layer 2",
  );
  expect(line({ view: "layers", aggregate: "layer" })).toMatch(/ALTI · .* · each layer alone$/);
  expect(line({ view: "compare", aggregate: "sum" })).toMatch(
    /ALTI, GlobEnc · .* · sum up to layer 3$/,
  );
  expect(line({ view: "text", method: "blank_out" })).toBe(
    "“A good film.” · Blank-out · target “positive”",
  );
  expect(line({ view: "text", method: "gae" })).toMatch(/focus “\[CLS\]” · target “positive” · /);
  expect(line({ view: "faithfulness" })).toBe("“A good film.” · ALTI, GlobEnc · target “positive”");
  expect(line({ view: "heads", head: 1, layer: 0 })).toBe(
    "“A good film.” · attention in layer 0, head 1",
  );
});

test("a long text is cut", () => {
  expect(line({ text: "word ".repeat(100) }).split(" · ")[0]?.length).toBe(82);
});

test("what to do on the screen is not part of a picture", () => {
  expect(withoutInstructions("As a share. Click a dot to trace it.")).toBe("As a share.");
  expect(withoutInstructions("Rows take. Click one. Tick more. Two are 0.5 apart.")).toBe(
    "Rows take. Two are 0.5 apart.",
  );
  expect(withoutInstructions("Point at a curve, to see which tokens are gone.")).toBe("");
  expect(withoutInstructions("Pointing is not asked for.")).toBe("Pointing is not asked for.");
});

/** The words of the picture of a view. */
async function pictured(traits: Partial<Traits>): Promise<string[]> {
  const made = await mounted("review", traits);
  open.push(made);
  const { root, host, store, life } = made;
  await settle(300); // until the verdict is there
  const inks = {
    text: "#000",
    muted: "#555",
    line: "#ccc",
    accent: "#b40",
    ground: "#fff",
    edge: "#15a",
    keep: "#ccc",
    font: "sans-serif",
    size: 12,
  };
  const context = { root, signal: life.signal, inks: () => inks } as Parameters<typeof toSvg>[1];
  const svg = toSvg(root, context, derive(host, store));
  return [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map((found) => found[1] ?? "");
}

test("a picture holds question, method, sentence, claim and verdict, and no control", async () => {
  const words = (await pictured({ view: "graph", compared: [] })).join(" ");
  expect(words).toMatch(/^Why positive 91 % ALTI \[CLS\]/);
  expect(words).toMatch(/Partly confirmed\. Without “never” the answer flips\./);
  expect(words).toMatch(/makes up .* of what the answer is read from/);
  expect(words).not.toMatch(/compare|Heads|up to layer|Numbers as a table|\bTest\b|Click/);
  const compare = (await pictured({ view: "compare", compared: ["globenc"] })).join(" ");
  expect(compare).toContain("GlobEnc");
  expect(compare).not.toContain("maps");
});
