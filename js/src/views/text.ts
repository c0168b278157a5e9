/** The words by score: what the sentence shows in colours, as bars and numbers. */

import type { Context, View } from "../kit/context";
import { h } from "../kit/dom";
import { createLegend } from "../kit/legend";
import { createRanking } from "../kit/ranking";
import { createTable } from "../kit/table";
import { sentenceScale } from "../kit/tokens";
import { readingOf, writing } from "../state/reading";
import { namesOf } from "../state/units";
import { meaning } from "../state/words";
import { absent, createNotice, soFar } from "./shared";

const LISTED = 16;

export function textView(element: HTMLElement, context: Context): View {
  const notice = createNotice(context);
  const ranking = createRanking(context);
  const legend = createLegend();
  const table = createTable(context.signal);
  const hint = h("p", { class: "mix-hint" });
  element.append(notice.element, ranking.element, hint, legend.element, table.element);
  return {
    update(next) {
      const method = next.method;
      const layer = method ? next.reached(method.id) : next.layer;
      const found = method && next.scores(method.id, layer);
      const reading = method ? readingOf(next, method, found?.values) : null;
      if (method && !found) {
        const lack = absent(next, context, method.id);
        notice.update(lack.text, lack.actions);
      } else notice.update(method ? soFar(next, layer) : null);
      ranking.update(next, reading, LISTED);
      const left = (reading?.order.length ?? 0) - LISTED;
      hint.textContent = left > 0 ? `${left} more words carry less than these.` : "";
      hint.hidden = left <= 0;
      const scale = sentenceScale(context.palette(), reading, context.own.stretch);
      legend.update(scale, "colours of the sentence", reading ? writing(reading) : undefined);
      const names = namesOf(next.layout);
      table.update(
        found && method
          ? {
              caption: `${method.title}. ${meaning(next, method, layer)}`,
              rowTitle: "",
              colTitle: "token",
              rows: ["score"],
              cols: next.layout.cols.map((unit) => names[unit] ?? ""),
              values: found.values,
            }
          : null,
      );
    },
  };
}
