/** Arrays by name, shared by all views of a widget; asks the kernel for what is lacking. */

import type { Host } from "./host";
import { createMeasures, type Measured } from "./measures";
import {
  type Answer,
  type ArrayMessage,
  type Bytes,
  decode,
  type FaithfulnessPart,
  keyOf,
  need,
  type Question,
  type Request,
  readAnswer,
  type Tensor,
  type Want,
} from "./protocol";
import type { RunInfo } from "./types";

/** What is pushed while it is computed is given this long to arrive before it is asked for. */
const GRACE_MS = 250;
const BUDGET_BYTES = 160_000_000;

interface Pending {
  want: Want;
  since: number;
  state: "wanted" | "asked" | "missing";
}

type Final = (answer: Answer, files: { name: string; mime: string; bytes: Bytes }[]) => void;

type Parted = (part: FaithfulnessPart) => void;

export interface Store {
  get(want: Want): Tensor | undefined;
  /** The array, or nothing now and a request for it. */
  need(want: Want, pushed?: boolean): Tensor | undefined;
  put(want: Want, tensor: Tensor): void;
  onChange(callback: () => void, signal: AbortSignal): void;
  /** Send a request other than `need`; `final` is called once. Its id. */
  request(make: (id: string) => Request, final?: Final, part?: Parted): string;
  /** What is known about a question of faithfulness so far; if it is new it is asked, or nothing
   * is known. */
  measure(question: Question, stages: string, ask: boolean): Measured | undefined;
  /** Runs by method, as they were when the answer's row was read last. */
  atAnswer(subject: string): Map<string, string>;
  /** The kernel refused a value that was set here; it says why. */
  onRefusal(callback: (words: string) => void, signal: AbortSignal): void;
  readonly bytes: number;
}

