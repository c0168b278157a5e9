/** How far the work has come, what stopped it, and whether its numbers are right. */

import type { Context, View } from "../kit/context";
import { h, setAttributes, setText, show } from "../kit/dom";
import { duration, percent, plural } from "../state/format";
import type { State } from "../state/state";
import { addsUp, balanced, treatment } from "../state/words";
import { isOfAnotherText, toComputeAgain } from "./editor";

export interface Status extends View {
  /** The line above the picture while there is work, and after it was stopped. */
  line: HTMLElement;
  stop(): void;
}

export function statusBar(element: HTMLElement, context: Context, cancel: () => void): Status {
  const words = h("span", { "data-part": "status", role: "status", "aria-live": "polite" });
  const hint = h("span", { class: "mix-hint" });
  const facts = h("span", { class: "mix-facts" });
  const notes = h("span", { class: "mix-notes", "data-part": "notes" });
  const badge = h("span", { class: "mix-badge mix-push", "data-part": "adds-up" });
  element.append(words, hint, facts, notes, badge);

  const doing = h("span", {});
  const progress = h("progress", { "data-part": "progress", max: 1, "aria-label": "Progress" });
  const left = h("span", { class: "mix-left" });
  const stop = h(
    "button",
    { type: "button", class: "mix-chip", "data-part": "cancel" },
    "Stop ",
    h("small", {}, "esc"),
  );
  const again = h("button", { type: "button", class: "mix-chip", "data-part": "again" }, "Go on");
  const line = h("div", { class: "mix-note", hidden: true }, doing, progress, left, again, stop);
  let state: State | undefined;
  context.listen(stop, "click", cancel);
  context.listen(again, "click", () => {
    for (const method of state ? toComputeAgain(state) : []) context.rerun(method);
  });

  return {
    line,
    stop() {
      if (!stop.hidden && !line.hidden) cancel();
    },
    update(next) {
      state = next;
      const { status, runs, model_info: info } = next.traits;
      setText(words, status.message);
      setText(hint, status.hint ?? "");
      show(hint, !!status.hint);
      setAttributes(element, { "data-stage": status.state });
      const old = isOfAnotherText(next);
      const size = next.n > 0 ? `${plural(next.n, "token")}, ${plural(next.layers, "layer")}` : "";
      const cut = info.cut ? `, cut: ${plural(info.cut, "token")} at the end left out` : "";
      setText(facts, old ? "" : `${size}${cut}`);
      const method = next.method;
      const said = method && next.n > 0 ? treatment(next, method, hiddenShare(next)) : [];
      const heads = method && next.run(method.id)?.mask_note;
      if (heads) said.push(`Heads of the mask: ${heads}.`);
      setText(notes, said.join(" "));
      show(notes, said.length > 0);
      const run = method && next.run(method.id);
      const own = run?.balance ? balanced(run.balance) : addsUp(info.adds_up);
      const check = old ? null : own;
      show(badge, check !== null);
      setText(badge, check?.text ?? "");
      setAttributes(badge, { "data-good": check ? String(check.good) : null });
      drawLine(next, Object.values(runs));
    },
  };

  function drawLine(next: State, runs: State["traits"]["runs"][string][]): void {
    const { status } = next.traits;
    const working = runs.filter((run) => run.state === "computing" || run.state === "waiting");
    const busy = status.state === "computing" || working.length > 0;
    const stage = next.method && next.run(next.method.id)?.state;
    const halted = !busy && next.live && (stage === "cancelled" || stage === "error");
    show(line, busy || halted);
    show(progress, busy);
    show(stop, busy && next.live);
    show(left, busy);
    show(again, halted);
    setAttributes(line, { "data-stage": halted && stage === "error" ? "error" : null });
    if (halted && next.method) {
      const run = next.run(next.method.id);
      const done = next.doneLayers(next.method.id).size;
      const reached =
        done > 0 ? `Stopped after layer ${done - 1} of ${next.layers - 1}. ` : "Stopped. ";
      const shown = done > 0 ? "The picture shows what was reached." : "";
      setText(doing, stage === "error" ? (run?.message ?? "") : `${reached}${shown}`);
      setText(again, stage === "error" ? "Try again" : "Go on");
    } else setText(doing, busy ? status.message : "");
    if (!busy) return;
    const current = working.find((run) => run.state === "computing") ?? working[0];
    if (current && current.progress > 0) progress.value = current.progress;
    else progress.removeAttribute("value");
    const seconds = current?.seconds_left;
    const parts = [
      current && current.progress > 0 ? percent(current.progress) : "",
      seconds !== null && seconds !== undefined ? `${duration(seconds)} left` : "",
    ];
    setText(left, parts.filter(Boolean).join(", "));
  }
}

function hiddenShare(state: State): number {
  const { method } = state;
  return method ? (state.scores(method.id, state.reached(method.id))?.hidden ?? 0) : 0;
}
