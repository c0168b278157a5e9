import { afterEach, expect, test } from "vitest";
import { measuredParts } from "../dev/measured";
import { ticksUpTo } from "../src/kit/curves-draw";
import { memoryHost } from "../src/wire/host";
import { createMeasures } from "../src/wire/measures";
import type { Answer, FaithfulnessPart, Request } from "../src/wire/protocol";
import { createStore } from "../src/wire/store";
import { type Mounted, mounted, press, settle } from "./helpers";

const ENOUGH = 320; // until a question has settled, is asked and drawn
let open: Mounted[] = [];
const start = async (...given: Parameters<typeof mounted>) => {
  const made = await mounted(...given);
  open.push(made);
  await settle(ENOUGH);
  return made;
};
afterEach(() => {
  for (const { life } of open) life.abort();
  open = [];
});
const asked = ({ host }: Mounted) =>
  host.sent.filter((request: Request) => request.kind === "measure");

test("the verdict comes by itself, is asked for once, and stays while words are looked at", async () => {
  const made = await start();
  expect(asked(made)).toHaveLength(1);
  expect(Object.keys((asked(made)[0] as { runs: object }).runs)[0]).toBe("alti");
  const said = made.find("verdict").textContent;
  expect(said).toMatch(/^Partly confirmed\. Without “never” the answer flips/);
  expect(made.find("verdict").querySelector(".mix-dot")?.getAttribute("data-level")).toBe("partly");
  made.all("token")[3]?.click();
  await settle();
  expect(made.find("verdict").textContent).toBe(said);
  made.find("into").click();
  await settle(ENOUGH);
  expect(made.host.get("focus")).toBe(3);
  expect(asked(made)).toHaveLength(1);
  const away = made.find("verdict").textContent ?? "";
  expect(away).toContain("Without “never” the answer flips.");
  expect(away).toMatch(/The test is about positive, not about \S+\./);
  made.find("verdict").click();
  await settle();
  expect(made.host.get("view")).toBe("faithfulness");
});

test("without a head nothing is asked and no verdict is shown", async () => {
  const made = await mounted("review", {}, undefined, (host) =>
    host.set({ model_info: { ...host.get("model_info"), prediction: null } }),
  );
  open.push(made);
  await settle(ENOUGH);
  expect(made.find("verdict").hidden).toBe(true);
  expect(asked(made)).toHaveLength(0);
});

test("what would take long waits for a click", async () => {
  const made = await answering((request, say) => {
    if (request.kind !== "measure") return;
    const parts = measuredParts(request, tokensFor(request));
    if (request.whole) for (const part of parts) say({ ...part, kind: "faithfulness" });
    else {
      say({ ...parts[0], kind: "faithfulness" });
      say({ part: "budget", seconds: 21, kind: "faithfulness" });
    }
    say({ kind: "done", missing: [] });
  });
  expect(made.find("verdict").textContent).toBe("Not tested.  Test, about 21 s");
  made.find("verdict").click();
  await settle(ENOUGH);
  expect(asked(made).map((request) => (request as { whole?: boolean }).whole)).toEqual([
    undefined,
    true,
  ]);
  expect(made.find("verdict").textContent).toMatch(/^Partly confirmed/);
});

test("one curve per method, metrics in words, a verdict, agreement", async () => {
  const made = await start("review", { view: "faithfulness", compared: ["raw_attention"] });
  const { root, find } = made;
  const canvas = find("curves").querySelector("canvas[role=img]");
  expect(canvas?.getAttribute("aria-label")).toMatch(/2 curves, with the band of random/);
  expect(find("verdict").textContent).toMatch(/One measure of four is clear of chance/);
  const strips = root.querySelector(".mix-strips")?.textContent;
  expect(strips).toMatch(/Comprehensiveness 0\.400beats 19 of 20 random orders/);
  expect(strips).toMatch(/Log-odds −1\.20beats 10 of 20 random orders; less is better/);
  const rows = [...find("metrics").querySelectorAll("tbody tr")].map((r) => r.textContent);
  expect(rows[0]).toMatch(/^ALTI/);
  expect(rows[1]).toMatch(/^Raw attention/);
  expect(rows[2]).toMatch(/^random order mean, and eight in ten0\.120 0\.020 to 0\.300/);
  expect(find("metrics").querySelector("thead")?.textContent).toMatch(
    /Comprehensiveness higher is betterSufficiency lower is better/,
  );
  expect(find("agreements").textContent).toMatch(/Spearman.*−0\.31.*Jaccard.*0\.40/s);
  await settle(450);
  expect(
    root.querySelector(".mix-view-faithfulness > .mix-table:last-child table")?.textContent,
  ).toMatch(/random order, mean/);
  expect(find("measure-progress").parentElement?.hidden).toBe(true);
});

