import { afterEach, expect, test } from "vitest";
import { type Mounted, mounted, settle } from "./helpers";

let open: Mounted[] = [];
const start = async (...given: Parameters<typeof mounted>) => {
  const made = await mounted(...given);
  open.push(made);
  const panel = made.root.querySelector(".mix-picker") as HTMLElement;
  const card = made.root.querySelector(".mix-card") as HTMLElement;
  const toggle = (id: string) =>
    panel.querySelector<HTMLElement>(`[data-method="${id}"]`) as HTMLElement;
  return { ...made, panel, card, toggle };
};
afterEach(() => {
  for (const { life } of open) life.abort();
  open = [];
});

const press = (target: Element, key: string, shiftKey = false) =>
  target.dispatchEvent(
    new KeyboardEvent("keydown", { key, shiftKey, bubbles: true, cancelable: true }),
  );

test("every method is in the picker, which is closed until it is asked for", async () => {
  const { host, panel, find, all } = await start();
  expect(panel.hidden).toBe(true);
  const ids = host.get("catalogue").map(({ id }) => id);
  expect(
    all("method-toggle")
      .map((one) => one.dataset.method)
      .sort(),
  ).toEqual([...ids].sort());
  find("method-picker").click();
  expect(panel.hidden).toBe(false);
  expect(document.activeElement).toBe(panel.querySelector("input"));
  press(document.activeElement as Element, "Escape");
  expect(panel.hidden).toBe(true);
});

test("a click puts a method in front; with shift, or from the other chip, it is compared", async () => {
  const { host, find, panel, toggle } = await start("review", { compared: [] });
  find("method-picker").click();
  toggle("globenc").click();
  await settle();
  expect([host.get("method"), panel.hidden]).toEqual(["globenc", true]);
  find("compare-add").click();
  toggle("attcat").click();
  expect([host.get("method"), host.get("compared"), panel.hidden]).toEqual([
    "globenc",
    ["attcat"],
    true,
  ]);
  await settle();
  find("method-picker").click();
  toggle("gae").dispatchEvent(new MouseEvent("click", { bubbles: true, shiftKey: true }));
  expect(host.get("compared")).toEqual(["attcat", "gae"]);
});

test("chips: one a method, with a way to remove it or to put it in front", async () => {
  const { host, root } = await start("review", { compared: ["globenc", "attcat"] });
  const chips = () => [...root.querySelectorAll<HTMLElement>("[data-chip]")];
  expect(chips().map((chip) => chip.dataset.chip)).toEqual(["globenc", "attcat"]);
  chips()[1]?.querySelector<HTMLElement>('[data-part="compare-remove"]')?.click();
  await settle();
  expect(host.get("compared")).toEqual(["globenc"]);
  chips()[0]?.querySelector("button")?.click();
  await settle();
  expect([host.get("method"), host.get("compared")]).toEqual(["globenc", ["alti"]]);
});

test("what is not available is absent, and why is told", async () => {
  const { host, panel, find, toggle } = await start();
  find("method-picker").click();
  expect(toggle("integrated_gradients").hidden).toBe(true);
  toggle("integrated_gradients").click();
  expect(host.get("method")).toBe("alti");
  expect(panel.querySelector(".mix-off")?.textContent).toContain(
    "Integrated gradients captum is not installed.",
  );
});

test("it finds by name, by paper and by property", async () => {
  const { panel, find } = await start();
  find("method-picker").click();
  const shown = (words: string) => {
    const search = panel.querySelector("input") as HTMLInputElement;
    search.value = words;
    search.dispatchEvent(new Event("input", { bubbles: true }));
    return [...panel.querySelectorAll<HTMLElement>(".mix-method:not([hidden])")].map(
      (one) => one.dataset.method,
    );
  };
  expect(shown("globenc")).toEqual(["globenc"]);
  expect(shown("signed for")).toEqual(["blank_out", "logit", "attcat"]);
  expect(shown("per class maps")).toEqual(["gae", "mask_lrp"]);
  expect(shown("")).not.toContain("integrated_gradients");
  expect(shown("no such thing")).toEqual([]);
});

test("the list is one stop of Tab; arrows recolour the text, Escape takes it back", async () => {
  const { host, panel, find, toggle } = await start("review", { compared: [] });
  find("method-picker").click();
  const stops = [...panel.querySelectorAll<HTMLElement>(".mix-method:not([hidden])")];
  expect(stops.filter((stop) => stop.tabIndex === 0)).toEqual([toggle("alti")]);
  press(panel.querySelector("input") as Element, "ArrowDown");
  expect(document.activeElement).toBe(toggle("alti"));
  press(toggle("alti"), "ArrowRight");
  expect(document.activeElement).toBe(toggle("gradient_x_input"));
  await settle(260);
  expect(host.get("method")).toBe("gradient_x_input");
  press(toggle("gradient_x_input"), "End");
  expect(document.activeElement).toBe(toggle("random"));
  press(toggle("random"), "Enter", true);
  expect(host.get("compared")).toEqual(["random"]);
  find("method-picker").click();
  press(panel.querySelector("input") as Element, "ArrowDown");
  press(document.activeElement as Element, "Home");
  await settle(260);
  expect(host.get("method")).toBe("alti");
  press(document.activeElement as Element, "Escape");
  expect(host.get("method")).toBe("gradient_x_input");
});

test("? and a button show formula, paper and cost", async () => {
  const { card, find, toggle } = await start();
  find("method-picker").click();
  expect(card.hidden).toBe(true);
  find("about").click();
  expect(card.hidden).toBe(false);
  expect(card.querySelector("h4")?.textContent).toBe("ALTI");
  expect(card.querySelector("math")).not.toBeNull();
  expect(card.textContent).toMatch(/Ignores.*Cost.*passes of the model.*Paper/);
  expect(card.querySelector("a")?.getAttribute("rel")).toContain("noopener");
  toggle("globenc").focus();
  press(toggle("globenc"), "?");
  expect(card.querySelector("h4")?.textContent).toBe("GlobEnc");
  // Of a method of one's own whose formula could not be read: as it is written.
  expect(card.querySelector("math")).toBeNull();
  expect(card.querySelector(".mix-formula")?.textContent).toContain("\\gamma_2");
});

test("options with fixed values can be set in the card, and stand on the chip", async () => {
  const { host, root, find } = await start();
  const choose = (value: string) => {
    find("method-picker").click();
    find("about").click();
    const select = root.querySelector('[data-option="p"]') as HTMLSelectElement;
    select.value = value;
    select.dispatchEvent(new Event("change", { bubbles: true }));
    press(select, "Escape");
  };
  choose("2");
  expect(host.get("params")).toEqual({ alti: { p: 2 } });
  await settle();
  expect(find("method-picker").textContent).toBe("ALTIp 2");
  choose("1");
  expect(host.get("params")).toEqual({ alti: {} });
});