export function createStore(host: Host, signal: AbortSignal): Store {
  const arrays = new Map<string, Tensor>(); // in order of last use
  const pending = new Map<string, Pending>();
  const inFlight = new Map<string, string[]>(); // request id -> keys
  const finals = new Map<string, { final: Final; files: Parameters<Final>[1]; part?: Parted }>();
  const nextSeq = new Map<string, number>();
  const gaps = new Set<string>();
  const listeners = new Set<() => void>();
  const refusals = new Set<(words: string) => void>();
  const stages = new Map<string, string>();
  let answered = { subject: "", runs: new Map<string, string>() };
  let bytes = 0;
  let counter = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let planned = 0;
  const prefix = Math.random().toString(36).slice(2, 8); // two pages may share one kernel

  const notify = () => {
    for (const callback of listeners) callback();
  };
  const newId = () => `${prefix}-${++counter}`;

  const drop = (key: string) => {
    bytes -= arrays.get(key)?.values.byteLength ?? 0;
    arrays.delete(key);
  };

  function put(want: Want, tensor: Tensor): void {
    const key = keyOf(want);
    drop(key);
    arrays.set(key, tensor);
    bytes += tensor.values.byteLength;
    pending.delete(key);
    for (const oldest of arrays.keys()) {
      if (bytes <= BUDGET_BYTES || oldest === key) break;
      drop(oldest);
    }
  }

  function get(want: Want): Tensor | undefined {
    const key = keyOf(want);
    const found = arrays.get(key);
    if (found) {
      arrays.delete(key);
      arrays.set(key, found);
    }
    return found;
  }

  function ask(): void {
    timer = undefined;
    const now = Date.now();
    const due: Want[] = [];
    let wait = Number.POSITIVE_INFINITY;
    for (const entry of pending.values()) {
      if (entry.state !== "wanted") continue;
      const left = entry.since - now;
      if (left > 0 && !gaps.has(entry.want.run)) wait = Math.min(wait, left);
      else {
        entry.state = "asked";
        due.push(entry.want);
      }
    }
    if (due.length > 0) {
      const id = newId();
      inFlight.set(id, due.map(keyOf));
      host.send(need(id, due));
    }
    if (wait < Number.POSITIVE_INFINITY) askIn(wait + 1);
  }

  /** Ask after a while, or sooner if that is planned already. */
  function askIn(ms: number): void {
    const at = Date.now() + ms;
    if (timer !== undefined && planned <= at) return;
    clearTimeout(timer);
    planned = at;
    timer = setTimeout(ask, ms);
  }

  function want(asked: Want, pushed: boolean): void {
    const key = keyOf(asked);
    if (pending.has(key) || signal.aborted) return;
    pending.set(key, {
      want: asked,
      since: Date.now() + (pushed ? GRACE_MS : 0),
      state: "wanted",
    });
    askIn(pushed ? GRACE_MS + 1 : 0);
  }

  function receiveArray(message: ArrayMessage, buffer: Bytes | undefined): void {
    if (!buffer) return;
    put(message, decode(message, buffer));
    if (message.id || !message.run) return;
    // Arrays of a run are numbered: a jump means that the server dropped some.
    // They begin at 0 again when the run does.
    const expected = message.seq === 0 ? 0 : (nextSeq.get(message.run) ?? 0);
    if (message.seq > expected) {
      gaps.add(message.run);
      if (pending.size > 0) askIn(0);
    }
    nextSeq.set(message.run, message.seq + 1);
  }

  function finish(answer: Answer): void {
    if (answer.kind === "error" && answer.id === "") {
      const words = `${answer.message} ${answer.hint ?? ""}`.trim();
      for (const callback of refusals) callback(words);
    }
    for (const key of inFlight.get(answer.id) ?? []) {
      const entry = pending.get(key);
      if (!entry) continue;
      if (answer.kind === "cancelled") pending.delete(key);
      else entry.state = "missing";
    }
    inFlight.delete(answer.id);
    const waiting = finals.get(answer.id);
    finals.delete(answer.id);
    waiting?.final(answer, waiting.files);
  }

  function request(make: (id: string) => Request, final?: Final, part?: Parted): string {
    const id = newId();
    if (final) finals.set(id, part ? { final, files: [], part } : { final, files: [] });
    host.send(make(id));
    return id;
  }

  host.onMessage((content, buffers) => {
    const answer = readAnswer(content);
    if (!answer) return;
    try {
      if (answer.kind === "array") receiveArray(answer, buffers[0]);
      else if (answer.kind === "faithfulness") finals.get(answer.id)?.part?.(answer);
      else if (answer.kind === "file") {
        const bytes = buffers[0];
        if (bytes)
          finals.get(answer.id)?.files.push({ name: answer.name, mime: answer.mime, bytes });
      } else finish(answer);
    } catch (error) {
      console.warn("mixwidget: a message could not be read.", error);
    }
    notify();
  }, signal);

  host.onChange((name) => {
    if (name === "tokens") {
      // Arrays of run "" belong to the text.
      for (const key of [...arrays.keys()]) if (key.startsWith("|")) drop(key);
      for (const key of [...pending.keys()]) if (key.startsWith("|")) pending.delete(key);
    }
    if (name !== "runs") return;
    // What did not exist may exist now that a run has gone on.
    for (const info of Object.values(host.get("runs"))) {
      const stage = stageOf(info);
      if (stages.get(info.run) === stage) continue;
      stages.set(info.run, stage);
      for (const [key, entry] of pending) {
        const concerned = entry.want.run === info.run || entry.want.run === "";
        if (concerned && entry.state === "missing") pending.delete(key);
      }
    }
  }, signal);

  signal.addEventListener("abort", () => {
    clearTimeout(timer);
    arrays.clear();
    pending.clear();
    listeners.clear();
    bytes = 0;
  });

  return {
    get,
    put,
    need(asked, pushed = false) {
      const found = get(asked);
      if (!found) want(asked, pushed);
      return found;
    },
    onChange(callback, until) {
      listeners.add(callback);
      until.addEventListener("abort", () => listeners.delete(callback));
    },
    request,
    measure: createMeasures(request, notify, signal, host.live),
    atAnswer(subject) {
      if (answered.subject !== subject) answered = { subject, runs: new Map() };
      return answered.runs;
    },
    onRefusal(callback, until) {
      refusals.add(callback);
      until.addEventListener("abort", () => refusals.delete(callback));
    },
    get bytes() {
      return bytes;
    },
  };
}

function stageOf(info: RunInfo): string {
  return `${info.state} ${JSON.stringify(info.done_layers)}`;
}
