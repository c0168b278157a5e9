/** The export menu: pictures are made here, pages and data by the kernel. */

import type { State } from "../state/state";
import { bytesOf, exportAs } from "../wire/protocol";
import type { Store } from "../wire/store";
import type { Context } from "./context";
import { h, rove } from "./dom";
import { createPopover } from "./popover";
import { toPng, toSvg } from "./snapshot";

const CHOICES: [string, string][] = [
  ["png", "Picture of this view (PNG)"],
  ["svg", "Picture of this view (SVG)"],
  ["html", "Interactive page (HTML)"],
  ["json", "All numbers (JSON)"],
];
/** Those that are made here; the others need the kernel. */
const PICTURES = ["png", "svg"];

export function exportMenu(
  button: HTMLElement,
  root: HTMLElement,
  context: Context,
  store: Store,
  current: () => State | undefined,
): void {
  const { listen } = context;
  const menu = h("div", { class: "mix-menu", role: "menu", "aria-label": "Save" });
  for (const [format, title] of CHOICES)
    menu.append(h("button", { type: "button", role: "menuitem", "data-format": format }, title));
  const words = h("span", { class: "mix-export-words", role: "status" });
  root.append(menu);
  root.querySelector(".mix-foot")?.append(words);
  const popover = createPopover(context, menu, [button], () => {
    const live = current()?.live ?? false;
    for (const item of menu.querySelectorAll<HTMLElement>("[data-format]"))
      item.hidden = !live && !PICTURES.includes(item.dataset.format ?? "");
    const frame = root.getBoundingClientRect();
    menu.style.top = `${Math.round(button.getBoundingClientRect().bottom - frame.top + 4)}px`;
    menu.querySelector<HTMLElement>("[data-format]:not([hidden])")?.focus();
  });

  const say = (text: string) => {
    words.textContent = text;
  };
  const name = (format: string) => {
    const traits = current()?.traits;
    return `mixwidget-${traits?.view ?? "view"}-${traits?.method ?? ""}.${format}`;
  };

  async function run(format: string): Promise<void> {
    try {
      say("");
      const state = current();
      if (format === "svg")
        save(new Blob([toSvg(root, context, state)], { type: "image/svg+xml" }), name(format));
      else if (format === "png") save(await toPng(root, context, state), name(format));
      else askKernel(format);
    } catch (error) {
      say("The picture could not be made.");
      console.warn("mixwidget: export failed.", error);
    }
  }

  function askKernel(format: string): void {
    say(format === "html" ? "Writing the page …" : "Collecting the numbers …");
    store.request(
      (id) => exportAs(id, format),
      (answer, files) => {
        for (const file of files) {
          const bytes = Uint8Array.from(bytesOf(file.bytes));
          save(new Blob([bytes], { type: file.mime }), file.name);
        }
        if (answer.kind === "error") say(`${answer.message} ${answer.hint ?? ""}`.trim());
        else say(files.length > 0 ? "" : "There is nothing to export yet.");
      },
    );
  }

  function save(blob: Blob, as: string): void {
    const url = URL.createObjectURL(blob);
    const link = h("a", { href: url, download: as, hidden: true });
    root.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }

  listen(menu, "click", (event) => {
    const format = (event.target as Element).closest<HTMLElement>("[data-format]")?.dataset.format;
    if (!format) return;
    popover.close(true);
    void run(format);
  });
  rove(menu, "[role=menuitem]", listen, { next: ["ArrowDown"], previous: ["ArrowUp"] });
}
