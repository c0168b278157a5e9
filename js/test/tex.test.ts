import { expect, test } from "vitest";
import { partsOf, toMath, toText } from "../src/kit/tex";

/** The tree in short: tag(children) or tag:text. */
function outline(node: Element): string {
  const inner = [...node.children];
  return inner.length > 0
    ? `${node.localName}(${inner.map(outline).join(" ")})`
    : `${node.localName}:${node.textContent}`;
}
const short = (source: string) => outline(toMath(source)).replace(/^math\((.*)\)$/, "$1");

test("fractions, with and without braces", () => {
  expect(short(String.raw`\frac{1}{H}`)).toBe("mfrac(mn:1 mi:H)");
  expect(short(String.raw`\tfrac12 W`)).toBe("mrow(mfrac(mn:1 mn:2) mi:W)");
});

test("sub- and superscripts together, in either order", () => {
  expect(short("A^h_{ij}")).toBe("msubsup(mi:A mrow(mi:i mi:j) mi:h)");
  expect(short("x_i^2")).toBe("msubsup(mi:x mi:i mn:2)");
});

test("sums take their limits below and above", () => {
  expect(short(String.raw`\sum_h x`)).toBe("mrow(munder(mo:∑ mi:h) mi:x)");
  expect(short(String.raw`\sum_{i=1}^n`)).toContain("munderover");
});

test("norms, roots, Greek, functions, words", () => {
  expect(toText(String.raw`\| z_{ij} \|`)).toBe("‖z_(ij)‖");
  expect(toText(String.raw`\sqrt{\mathrm{var}(q_i) + \epsilon}`)).toBe("√(var(q_i) + ϵ)");
  expect(toText(String.raw`\max(0, a - b)`)).toBe("max(0,a − b)");
  expect(toText(String.raw`\text{a word}`)).toBe("a word");
});

test("a text keeps the blanks at its ends, which MathML would drop", () => {
  const math = toMath(String.raw`\text{the layer with } v_j`);
  expect(math.querySelector("mtext")?.textContent).toBe("the layer with\u00a0");
  expect(toText(String.raw`\text{the layer with } v_j`)).toBe("the layer with v_j");
});

test("brackets are high where it is asked for", () => {
  const heights = (source: string) =>
    [...toMath(source).querySelectorAll("mo")].map((sign) =>
      ["stretchy", "maxsize"]
        .map((name) => sign.getAttribute(name))
        .join(" ")
        .trim(),
    );
  expect(heights("(a)")).toEqual(["false", "false"]);
  expect(heights(String.raw`\big(a\big)`)).toEqual(["false", "false"]);
  expect(heights(String.raw`\Bigl(a\Bigr)`)).toEqual(["true 1.8em", "true 1.8em"]);
  expect(heights(String.raw`\left\lVert a \right\rVert`)).toEqual(["true", "true"]);
  // Only as high as what they enclose, and what follows belongs to all of it.
  expect(short(String.raw`\frac12 \left( a \right)^2`)).toBe(
    "mrow(mfrac(mn:1 mn:2) msup(mrow(mo:( mi:a mo:)) mn:2))",
  );
  expect(short(String.raw`\left. a \right|_0`)).toBe("msub(mrow(mi:a mo:|) mn:0)");
});

test("the formulas of the first methods", () => {
  expect(toText(String.raw`M_{ij} = \frac{1}{H} \sum_h A^h_{ij}`)).toBe("M_(ij) = 1/H∑_hA_(ij)^h");
  expect(toText(String.raw`M = \tfrac12 W + \tfrac12 I, \quad R^l = M^l R^{l-1}`)).toBe(
    "M = 1/2W + 1/2I, R^l = M^lR^(l − 1)",
  );
});

test.each([
  "",
  "{",
  "}",
  "^",
  "_",
  "\\",
  "\\unknown{x}",
  "a}b",
  "x^",
  "\\frac",
  "\\left(",
  "\\right)",
  "\\left",
  "{\\left(}",
  "\\big",
  "<img onerror=1>",
])("odd input %j gives a tree and loses nothing it could show", (source) => {
  const math = toMath(source);
  expect(math.localName).toBe("math");
  expect(math.querySelector("img")).toBeNull();
});

test("what follows a stray brace is kept", () => {
  expect(toText("a}b")).toBe("ab");
  expect(toText(String.raw`\unknown{x}`)).toBe("unknownx");
});

test("parts set apart by wide spaces are lines of their own", () => {
  expect(partsOf(String.raw`M = W, \quad R^l = M^l \text{ and } x`)).toEqual([
    "M = W",
    String.raw`R^l = M^l \text{ and } x`,
  ]);
  expect(partsOf("x")).toEqual(["x"]);
});
