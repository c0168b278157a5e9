/** A saved page: the widget on numbers that the page itself holds (mixwidget/page.py). */

import { mount } from "./app";
import { type MemoryHost, memoryHost } from "./host";
import { type ArrayMessage, keyOf, type Request, VERSION } from "./protocol";
import { createStore } from "./store";
import type { Traits } from "./types";

interface Saved {
  traits: Traits;
  /** Methods whose runs hold for the saved focus token only. */
  focused: string[];
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
