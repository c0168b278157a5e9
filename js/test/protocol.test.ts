import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type ArrayMessage, decode, keyOf, readAnswer } from "../src/wire/protocol";

const head = (given: Partial<ArrayMessage>): ArrayMessage => ({
  kind: "array",
  id: "",
  run: "r",
  what: "layer",
  layer: 0,
  seq: 0,
  dtype: "f4",
  shape: [2, 2],
  scale: 1,
  ...given,
});

test("floats are read at odd offsets of a larger buffer", () => {
  const bytes = new Uint8Array(1 + 16 + 3);
  const view = new DataView(bytes.buffer, 1, 16);
  [1, -2.5, 1e-8, 3].forEach((value, i) => {
    view.setFloat32(4 * i, value, true);
  });
  const { values, shape } = decode(head({}), view);
  expect(shape).toEqual([2, 2]);
  expect([...values]).toEqual([1, -2.5, Math.fround(1e-8), 3]);
});

test("half floats: normal, subnormal, signed, infinite", () => {
  const halves = Uint16Array.from([0x3c00, 0xc100, 0x0001, 0x7c00, 0x8000, 0x3555]);
  const { values } = decode(head({ dtype: "f2", shape: [6] }), halves);
  expect([...values.slice(0, 4)]).toEqual([1, -2.5, 2 ** -24, Number.POSITIVE_INFINITY]);
  expect(values[5]).toBeCloseTo(1 / 3, 3);
});

test("bytes are numbers times the scale", () => {
  const { values } = decode(
    head({ dtype: "u1", shape: [3], scale: 0.5 }),
    Uint8Array.from([0, 2, 255]),
  );
  expect([...values]).toEqual([0, 1, 127.5]);
});

test("a buffer of the wrong length is refused", () => {
  expect(() => decode(head({}), new Uint8Array(15))).toThrow(/15 bytes for 4 values/);
});

test("names of arrays hold only what matters", () => {
  expect(keyOf({ run: "r", what: "layer", layer: 2, focus: 5 })).toBe(
    keyOf({ run: "r", what: "layer", layer: 2 }),
  );
  expect(keyOf({ run: "r", what: "rows", of: "sum", focus: 1 })).not.toBe(
    keyOf({ run: "r", what: "rows", of: "sum", focus: 2 }),
  );
});

test("messages that are not ours are left alone", () => {
  expect(readAnswer("hello")).toBeNull();
  expect(readAnswer({ kind: "other" })).toBeNull();
  expect(readAnswer({ kind: "done", id: "1", v: 99 })).toBeNull();
  expect(readAnswer({ kind: "done", id: "1", v: 1, missing: [] })?.kind).toBe("done");
});

interface Fixture {
  messages: { content: ArrayMessage; buffer: string; values: number[] }[];
}

const fixture = join(import.meta.dirname, "fixtures", "wire.json");

test.runIf(existsSync(fixture))("the bytes that Python wrote are read as Python meant them", () => {
  const { messages } = JSON.parse(readFileSync(fixture, "utf8")) as Fixture;
  expect(messages.length).toBeGreaterThan(0);
  for (const { content, buffer, values } of messages) {
    expect(readAnswer(content)?.kind).toBe("array");
    const decoded = decode(content, Buffer.from(buffer, "base64"));
    expect(decoded.values.length).toBe(values.length);
    values.forEach((value, i) => {
      const error = Math.abs((decoded.values[i] as number) - value);
      expect(error).toBeLessThanOrEqual(1e-6 * Math.abs(value));
    });
  }
});