const gone = ({ root }: Mounted) =>
  [...root.querySelectorAll<HTMLElement>(".mix-gone")].map((word) => word.textContent);

test("a point says in words what is gone, and strikes it through in the sentence", async () => {
  const made = await start("review", { view: "faithfulness", compared: [] });
  const { find, root, host } = made;
  // It opens with the first words taken away.
  const output = root.querySelector(".mix-gauge output")?.textContent ?? "";
  expect(output).toMatch(/^\d+ of \d+, positive \d+ %$/);
  expect(gone(made)).toHaveLength(Number.parseInt(output, 10));
  const curves = find("curves");
  press(curves, "ArrowRight");
  press(curves, "ArrowRight");
  const tip = root.querySelector(".mix-tip")?.textContent ?? "";
  expect(tip).toMatch(/ALTI.* of \d+ tokens gone \(.*%\).*probability of “positive” 0\./);
  const words = gone(made);
  expect(words.length).toBeGreaterThan(0);
  const voice = root.querySelector("[aria-live=polite].mix-hidden")?.textContent ?? "";
  for (const word of words) expect(voice).toContain(`“${word}”`);
  press(curves, "End");
  const ordinary = host.get("tokens").filter((token) => !token.special);
  expect(gone(made)).toHaveLength(ordinary.length);
  press(curves, "Escape");
  expect(gone(made)).toEqual([]);
  const slider = find<HTMLInputElement>("removal");
  slider.value = "3";
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  const after = root.querySelector(".mix-gauge output")?.textContent ?? "";
  expect(gone(made)).toHaveLength(Number.parseInt(after, 10));
  host.set({ view: "text" });
  await settle();
  expect(gone(made)).toEqual([]);
});

test("the pointer finds the nearest point", async () => {
  const made = await start("review", { view: "faithfulness" });
  const stage = made.find("curves").firstElementChild as HTMLElement;
  stage.dispatchEvent(new MouseEvent("pointermove", { clientX: 590, clientY: 40, bubbles: true }));
  expect(gone(made).length).toBeGreaterThan(10);
  stage.dispatchEvent(new MouseEvent("pointermove", { clientX: 10, clientY: 40, bubbles: true }));
  expect(gone(made)).toHaveLength(0);
});

test("hostile tokens, targets and errors are text", async () => {
  const evil = "<img src=x onerror=alert(1)>";
  const made = await start("hostile", { view: "faithfulness", compared: ["raw_attention"] });
  const { host, find, root } = made;
  press(find("curves"), "End");
  expect(gone(made)).toContain(evil);
  host.set({ target: 1 });
  const kernel = host.sent.length;
  await settle(ENOUGH);
  const last = host.sent.slice(kernel).find((request) => request.kind === "measure");
  expect(last).toBeDefined();
  expect(root.querySelector("img, script")).toBeNull();
});

test("another target asks again, going back does not", async () => {
  const made = await start("review", { view: "faithfulness" });
  made.host.set({ target: 0 });
  await settle(ENOUGH);
  expect(asked(made)).toHaveLength(2);
  made.host.set({ target: null });
  await settle(ENOUGH);
  expect(asked(made)).toHaveLength(2);
  expect(made.find("verdict").textContent).not.toBe("");
});

/** A widget whose kernel answers `measure` as the test says. */
async function answering(reply: (request: Request, say: (content: object) => void) => void) {
  const traits = { compared: ["raw_attention"], view: "faithfulness" as const };
  const made = await mounted("review", traits, undefined, (host) => {
    const real = host.send;
    host.send = (request) => {
      if (request.kind !== "measure" && request.kind !== "cancel") return real(request);
      host.sent.push(request);
      reply(request, (content) => host.deliver({ id: request.id, v: 1, ...content }));
    };
  });
  open.push(made);
  await settle(ENOUGH);
  return made;
}

test("a refusal is shown in words, with a way to ask again", async () => {
  const made = await answering((_, say) =>
    say({ kind: "error", message: "This model has no head.", hint: "Load it with one." }),
  );
  const notice = made.root.querySelector<HTMLElement>(".mix-view-faithfulness .mix-notice");
  expect(notice?.textContent).toMatch(/no head. Load it with one./);
  expect(made.root.querySelector<HTMLElement>(".mix-test")?.hidden).toBe(true);
  expect(asked(made)).toHaveLength(1);
  notice?.querySelector("button")?.click();
  await settle(ENOUGH);
  expect(asked(made)).toHaveLength(2);
  made.host.set({ model_info: { ...made.host.get("model_info"), prediction: null } });
  await settle();
  expect(notice?.querySelector("button")).toBeNull();
  expect(notice?.textContent).toContain("no head");
});

