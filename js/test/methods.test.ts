import { afterEach, expect, test } from "vitest";
import { type Mounted, mounted, settle } from "./helpers";

let open: Mounted[] = [];
const start = async (...given: Parameters<typeof mounted>) => {
  const made = await mounted(...given);
  open.push(made);
  const card = made.root.querySelector(".mix-card") as HTMLElement;
  const chip = (id: string) =>
    made.root.querySelector<HTMLElement>(`[data-method="${id}"]`) as HTMLElement;
  return { ...made, card, chip };
};
afterEach(() => {
  for (const { life } of open) life.abort();
  open = [];
});

const press = (target: Element, key: string, shiftKey = false) =>
  target.dispatchEvent(
    new KeyboardEvent("keydown", { key, shiftKey, bubbles: true, cancelable: true }),
  );
const point = (target: Element) =>
  target.dispatchEvent(new PointerEvent("pointerover", { bubbles: true, pointerType: "mouse" }));
const RESTED = 340;

test("the card opens when the pointer rests and closes at once on another method", async () => {
  const { root, card, chip } = await start();
  point(chip("globenc"));
  await settle(120);
  expect(card.hidden).toBe(true);
  await settle(RESTED - 120);
  expect(card.querySelector("h4")?.textContent).toBe("GlobEnc");
  expect(card.hidden).toBe(false);
  point(chip("alti"));
  expect(card.hidden).toBe(true);
  await settle(RESTED);
  expect(card.querySelector("h4")?.textContent).toBe("ALTI");
  press(root.ownerDocument.body, "Escape");
  expect(card.hidden).toBe(true);
});

test("the pointer may go into the card; the card goes when the pointer does", async () => {
  const { root, card, chip } = await start();
  point(chip("globenc"));
  await settle(RESTED);
  const families = root.querySelector(".mix-families") as HTMLElement;
  families.dispatchEvent(new PointerEvent("pointerleave"));
  card.dispatchEvent(new PointerEvent("pointerenter"));
  await settle(450);
  expect(card.hidden).toBe(false);
  card.dispatchEvent(new PointerEvent("pointerleave"));
  await settle(450);
  expect(card.hidden).toBe(true);
});

test("why a method is not available comes first, and a click shows it", async () => {
  const { host, card, chip } = await start();
  chip("integrated_gradients").click();
  expect(host.get("method")).toBe("alti");
  expect(card.children[1]?.textContent).toBe("Not available here: captum is not installed.");
  expect(card.textContent).not.toContain("puts it in front");
  chip("globenc").click();
  expect(card.hidden).toBe(true);
});

test("the card follows its opener in the order of Tab", async () => {
  const { root, card, chip } = await start();
  chip("integrated_gradients").click();
  expect(card.previousElementSibling?.className).toBe("mix-families");
  (root.querySelector(".mix-about button") as HTMLElement).click();
  expect(card.previousElementSibling?.className).toBe("mix-about");
});

test("the list is one stop of Tab in every view; keys choose and compare", async () => {
  const { host, root, chip } = await start("review", { view: "compare", compared: [] });
  const stops = [
    ...root.querySelectorAll<HTMLElement>(".mix-families button, .mix-families input"),
  ];
  expect(stops.filter((stop) => stop.tabIndex === 0)).toEqual([chip("alti")]);
  chip("alti").focus();
  press(chip("alti"), "ArrowRight");
  expect(document.activeElement).toBe(chip("value_zeroing"));
  press(chip("value_zeroing"), " ", true);
  expect([host.get("method"), host.get("compared")]).toEqual(["alti", ["value_zeroing"]]);
  press(chip("value_zeroing"), "End");
  expect(document.activeElement).toBe(chip("random"));
  press(chip("random"), "Home");
  expect(document.activeElement).toBe(chip("raw_attention"));
});

test("what is not available is not compared", async () => {
  const { host, chip } = await start("review", { compared: [] });
  press(chip("integrated_gradients"), " ", true);
  expect(host.get("compared")).toEqual([]);
});
