/** Where state and messages come from: a live kernel, or memory (tests, static pages). */

import type { AnyModel } from "@anywidget/types";
import type { Bytes, Request } from "./protocol";
import { DEFAULTS, TRAIT_NAMES, type Traits } from "./types";

export interface Host {
  get<K extends keyof Traits>(name: K): Traits[K];
  /** Change traits here at once and tell the kernel soon. */
  set(values: Partial<Traits>): void;
  onChange(callback: (name: keyof Traits) => void, signal: AbortSignal): void;
  send(request: Request): void;
  onMessage(callback: (content: unknown, buffers: Bytes[]) => void, signal: AbortSignal): void;
  /** False where nothing can be computed any more (a saved page). */
  readonly live: boolean;
}

/** Quick successions of changes (a slider being dragged) reach the kernel as one. */
const SAVE_AFTER_MS = 60;

export function anywidgetHost(model: AnyModel, signal: AbortSignal): Host {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const save = () => {
    timer = undefined;
    model.save_changes();
  };
  signal.addEventListener("abort", () => {
    if (timer === undefined) return;
    clearTimeout(timer);
    save();
  });
  return {
    live: true,
    get: (name) => model.get(name) ?? DEFAULTS[name],
    set(values) {
      for (const [name, value] of Object.entries(values)) model.set(name, value);
      timer ??= setTimeout(save, SAVE_AFTER_MS);
    },
    onChange(callback, until) {
      for (const name of TRAIT_NAMES) {
        const changed = () => callback(name);
        model.on(`change:${name}`, changed);
        until.addEventListener("abort", () => model.off(`change:${name}`, changed));
      }
    },
    send: (request) => model.send(request),
    onMessage(callback, until) {
      const received = (content: unknown, buffers?: Bytes[]) => callback(content, buffers ?? []);
      model.on("msg:custom", received);
      until.addEventListener("abort", () => model.off("msg:custom", received));
    },
  };
}

export interface MemoryHost extends Host {
  /** As if the kernel had sent it. */
  deliver(content: unknown, buffers?: Bytes[]): void;
  readonly sent: Request[];
}

/** State in memory; `kernel`, if given, is called with every request. One that only looks up
 * what it has is not `live`. */
export function memoryHost(
  initial: Partial<Traits>,
  kernel?: (request: Request, host: MemoryHost) => void,
  live = kernel !== undefined,
): MemoryHost {
  const traits: Traits = { ...DEFAULTS, ...initial };
  const changes = new Set<(name: keyof Traits) => void>();
  const messages = new Set<(content: unknown, buffers: Bytes[]) => void>();
  const host: MemoryHost = {
    live,
    sent: [],
    get: (name) => traits[name],
    set(values) {
      const names = (Object.keys(values) as (keyof Traits)[]).filter(
        (name) => traits[name] !== values[name],
      );
      Object.assign(traits, values);
      for (const name of names) for (const callback of changes) callback(name);
    },
    onChange(callback, until) {
      changes.add(callback);
      until.addEventListener("abort", () => changes.delete(callback));
    },
    send(request) {
      host.sent.push(request);
      kernel?.(request, host);
    },
    onMessage(callback, until) {
      messages.add(callback);
      until.addEventListener("abort", () => messages.delete(callback));
    },
    deliver(content, buffers = []) {
      for (const callback of messages) callback(content, buffers);
    },
  };
  return host;
}
