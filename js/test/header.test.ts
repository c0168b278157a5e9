import { expect, test } from "vitest";
import type { Traits } from "../src/wire/types";
import { type Mounted, mounted, press, settle } from "./helpers";

const type = (input: HTMLTextAreaElement, text: string) => {
  input.value = text;
  input.dispatchEvent(new Event("input", { bubbles: true }));
};
const staged = (host: Mounted["host"], stages: Record<string, "cancelled" | "error">) => {
  const runs: Traits["runs"] = { ...host.get("runs") };
  for (const [id, state] of Object.entries(stages)) {
    const run = runs[id];
    if (run) runs[id] = { ...run, state, progress: 0.5, done_layers: [0], message: "Stopped." };
  }
  return runs;
};
const reruns = ({ host }: Mounted) => host.sent.filter(({ kind }) => kind === "rerun");

const TOO_LONG = { state: "error", message: "The text is too long.", hint: "Shorten it." } as const;

test("a text that fails: its words stand by the box, nothing of the text before does", async () => {
  const { host, root, find, all } = await mounted();
  const answer = () => root.querySelector<HTMLElement>(".mix-answer") as HTMLElement;
  expect(answer().textContent).toContain("positive91 %");
  expect(find("adds-up").hidden).toBe(false);
  expect(find("text-problem").hidden).toBe(true);
  host.set({ text: "much too long", status: TOO_LONG, runs: {} });
  await settle();
  expect(answer().hidden).toBe(true);
  expect(find("adds-up").hidden).toBe(true);
  const problem = find("text-problem");
  expect([problem.hidden, problem.textContent]).toEqual([
    false,
    "The text is too long. Shorten it.",
  ]);
  // The box in which it can be mended is open, with the text in it.
  expect(find("text-input").closest("form")?.hidden).toBe(false);
  expect(find<HTMLTextAreaElement>("text-input").value).toBe("much too long");
  // Said once: the status line is what screen readers hear.
  expect(problem.getAttribute("aria-hidden")).toBe("true");
  expect(find("status").textContent).toBe("The text is too long.");
  expect(all("token")).toHaveLength(0);
});

test("a method that fails leaves the prediction: it is of this text", async () => {
  const { host, root, find } = await mounted();
  host.set({ status: TOO_LONG, runs: staged(host, { alti: "error" }) });
  await settle();
  expect(root.querySelector<HTMLElement>(".mix-answer")?.hidden).toBe(false);
  expect(find("text-problem").hidden).toBe(true);
});

test("while the model runs on a new text, the prediction of the old one is out of sight", async () => {
  const { host, root } = await mounted();
  const answer = root.querySelector<HTMLElement>(".mix-answer") as HTMLElement;
  host.set({ status: { state: "computing", message: "Running the model", hint: "" }, runs: {} });
  await settle();
  expect(answer.style.visibility).toBe("hidden");
});

test("the text is painted as soon as its tokens are known, before anything is computed", async () => {
  const { host, all, find } = await mounted();
  host.set({ status: { state: "computing", message: "Running the model", hint: "" }, runs: {} });
  await settle();
  expect(all("token").length).toBeGreaterThan(5);
  expect(all("token").every((token) => token.style.backgroundColor === "")).toBe(true);
  expect(find("progress").hidden).toBe(false);
});

test("Enter in an empty box asks for a text, until there is one", async () => {
  const { host, root, find } = await mounted();
  const before = host.get("text");
  find("edit").click();
  const input = find<HTMLTextAreaElement>("text-input");
  type(input, "  ");
  expect(find("text-problem").hidden).toBe(true);
  press(input, "Enter");
  expect(host.get("text")).toBe(before);
  expect(find("text-problem").textContent).toBe("Type a text first.");
  expect(find("text-problem").hidden).toBe(false);
  expect(root.querySelector(".mix-hidden[aria-live]")?.textContent).toBe("Type a text first.");
  type(input, "a film");
  expect(find("text-problem").hidden).toBe(true);
});

test.each(["cancelled", "error"] as const)("what was %s is offered again", async (stage) => {
  const made = await mounted();
  const { host, find } = made;
  const again = find<HTMLButtonElement>("again");
  expect(again.parentElement?.hidden).toBe(true);
  host.set({ runs: staged(host, { alti: stage, globenc: "cancelled" }) });
  await settle();
  expect(again.parentElement?.hidden).toBe(false);
  expect(again.textContent).toBe(stage === "error" ? "Try again" : "Go on");
  again.click();
  expect(reruns(made)).toMatchObject([{ method: "alti" }, { method: "globenc" }]);
  // Run in the open box does the same, while the text is as it was.
  find("edit").click();
  find("run").click();
  expect(reruns(made)).toHaveLength(4);
  // A new text is enough by itself.
  find("edit").click();
  type(find<HTMLTextAreaElement>("text-input"), "a film");
  find("run").click();
  expect(host.get("text")).toBe("a film");
  expect(reruns(made)).toHaveLength(4);
});

test("stopped work keeps what came and says how far it is", async () => {
  const { host, root } = await mounted();
  host.set({ runs: staged(host, { alti: "cancelled" }) });
  await settle();
  expect(root.querySelector(".mix-note")?.textContent).toContain(
    "Stopped after layer 0 of 3. The picture shows what was reached.",
  );
});

test("Run tries again when not even the text was got through", async () => {
  const made = await mounted();
  made.host.set({ status: { state: "ready", message: "Cancelled.", hint: "" }, runs: {} });
  await settle();
  made.find("edit").click();
  press(made.find("text-input"), "Enter");
  expect(reruns(made)).toMatchObject([{ method: "alti" }]);
});

test("a label of another direction is set apart", async () => {
  const { host, find } = await mounted();
  const info = host.get("model_info");
  host.set({
    model_info: { ...info, prediction: { label: "חיובי", index: 1, probability: 0.5 } },
  });
  await settle();
  expect(find("prediction").textContent).toBe("חיובי");
  expect(find("prediction").dir).toBe("auto");
});

test("a text that was cut says so, and how much of it", async () => {
  const { host, root } = await mounted();
  host.set({ model_info: { ...host.get("model_info"), cut: 172 } });
  await settle();
  expect(root.querySelector(".mix-facts")?.textContent).toContain("172 tokens at the end left out");
});
