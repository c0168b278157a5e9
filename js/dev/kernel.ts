/** A kernel in memory: answers requests from a scene, after a while if asked to. */

import { type MemoryHost, memoryHost } from "../src/wire/host";
import type { Request } from "../src/wire/protocol";
import { measuredParts } from "./measured";
import { encode, type Scene } from "./synthetic";

export function sceneHost(scene: Scene, delay = 0): MemoryHost {
  const later = (work: () => void) => (delay > 0 ? setTimeout(work, delay) : work());
  const reply = (request: Request, host: MemoryHost) => {
    if (request.kind === "measure") {
      for (const part of measuredParts(request, host.get("tokens"))) {
        host.deliver({ ...part, kind: "faithfulness", id: request.id, v: 1 });
      }
    }
    if (request.kind !== "need") {
      host.deliver({ kind: "done", id: request.id, v: 1, missing: [] });
      return;
    }
    const missing = [];
    for (const want of request.wants) {
      const found = scene.answer(want);
      if (!found) {
        missing.push(want);
        continue;
      }
      const dtype = want.what === "overview" ? "u1" : "f4";
      const { buffer, scale } = encode(found.values, dtype);
      const head = {
        kind: "array",
        id: request.id,
        v: 1,
        seq: 0,
        dtype,
        shape: found.shape,
        scale,
      };
      host.deliver({ ...head, ...want }, [buffer]);
    }
    host.deliver({ kind: "done", id: request.id, v: 1, missing });
  };
  return memoryHost(scene.traits, (request, host) => later(() => reply(request, host)));
}
