/** Chats by turns, and the answer's tokens. */

import { describe, expect, test } from "vitest";
import { scene } from "../dev/synthetic";
import { questionOf, sumsOf, turnsOf, withQuestion, written } from "../src/state/answer";
import { claimOf, inText } from "../src/state/claim";
import { readingOf } from "../src/state/reading";
import { derive } from "../src/state/state";
import type { ChatMessage, Reply, Traits } from "../src/wire/types";
import { type Mounted, mounted, press, settle } from "./helpers";

const CHAT: ChatMessage[] = [
  { role: "system", content: "be kind" },
  { role: "user", content: "<b>is it good</b>" },
];
const START = 24;

/** Which message a place belongs to; null for the template's. */
const messageAt = (index: number) =>
  index >= 4 && index < 9 ? 0 : index >= 10 && index < 21 ? 1 : index >= START ? 2 : null;

/** The invented text as a chat: of a whole answer, or of the text before one of its tokens. */
function chat(step: number | null): Partial<Traits> {
  const { tokens = [], model_info } = scene("review", { layers: 4, heads: 3 }).traits;
  const count = step === null ? tokens.length - START : tokens.length - START + 2;
  const reply: Reply = {
    state: "ready",
    offer: true,
    own: true,
    start: START,
    text: "so warm",
    problem: "",
    tokens: Array.from({ length: count }, (_, t) => ({
      text: t === 1 ? "<i>" : `w${t}`,
      piece: `w${t}`,
      word: 100 + t,
      id: 500 + t,
      probability: 1 / (t + 1),
      others: [
        { value: 700, label: "box", probability: 0.2 },
        { value: 701, label: " red", probability: 0.1 },
      ],
      needed: null,
    })),
  };
  return {
    text: CHAT,
    tokens: tokens.map((token, index) => {
      const message = messageAt(index);
      const role = message === null ? null : (["system", "user", "assistant"][message] as string);
      return { ...token, special: message === null, message, role };
    }),
    view: "answer",
    method: "alti",
    compared: [],
    answer: true,
    step,
    reply,
    focus: step === null ? tokens.length - 2 : tokens.length - 1,
    model_info: {
      ...(model_info as Traits["model_info"]),
      task: "causal_lm",
      name: "tiny",
      whole: step === null,
      answer: step === null ? tokens.length - 2 : tokens.length - 1,
      prediction: { label: `w${step ?? ""}`, index: 1, probability: 0.5 },
      targets: [{ value: 500 + (step ?? 0), label: `w${step}`, probability: 0.5 }],
    },
  };
}

const open = (step: number | null, more: Partial<Traits> = {}) =>
  mounted("review", { ...chat(step), ...more });

const replyOf = (made: Mounted) => made.all("answer-token");

describe("turns", () => {
  test("are blocks, template and system fold with their share", async () => {
    const made = await open(null);
    const rows = [...made.root.querySelectorAll<HTMLElement>(".mix-turn")];
    expect(rows.map((row) => row.dataset.turn)).toEqual(["system", "turn", "reply"]);
    const folds = made.all("turn-fold").map((fold) => fold.textContent);
    expect(folds[0]).toMatch(/^5 tokens, \d/);
    expect(folds[1]).toMatch(/^template, \d+ tokens, \d/);
    expect(made.all("token").map((token) => Number(token.dataset.index))).toEqual(
      Array.from({ length: 11 }, (_, i) => 10 + i),
    );
    made.all("turn-fold")[0]?.click();
    await settle();
    expect(made.all("token").length).toBe(16);
    made.all("turn-fold")[1]?.click();
    await settle();
    expect(made.root.querySelectorAll(".mix-turn").length).toBe(4);
  });

  test("come to the whole, and the answer's own words stand apart", async () => {
    for (const step of [null, 8]) {
      const { host, store } = await open(step);
      const state = derive(host, store);
      const reading = readingOf(state, state.method as never, state.scores("alti")?.values);
      if (!reading) throw new Error("no reading");
      const { sums, own } = sumsOf(state, reading);
      const all = sums.reduce((sum, one) => sum + one.part, 0) + (own?.part ?? 0);
      expect(all).toBeCloseTo(1, 5);
      expect(own !== null).toBe(step === null);
      expect(sums.map(({ turn }) => turn.name)).toEqual(
        step === null
          ? ["chat template", "system", "user"]
          : ["chat template", "system", "user", "reply so far"],
      );
      expect(turnsOf(state).flatMap(({ units }) => units).length).toBe(state.n);
      const own_ = state.layout.units.filter(({ index }) => index >= START);
      const aside = own_.filter((unit) => reading.aside.has(state.layout.units.indexOf(unit)));
      expect(aside.length === own_.length).toBe(step === null);
    }
  });

  test("a template that takes nearly all of it together says so", async () => {
    const { host, store } = await open(8);
    const state = derive(host, store);
    const method = state.method as NonNullable<typeof state.method>;
    const values = new Float32Array(state.n).fill(0.001);
    values[0] = 0.6;
    values[9] = 0.37;
    const reading = readingOf(state, method, values);
    expect(reading?.sink).toBe(0);
    expect(reading && inText(claimOf(state, reading))).toMatch(
      /^This method says nothing here\. What the template writes takes 98 %, most of it .* \(60 %\)\./,
    );
    values[12] = 0.1;
    expect(readingOf(state, method, values)?.sink).toBe(-1);
    const whole = await open(null);
    const other = derive(whole.host, whole.store);
    values.fill(0.0001)[START + 2] = 0.99;
    expect(readingOf(other, method, values)?.sink).toBe(-1);
  });

  test("the rows that predict a whole answer are read together", async () => {
    const { host, store } = await open(null);
    const state = derive(host, store);
    const map = state.map("alti", "rollout", 3);
    const { n } = state;
    expect(state.read).toEqual(Array.from({ length: n - START }, (_, t) => START + t - 1));
    const mean = Array.from({ length: n }, (_, j) =>
      state.read.reduce(
        (sum, i) => sum + (map?.values[i * n + j] as number) / state.read.length,
        0,
      ),
    );
    state.scores("alti")?.values.forEach((value, j) => {
      expect(value).toBeCloseTo(mean[j] as number, 5);
    });
    expect(state.targetLabel).toBe("the whole answer");
    const reading = readingOf(state, state.method as never, state.scores("alti")?.values);
    if (!reading) throw new Error("no reading");
    expect(inText(claimOf(state, reading))).toMatch(
      /of what the whole answer is read from.*is the answer’s own words, not coloured\.$/,
    );
  });
});