test("a method that fails says so beside those that do not", async () => {
  const made = await answering((request, say) => {
    if (request.kind !== "measure") return;
    for (const part of measuredParts(request, tokensFor(request))) {
      const failed = part.part === "curve" && part.method === "raw_attention";
      const { method } = part as { method: string };
      const given = failed ? { part: "curve", method, error: "<b>it</b> broke" } : part;
      say({ ...given, kind: "faithfulness" });
    }
    say({ kind: "done", missing: [] });
  });
  expect(made.find("metrics").textContent).toMatch(/Raw attentionnot measured: <b>it<\/b> broke/);
  expect(made.find("curves").querySelector("canvas")?.getAttribute("aria-label")).toMatch(
    /1 curve,/,
  );
});
const tokensFor = (_: Request) =>
  Array.from({ length: 8 }, (_, index) => ({
    piece: `t${index}`,
    text: `t${index}`,
    index,
    special: false,
    word: index,
    segment: 0,
  }));

test("progress while it goes on, and a button that stops it", async () => {
  let say: (content: object) => void = () => {};
  const made = await answering((request, answer) => {
    if (request.kind === "measure") {
      say = answer;
      for (const part of measuredParts(request, tokensFor(request)).slice(0, 2)) {
        answer({ ...part, kind: "faithfulness" });
      }
    } else {
      say({ kind: "error", message: "Measuring was stopped.", hint: "" });
      answer({ kind: "done", missing: [] });
    }
  });
  const bar = made.find<HTMLProgressElement>("measure-progress");
  expect(bar.parentElement?.hidden).toBe(false);
  expect(bar.value).toBeCloseTo(1 / 22);
  made.find("measure-cancel").click();
  const sent = made.host.sent;
  const measure = asked(made)[0] as Request;
  expect(sent[sent.length - 1]).toMatchObject({ kind: "cancel", request: measure.id });
  await settle();
  expect(bar.parentElement?.hidden).toBe(true);
  expect(made.root.querySelector(".mix-view-faithfulness .mix-notice")?.textContent).toMatch(
    /was stopped/,
  );
  await settle(ENOUGH);
  expect(asked(made)).toHaveLength(1);
});

test("overtaken before its state was there, it is asked again", async () => {
  let times = 0;
  const made = await answering((request, say) => {
    if (request.kind !== "measure") return;
    if (times++ === 0) return say({ kind: "cancelled" });
    for (const part of measuredParts(request, tokensFor(request))) {
      say({ ...part, kind: "faithfulness" });
    }
    say({ kind: "done", missing: [] });
  });
  await settle(500);
  expect(times).toBe(2);
  expect(made.find("verdict").textContent).not.toBe("");
});

test("questions that nobody looks at any more are not repeated", async () => {
  const sent: string[] = [];
  let end: (answer: Answer) => void = () => {};
  const life = new AbortController();
  const measure = createMeasures(
    (make, final) => {
      sent.push(make("1").id);
      end = final;
      return "1";
    },
    () => {},
    life.signal,
    true,
  );
  const question = { runs: { alti: "alti-1" }, target: null, focus: 0 };
  measure(question, "");
  await settle(150);
  measure(question, "");
  expect(sent).toHaveLength(1);
  end({ kind: "cancelled", id: "1" });
  await settle(400);
  expect(sent).toHaveLength(1);
  life.abort();
});

test("parts of requests that were not made here are left alone", () => {
  const host = memoryHost({}, () => {});
  const life = new AbortController();
  const store = createStore(host, life.signal);
  const part: FaithfulnessPart = { part: "verdict", text: "x", methods: {} };
  host.deliver({ kind: "faithfulness", id: "other", v: 1, ...part });
  expect(store.bytes).toBe(0);
  life.abort();
});

test("axes have round numbers", () => {
  expect(ticksUpTo(0.93)).toEqual([0, 0.25, 0.5, 0.75, 1]);
  expect(ticksUpTo(0.031)).toEqual([0, 0.01, 0.02, 0.03, 0.04]);
  expect(ticksUpTo(1)).toEqual([0, 0.25, 0.5, 0.75, 1]);
});
