/** How a reading is shared out among the turns: one bar, and what each comes to. */

import { inTurns, type Sum, sumsOf } from "../state/answer";
import { share, signed } from "../state/format";
import type { Reading } from "../state/reading";
import type { State } from "../state/state";
import { h, setAttributes, setText, show, sync } from "./dom";

export function createTurnShares() {
  const stack = h("div", { class: "mix-stack", "data-part": "turn-shares", role: "img" });
  const legend = h("ul", { class: "mix-turn-legend" });
  const own = h("p", { class: "mix-hint", "data-part": "own-share" });
  const element = h("div", {}, stack, legend, own);

  function update(next: State, reading: Reading | null): void {
    const by = reading ? sumsOf(next, reading) : { sums: [], own: null };
    const shown = by.sums.filter(({ turn }) => turn.units.length > 0);
    const worth = inTurns(next) && reading !== null && shown.length > 0;
    show(stack, worth);
    show(legend, worth);
    const strongest = Math.max(...shown.map(sizeOf), 1e-12);
    const total = shown.reduce((sum, one) => sum + sizeOf(one), 0);
    const width = (one: Sum) => (total > 0 ? (100 * sizeOf(one)) / total : 0);
    const write = (one: Sum) =>
      reading?.method.signed ? signed(one.value) : share(one.part, true);
    const fill = (item: HTMLElement, one: Sum) => {
      setAttributes(item, { "data-turn": one.turn.kind, "data-against": against(one) });
      const weight = 0.22 + 0.78 * (sizeOf(one) / strongest);
      item.style.setProperty("--weight", weight.toFixed(3));
    };
    sync(
      stack,
      shown,
      () => h("div", {}),
      (bar, one) => {
        fill(bar, one);
        bar.style.flexGrow = String(Math.max(width(one), 0.4));
        setAttributes(bar, { title: `${one.turn.name} ${write(one)}` });
      },
    );
    sync(
      legend,
      shown,
      () => h("li", {}, h("i", {}), h("span", { dir: "auto" })),
      (item, one) => {
        fill(item, one);
        setText(item.lastElementChild as HTMLElement, `${one.turn.name} ${write(one)}`);
      },
    );
    const said = shown.map((one) => `${one.turn.name} ${write(one)}`).join(", ");
    setAttributes(stack, { "aria-label": `By turn: ${said}` });
    setText(own, by.own ? `The answer’s own words, set aside: ${write(by.own)}.` : "");
    show(own, worth && by.own !== null);

    function sizeOf(one: Sum): number {
      return reading?.method.signed ? Math.abs(one.value) : one.part;
    }
    function against(one: Sum): boolean {
      return reading?.method.signed === true && one.value < 0;
    }
  }

  return { element, update };
}
