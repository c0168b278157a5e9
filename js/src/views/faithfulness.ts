/** Probability against tokens removed. The curves come with the metrics. */

import type { Context, View } from "../context";
import { createNotice } from "./shared";

export function faithfulnessView(element: HTMLElement, context: Context): View {
  const notice = createNotice(context);
  element.append(notice.element);
  return {
    update(state) {
      const title = state.method?.title ?? "the method";
      const target = state.targetLabel ? ` of “${state.targetLabel}”` : "";
      notice.update(
        `Should you believe this picture? Take away the tokens that ${title} calls important, strongest first, and see how fast the probability${target} falls: a faithful method makes it fall fast. These curves, one per method, will stand here once the faithfulness metrics are part of this version. None are computed yet.`,
      );
    },
  };
}
