/** "Why [positive 94 %]", and the methods that are asked, as chips. */

import type { Context, View } from "../kit/context";
import { h, setAttributes, setText, show, sync } from "../kit/dom";
import { share, shorten } from "../state/format";
import type { State } from "../state/state";
import type { Json, MethodEntry } from "../wire/types";
import { isOfAnotherText } from "./editor";
import { createPicker } from "./picker";

export function question(element: HTMLElement, context: Context, layer: HTMLElement): View {
  const { listen } = context;
  const ask = h("span", { class: "mix-why" });
  const name = h("strong", { dir: "auto", "data-part": "prediction" });
  const chance = h("span", { class: "mix-chance" });
  const target = h("select", { "aria-label": "What is explained" });
  const answer = h("label", { class: "mix-answer" }, name, chance, target);
  const tail = h("span", { class: "mix-why" });
  const front = h(
    "button",
    {
      type: "button",
      class: "mix-chip mix-pick",
      "data-part": "method-picker",
      "aria-haspopup": "dialog",
    },
    h("strong", {}),
    h("small", {}),
  );
  const others = h("span", { class: "mix-chips" });
  const add = h(
    "button",
    {
      type: "button",
      class: "mix-chip mix-add",
      "data-part": "compare-add",
      "aria-haspopup": "dialog",
    },
    "+ compare",
  );
  const chips = h(
    "span",
    { class: "mix-chips mix-push", role: "group", "aria-label": "Methods" },
    front,
    others,
    add,
  );
  element.append(ask, answer, tail, chips);
  const picker = createPicker(layer, context, front, add);
  let state: State | undefined;

  listen(target, "change", () => context.set({ target: JSON.parse(target.value) as Json }));
  listen(others, "click", (event) => {
    const button = (event.target as Element).closest<HTMLElement>("button");
    const id = button?.closest<HTMLElement>("[data-chip]")?.dataset.chip;
    if (!state || !id) return;
    const { compared, method } = state.traits;
    const rest = compared.filter((other) => other !== id);
    if (button?.dataset.part === "compare-remove") context.set({ compared: rest });
    else context.set({ method: id, compared: [method, ...rest].filter((one) => one !== id) });
  });

  return {
    update(next) {
      state = next;
      const { prediction, task } = next.traits.model_info;
      const test = next.traits.view === "faithfulness" && next.method !== undefined;
      const asks = prediction !== null;
      setText(
        ask,
        test ? `Should I believe ${next.method?.title} for` : asks ? "Why" : "What goes into",
      );
      const goesOn = asks && /lm/.test(task) && next.traits.reply.tokens.length === 0;
      setText(tail, test ? "?" : goesOn ? "next?" : asks ? "" : "?");
      show(tail, tail.textContent !== "");
      const label = asks ? next.targetLabel : next.focusLabel;
      setText(name, shorten(label, 28));
      setText(chance, asks && next.probability !== null ? share(next.probability) : "");
      const failed = next.traits.status.state === "error" && isOfAnotherText(next);
      const known = next.n > 0 && label !== "" && !failed;
      show(answer, known);
      show(ask, known);
      if (!known) show(tail, false);
      // Out of sight but in place while the next is on its way: nothing below jumps.
      answer.style.visibility = isOfAnotherText(next) ? "hidden" : "";
      const open = next.live && next.traits.model_info.targets.length > 1;
      show(target, open);
      setAttributes(target, { "data-part": open ? "target-select" : null });
      setAttributes(answer, {
        "data-part": open ? null : "target-select",
        "data-flat": !open || null,
      });
      if (open) drawTarget(target, next);
      drawChips(next);
      picker.update(next);
    },
  };

  function drawChips(next: State): void {
    const { method, compared, traits } = next;
    const [title, options] = front.children as unknown as [HTMLElement, HTMLElement];
    setText(title, method?.title ?? "");
    setText(options, method ? optionWords(method, next) : "");
    show(options, options.textContent !== "");
    show(front, method !== undefined);
    setAttributes(front, { "data-method": method?.id ?? null });
    const beside = compared.slice(1);
    sync(
      others,
      beside,
      () =>
        h(
          "span",
          { class: "mix-chip mix-pair" },
          h("button", { type: "button", title: "Put in front" }, h("strong", {}), h("small", {})),
          h("button", { type: "button", "data-part": "compare-remove", class: "mix-remove" }, "×"),
        ),
      (chip, entry) => {
        const [open, remove] = chip.children as unknown as [HTMLElement, HTMLElement];
        chip.dataset.chip = entry.id;
        setText(open.firstElementChild as HTMLElement, entry.title);
        const words = optionWords(entry, next);
        setText(open.lastElementChild as HTMLElement, words);
        show(open.lastElementChild as HTMLElement, words !== "");
        setAttributes(remove, { "aria-label": `Remove ${entry.title}`, title: "Remove" });
      },
    );
    setText(add, beside.length > 0 ? "+" : "+ compare");
    setAttributes(add, { "aria-label": "Compare with another method" });
    const more = traits.catalogue.some(
      (entry) => entry.available && !compared.some(({ id }) => id === entry.id),
    );
    show(add, method !== undefined && more && traits.compared.length < 4 && compared.length < 4);
  }
}

/** The options that are not as usual. */
function optionWords(entry: MethodEntry, { traits }: State): string {
  const given = Object.entries(traits.params[entry.id] ?? {});
  return given.map(([name, value]) => `${name} ${value}`).join(", ");
}

/** Options are rebuilt only when they differ: an open menu must not flicker. */
function setOptions(select: HTMLSelectElement, options: [string, string][]): void {
  const signature = JSON.stringify(options);
  if (select.dataset.options === signature) return;
  select.dataset.options = signature;
  select.replaceChildren(...options.map(([value, text]) => h("option", { value }, text)));
}

function drawTarget(select: HTMLSelectElement, state: State): void {
  const { targets, prediction } = state.traits.model_info;
  const said = state.traits.reply.tokens.length > 0 ? "said" : "predicted";
  const options: [string, string][] = [
    ["null", prediction ? `${said}: ${shorten(prediction.label, 24)}` : said],
  ];
  for (const choice of targets) {
    const part = choice.probability == null ? "" : ` ${share(choice.probability)}`;
    options.push([JSON.stringify(choice.value), `${shorten(choice.label, 24)}${part}`]);
  }
  const value = JSON.stringify(state.traits.target);
  if (!options.some(([known]) => known === value)) options.push([value, String(state.targetLabel)]);
  setOptions(select, options);
  if (select.value !== value) select.value = value;
}
