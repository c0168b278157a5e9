import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const SOURCE = join(dirname(fileURLToPath(import.meta.url)), "..", "src");
/** Low to high: a file imports from its own folder and from lower ones, for types too. */
const ROOMS: Record<string, number> = { wire: 0, state: 1, kit: 2, bars: 3, views: 3, "": 4 };
/** Files that import too many: the list may only shrink. */
const TOO_MANY = [
  "bars/frame.ts",
  "bars/sentence.ts",
  "views/compare-difference.ts",
  "views/compare-maps.ts",
  "views/compare.ts",
  "views/faithfulness.ts",
  "views/heads.ts",
];
const IMPORT = /(?:from|import)\s*\(?\s*"(\.[^"]+)"/g;

const files = readdirSync(SOURCE, { recursive: true, encoding: "utf8" })
  .map((name) => name.replaceAll("\\", "/"))
  .filter((name) => name.endsWith(".ts"));

const roomOf = (file: string) => (file.includes("/") ? (file.split("/")[0] as string) : "");

function importsOf(file: string): string[] {
  const text = readFileSync(join(SOURCE, file), "utf8");
  return [...text.matchAll(IMPORT)].map(([, name]) =>
    relative(SOURCE, join(SOURCE, dirname(file), `${name}.ts`)).replaceAll("\\", "/"),
  );
}

function allowed(from: string, to: string): boolean {
  const [own, other] = [ROOMS[roomOf(from)], ROOMS[roomOf(to)]];
  if (own === undefined || other === undefined) return false;
  return roomOf(from) === roomOf(to) || other < own;
}

describe("imports", () => {
  it("lie in rooms that are known, and lead to files that exist", () => {
    expect(files.length).toBeGreaterThan(30);
    expect(files.filter((file) => ROOMS[roomOf(file)] === undefined)).toEqual([]);
    const missing = files.flatMap((file) =>
      importsOf(file)
        .filter((other) => !files.includes(other))
        .map((other) => `${file} -> ${other}`),
    );
    expect(missing).toEqual([]);
  });

  it("lead to the same room or to a lower one", () => {
    const upward = files.flatMap((file) =>
      importsOf(file)
        .filter((other) => !allowed(file, other))
        .map((other) => `${file} -> ${other}`),
    );
    expect(upward).toEqual([]);
  });

  it("tell what leads upward or sideways", () => {
    expect(allowed("views/text.ts", "bars/header.ts")).toBe(false);
    expect(allowed("bars/header.ts", "views/text.ts")).toBe(false);
    expect(allowed("wire/store.ts", "state/state.ts")).toBe(false);
    expect(allowed("kit/dom.ts", "app.ts")).toBe(false);
    expect(allowed("views/text.ts", "views/shared.ts")).toBe(true);
    expect(allowed("app.ts", "bars/header.ts")).toBe(true);
  });

  it("are at most ten own modules a file, twelve for the app", () => {
    const many = files.filter(
      (file) => new Set(importsOf(file)).size > (file === "app.ts" ? 12 : 10),
    );
    expect(many.sort()).toEqual(TOO_MANY);
  });
});