describe("the answer", () => {
  test("a click on one of its tokens asks about it, and all of it again", async () => {
    const made = await open(null);
    expect(replyOf(made).map((one) => one.dataset.index)).toEqual(
      Array.from({ length: replyOf(made).length }, (_, t) => String(t)),
    );
    expect(replyOf(made)[1]?.textContent).toBe("<i>");
    replyOf(made)[3]?.click();
    await settle();
    expect(made.host.get("step")).toBe(3);
    expect(replyOf(made)[3]?.getAttribute("aria-selected")).toBe("true");
    made.find("answer-whole").click();
    expect(made.host.get("step")).toBe(null);
    press(replyOf(made)[2] as HTMLElement, "Enter");
    expect(made.host.get("step")).toBe(2);
  });

  test("its alternatives are contrasts", async () => {
    const made = await open(8);
    const [first] = made.all("alternative");
    expect(first?.textContent).toBe("why not box?20 %");
    first?.click();
    await settle();
    expect(made.host.get("target")).toEqual([508, 700]);
    expect(made.all("alternative")[0]?.getAttribute("aria-pressed")).toBe("true");
    expect(made.find("prediction").textContent).toBe("w8 rather than box");
    made.find("said").click();
    expect(made.host.get("target")).toBe(null);
  });

  test("is underlined by probability, or by how much it needed the prompt", async () => {
    const made = await open(null);
    const weight = (t: number) => replyOf(made)[t]?.style.getPropertyValue("--weight");
    expect([weight(0), weight(1)]).toEqual(["1", "0.5"]);
    made.all("shade")[1]?.click();
    expect(made.host.get("shade")).toBe("dependence");
    const reply = made.host.get("reply");
    made.host.set({
      reply: { ...reply, tokens: reply.tokens.map((one) => ({ ...one, needed: 2 })) },
    });
    await settle();
    expect(weight(0)).toBe("0.5");
  });

  test("is written anew for another question, and can be stopped and gone on with", async () => {
    const made = await open(null);
    made.find("edit").click();
    await settle();
    const input = made.find<HTMLTextAreaElement>("text-input");
    expect(input.value).toBe("<b>is it good</b>");
    input.value = "is it bad";
    press(input, "Enter");
    expect(made.host.get("text")).toEqual([CHAT[0], { role: "user", content: "is it bad" }]);
    expect(made.host.get("answer")).toBe(true);
    made.host.set({
      reply: { ...made.host.get("reply"), state: "writing" },
      status: { state: "computing", message: "Writing the answer", hint: "" },
      runs: {},
    });
    await settle();
    expect(made.root.textContent).toContain("Writing, ");
    expect(made.all("generate").every((one) => one.hidden)).toBe(true);
    expect(made.find("cancel").hidden).toBe(false);
    replyOf(made)[0]?.click();
    expect(made.host.get("step")).toBe(null);
    made.host.set({ reply: { ...made.host.get("reply"), state: "full" } });
    await settle();
    made.find("generate-more").click();
    expect(made.host.get("max_new_tokens")).toBe(128);
  });

  test("a row that was hidden is shown when it becomes another", async () => {
    const given = chat(null);
    const none: Reply = { ...(given.reply as Reply), state: "", tokens: [] };
    const made = await mounted("review", { ...given, tokens: [], reply: none, text: CHAT });
    made.host.set({ tokens: given.tokens as Traits["tokens"], reply: given.reply as Reply });
    await settle();
    const rows = [...made.root.querySelectorAll<HTMLElement>(".mix-turn")];
    expect(rows.map((row) => row.hidden)).toEqual([false, false, false]);
  });

  test("is offered where a model writes, and has no tab where it reads", async () => {
    const without = await mounted("review");
    const tab = (made: Mounted) =>
      made.root.querySelector<HTMLElement>('[data-part="view-tab"][data-view="answer"]');
    expect(tab(without)).toBe(null);
    expect(without.all("answer-token")).toEqual([]);
    const none = { ...(chat(null).reply as Reply), state: "" as const, tokens: [], own: false };
    const offered = await mounted("review", { reply: none });
    expect(tab(offered)?.isConnected).toBe(true);
    tab(offered)?.click();
    await settle();
    offered.find("generate").click();
    expect(offered.host.get("answer")).toBe(true);
  });
});

test("questions of chats", () => {
  const said: ChatMessage[] = [...CHAT, { role: "assistant", content: "yes" }];
  expect(questionOf(said)).toBe("<b>is it good</b>");
  expect(withQuestion(said, "why")).toEqual([CHAT[0], { role: "user", content: "why" }]);
  expect(withQuestion("a text", "why")).toBe("why");
  expect(written(said).text).toEqual(CHAT);
});
