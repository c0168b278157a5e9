import { expect, test } from "vitest";
import { mathOf } from "../src/kit/math";

const NS = "http://www.w3.org/1998/Math/MathML";
const math = (inner: string) => `<math xmlns="${NS}" display="block">${inner}</math>`;

test("MathML is built as it was sent", () => {
  const source = math(
    '<mrow><msub><mi>M</mi><mrow><mi>i</mi><mi>j</mi></mrow></msub><mo stretchy="false">&#x00028;</mo></mrow>',
  );
  const made = mathOf(source);
  expect(made?.namespaceURI).toBe(NS);
  expect(made?.getAttribute("display")).toBe("block");
  expect(made?.querySelector("msub mrow")?.textContent).toBe("ij");
  expect(made?.querySelector("mo")?.textContent).toBe("(");
  expect(made?.querySelector("mo")?.getAttribute("stretchy")).toBe("false");
});

test("attributes that do more than draw are left out", () => {
  const made = mathOf(math('<mi onclick="alert(1)" href="javascript:alert(1)" style="x">a</mi>'));
  expect(made?.querySelector("mi")?.attributes).toHaveLength(0);
  expect(made?.textContent).toBe("a");
});

test("words that look like markup stay words", () => {
  const made = mathOf(math("<mtext>&lt;img src=x onerror=alert(1)&gt;</mtext>"));
  expect(made?.querySelector("img")).toBeNull();
  expect(made?.textContent).toBe("<img src=x onerror=alert(1)>");
});

test.each([
  "",
  "x",
  "<mrow/>",
  math('<img src="x" onerror="alert(1)"/>'),
  math("<mrow><script>alert(1)</script></mrow>"),
  math('<mtext><div xmlns="http://www.w3.org/1999/xhtml">a</div></mtext>'),
  math("<semantics><mi>a</mi><annotation-xml><svg/></annotation-xml></semantics>"),
])("what is no formula gives none: %s", (source) => {
  expect(mathOf(source)).toBeNull();
});
