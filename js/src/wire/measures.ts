/** Answers to questions of faithfulness as they come in; finished ones are kept. */

import {
  type AgreementPart,
  type Answer,
  type CurvePart,
  cancelRequest,
  type FaithfulnessPart,
  type Judged,
  measure,
  type Question,
  type RandomPart,
  type Request,
  type StartPart,
} from "./protocol";

/** State that was just changed here reaches the kernel a little later than a message would. */
const SETTLE_MS = 120;
const RETRY_MS = 250;
const LONGEST_MS = 5000;
const KEPT = 40;

export interface Measured {
  /** waiting: to be asked soon. */
  phase: "waiting" | "asked" | "done" | "error";
  start?: StartPart;
  curves: Map<string, CurvePart>;
  /** Methods that could not be measured, and why. */
  failed: Map<string, string>;
  random?: RandomPart;
  agreement?: AgreementPart;
  verdict: string;
  /** What is to be said of each method. */
  judged: Map<string, Judged>;
  /** It would take so many seconds, and waits to be asked for. */
  costs: number | null;
  /** Of the whole work, 0 to 1. */
  progress: number;
  /** Why it ended early. */
  message: string;
  stop(): void;
  again(): void;
  /** Measure it however long it takes. */
  insist(): void;
}

type Send = (
  make: (id: string) => Request,
  final: (answer: Answer) => void,
  part: (part: FaithfulnessPart) => void,
) => string;

interface Entry {
  shown: Measured;
  due: number;
  tries: number;
  whole: boolean;
}

export function createMeasures(
  send: Send,
  notify: () => void,
  signal: AbortSignal,
  live: boolean,
): (question: Question, stages: string, ask?: boolean) => Measured | undefined {
  const kept = new Map<string, Entry>(); // in order of last use
  let timer: ReturnType<typeof setTimeout> | undefined;
  signal.addEventListener("abort", () => {
    clearTimeout(timer);
    kept.clear();
  });

  function begin(key: string): Entry {
    const due = live ? Date.now() + SETTLE_MS : 0;
    const entry: Entry = { shown: blank(), due, tries: 0, whole: false };
    entry.shown.again = () => {
      kept.delete(key);
      notify();
    };
    entry.shown.insist = () => {
      entry.whole = true;
      restart(entry);
      entry.due = 0;
      notify();
    };
    kept.set(key, entry);
    for (const oldest of kept.keys()) {
      if (kept.size <= KEPT) break;
      kept.delete(oldest);
    }
    return entry;
  }

  function restart(entry: Entry): void {
    const { again, insist } = entry.shown;
    entry.shown = { ...blank(), again, insist };
  }

  function ask(entry: Entry, question: Question): void {
    entry.shown.phase = "asked";
    const finished = (answer: Answer) => {
      if (answer.kind === "cancelled") {
        // Overtaken, or ahead of the state it belongs to: asked again if it is still looked at.
        restart(entry);
        entry.due = Date.now() + Math.min(RETRY_MS * 2 ** entry.tries++, LONGEST_MS);
      } else if (answer.kind === "error") {
        entry.shown.phase = "error";
        entry.shown.message = `${answer.message} ${answer.hint ?? ""}`.trim();
      } else {
        entry.shown.phase = "done";
        entry.shown.progress = 1;
      }
      notify();
    };
    const id = send(
      (id) => measure(id, entry.whole ? { ...question, whole: true } : question),
      finished,
      (part) => receive(entry.shown, part),
    );
    entry.shown.stop = () => {
      send(
        (other) => cancelRequest(other, id),
        () => {},
        () => {},
      );
    };
  }

  return (question, stages, asking = true) => {
    const key = `${JSON.stringify(question)} ${stages}`;
    const known = kept.get(key);
    if (!known && !asking) return undefined;
    const entry = known ?? begin(key);
    kept.delete(key);
    kept.set(key, entry);
    if (entry.shown.phase === "waiting" && asking) {
      const left = entry.due - Date.now();
      if (left <= 0) ask(entry, question);
      else {
        clearTimeout(timer);
        timer = setTimeout(notify, left + 1);
      }
    }
    return entry.shown;
  };
}

function blank(): Measured {
  return {
    phase: "waiting",
    curves: new Map(),
    failed: new Map(),
    verdict: "",
    judged: new Map(),
    costs: null,
    progress: 0,
    message: "",
    stop() {},
    again() {},
    insist() {},
  };
}

function receive(into: Measured, part: FaithfulnessPart): void {
  if (part.part === "start") {
    into.start = part;
    into.curves.clear();
    into.failed.clear();
  } else if (part.part === "random") into.random = part;
  else if (part.part === "agreement") into.agreement = part;
  else if (part.part === "budget") into.costs = part.seconds;
  else if (part.part === "verdict") {
    into.verdict = part.text;
    for (const [method, one] of Object.entries(part.judged ?? {})) into.judged.set(method, one);
  } else if (part.error === undefined) into.curves.set(part.method, part);
  else into.failed.set(part.method, part.error);
  const { methods, seeds } = into.start ?? { methods: [], seeds: 0 };
  const done = into.curves.size + into.failed.size + (into.random?.seeds ?? 0);
  into.progress = methods.length > 0 ? Math.min(done / (methods.length + seeds), 1) : 0;
}
