/** Whether to believe it, in a few words: always about the answer's row. */

import { duration, percent } from "./format";
import type { State } from "./state";

export interface Verdict {
  /** confirmed, partly, chance; unclear: the text cannot tell; none: not tested. */
  level: "confirmed" | "partly" | "chance" | "unclear" | "none";
  headline: string;
  text: string;
  /** It waits to be asked for, and takes so long. */
  seconds: number | null;
}

/** Null where nothing can be tested: the model predicts nothing. */
export function verdictOf(state: State): Verdict | null {
  const { method, targetLabel, focusLabel, away } = state;
  const { prediction, task } = state.traits.model_info;
  if (!prediction || !method || state.n === 0) return null;
  const of = targetLabel || "the answer";
  const about = away ? ` The test is about ${of}, not about ${focusLabel}.` : "";
  const untested = (text: string, seconds: number | null = null): Verdict => ({
    level: "none",
    headline: "Not tested.",
    text: `${text}${about}`.trim(),
    seconds,
  });
  const measured = state.measured();
  if (!measured) return untested(away && /lm/.test(task) ? "" : "It follows the picture.");
  const judged = measured.judged.get(method.id);
  if (judged)
    return {
      level: judged.level,
      headline: judged.headline,
      text: `${judged.text}${about}`,
      seconds: null,
    };
  if (measured.costs !== null && measured.phase === "done") {
    const long = `In the notebook it takes about ${duration(measured.costs)}.`;
    return state.live ? untested("", measured.costs) : untested(long);
  }
  const failed = measured.failed.get(method.id);
  if (failed !== undefined) return untested(failed);
  if (measured.phase === "error") return untested(measured.message);
  if (measured.phase === "done") return untested(measured.verdict);
  const done = measured.progress > 0 ? `, ${percent(measured.progress)}` : "";
  return { ...untested(""), headline: `Testing${done} …` };
}
