/** What the answer, or one of its tokens, came from: by turn, then by word. */

import type { Context, View } from "../kit/context";
import { h, setAttributes, setText, show } from "../kit/dom";
import { createRanking } from "../kit/ranking";
import { createTable } from "../kit/table";
import { createTurnShares } from "../kit/turn-shares";
import { readingOf } from "../state/reading";
import type { State } from "../state/state";
import { namesOf } from "../state/units";
import { meaning } from "../state/words";
import { absent, createNotice, soFar } from "./shared";

const LISTED = 8;

export function answerView(element: HTMLElement, context: Context): View {
  const notice = createNotice(context);
  const shares = createTurnShares();
  const ranking = createRanking(context);
  const left = h("p", { class: "mix-hint" });
  const shades = h("div", {
    class: "mix-shades",
    role: "group",
    "aria-label": "Lines under the answer",
  });
  const table = createTable(context.signal);
  const problem = h("p", { class: "mix-hint" });
  element.append(
    notice.element,
    shares.element,
    ranking.element,
    left,
    shades,
    problem,
    table.element,
  );
  for (const [value, text] of [
    ["probability", "how likely each token was"],
    ["dependence", "how much it needed the prompt"],
  ] as const)
    shades.append(
      h(
        "button",
        { type: "button", class: "mix-chip", "data-part": "shade", "data-shade": value },
        text,
      ),
    );
  shades.prepend(h("span", {}, "Lines under the answer:"));
  context.listen(shades, "click", (event) => {
    const shade = (event.target as Element).closest<HTMLElement>("button")?.dataset.shade;
    if (shade) context.set({ shade: shade as State["traits"]["shade"] });
  });

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
      shares.update(next, reading);
      ranking.update(next, reading, LISTED);
      const more = (reading?.order.length ?? 0) - LISTED;
      setText(left, more > 0 ? `${more} more words carry less than these.` : "");
      show(left, more > 0);
      drawShades(next);
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

  function drawShades(next: State): void {
    const { reply, shade } = next.traits;
    const there = reply.tokens.length > 0 && reply.state !== "writing";
    const needed = reply.tokens.some((one) => one.needed !== null);
    show(shades, there && (next.live || needed));
    for (const button of shades.querySelectorAll<HTMLElement>("button"))
      setAttributes(button, { "aria-pressed": String(button.dataset.shade === shade) });
    const text = reply.problem;
    setText(problem, text);
    show(problem, text !== "");
  }
}
