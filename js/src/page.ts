/** A saved page: the widget on numbers that the page itself holds (mixwidget/saving/page.py). */

import { mount } from "./app";
import { type MemoryHost, memoryHost } from "./wire/host";
import {
  type AgreementPart,
  type ArrayMessage,
  type FaithfulnessPart,
  keyOf,
  type Question,
  type Request,
  VERSION,
} from "./wire/protocol";
import { createStore } from "./wire/store";
import type { Traits } from "./wire/types";

interface Saved {
  traits: Traits;
  /** Methods whose runs hold for the saved focus token only. */
  focused: string[];
  /** What was measured of the methods, for the saved focus token. */
  faithfulness: FaithfulnessPart[];
  arrays: [ArrayMessage, number][];
  /** The bytes of all arrays, one after the other: base64 of gzip. */
  data: string;
}

async function unpack(data: string): Promise<Uint8Array> {
  const packed = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** A host that answers what the page holds and computes nothing. */
export function savedHost(saved: Saved, bytes: Uint8Array): MemoryHost {
  const held = new Map<string, [ArrayMessage, Uint8Array]>();
  let at = 0;
  for (const [message, length] of saved.arrays) {
    held.set(keyOf(message), [message, bytes.subarray(at, at + length)]);
    at += length;
  }
  const answer = (request: Request, host: MemoryHost) => {
    const missing = [];
    if (request.kind === "measure") {
      const parts = measuredParts(saved, request);
      if (typeof parts === "string") {
        host.deliver({ kind: "error", id: request.id, v: VERSION, message: parts, hint: "" });
        return;
      }
      for (const part of parts)
        host.deliver({ ...part, kind: "faithfulness", id: request.id, v: VERSION });
    }
    for (const want of request.kind === "need" ? request.wants : []) {
      const [message, buffer] = held.get(keyOf(want)) ?? [];
      if (message && buffer) host.deliver({ ...message, id: request.id }, [buffer]);
      else missing.push(want);
    }
    host.deliver({ kind: "done", id: request.id, v: VERSION, missing });
  };
  const host = memoryHost(saved.traits, answer, false);
  const { focus, runs } = saved.traits;
  const others = Object.fromEntries(
    Object.entries(runs).filter(([method]) => !saved.focused.includes(method)),
  );
  const set = host.set;
  host.set = (values) =>
    set("focus" in values ? { ...values, runs: values.focus === focus ? runs : others } : values);
  return host;
}

type Of<P extends FaithfulnessPart["part"]> = Extract<FaithfulnessPart, { part: P }>;

/** What the page holds about a question of faithfulness, or why it holds nothing. */
function measuredParts(
  { traits, faithfulness }: Saved,
  { runs, focus }: Question,
): FaithfulnessPart[] | string {
  const asked = Object.keys(runs);
  const of = <P extends FaithfulnessPart["part"]>(kind: P) =>
    faithfulness.filter((one): one is Of<P> => one.part === kind);
  const [start] = of("start");
  if (!start) {
    const refused = of("curve").find((one) => one.error !== undefined)?.error;
    return (
      refused ??
      "Faithfulness had not been measured when this page was saved; in the notebook, " +
        "view.save(path, faithfulness=True) measures it."
    );
  }
  if (focus !== traits.focus) {
    const token = traits.tokens[traits.focus]?.text ?? "";
    return `This page holds what was measured for the focus token “${token}”; another one needs the notebook.`;
  }
  const error = "It was not measured when this page was saved.";
  const curves = asked.map(
    (method): Of<"curve"> =>
      of("curve").find((one) => one.method === method) ?? { part: "curve", method, error },
  );
  const waits = of("budget");
  const parts: FaithfulnessPart[] = [{ ...start, methods: asked }];
  // Where all of it would take long there are no random orders, and a verdict if few settled it.
  if (waits.length > 0)
    return [...parts, ...of("curve"), ...spoken(of("verdict"), asked), ...waits];
  parts.push(...curves, ...of("random"));
  const drawn = curves.flatMap((one) => (one.error === undefined ? [one.method] : []));
  for (const whole of of("agreement")) if (drawn.length > 1) parts.push(among(whole, drawn));
  return [...parts, ...spoken(of("verdict"), asked)];
}

/** The verdicts, of the method that stands in front now. */
const spoken = (verdicts: Of<"verdict">[], asked: string[]) =>
  verdicts.map((whole) => ({ ...whole, text: whole.methods[asked[0] ?? ""] ?? "" }));

/** The agreement of some of the methods. */
function among(whole: AgreementPart, methods: string[]): AgreementPart {
  const places = methods.map((method) => whole.methods.indexOf(method));
  const some = (matrix: (number | null)[][]) =>
    places.map((row) => places.map((column) => matrix[row]?.[column] ?? null));
  return { ...whole, methods, spearman: some(whole.spearman), jaccard: some(whole.jaccard) };
}

/** Show what a page holds, in its `main`. */
export async function openPage(page: Document): Promise<void> {
  const place = page.querySelector("main");
  const holder = page.getElementById("mixwidget-data");
  if (!place || !holder) return;
  try {
    const saved = JSON.parse(holder.textContent ?? "") as Saved;
    const host = savedHost(saved, await unpack(saved.data));
    const life = new AbortController();
    const store = createStore(host, life.signal);
    // All at once, so that nothing is said to be lacking while it is looked up.
    const wants = saved.arrays.map(([message]) => message);
    for (const want of wants) host.send({ kind: "need", id: "", v: VERSION, wants: [want] });
    mount(place, host, store, life.signal);
  } catch (error) {
    place.textContent = "This page cannot be shown: it is damaged, or the browser is too old.";
    console.error("mixwidget: the saved page could not be opened.", error);
  }
}
