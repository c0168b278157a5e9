/** The export menu: pictures are made here, pages and data by the kernel. */

import type { State } from "../state/state";
import { bytesOf, exportAs } from "../wire/protocol";
import type { Store } from "../wire/store";
import type { Context } from "./context";
import { h, rove } from "./dom";
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
  element: HTMLElement,
  panel: HTMLElement,
  context: Context,
  store: Store,
  current: () => State | undefined,
): void {
  const { listen } = context;
  const button = h(
    "button",
    {
      type: "button",
      class: "mix-button",
      "data-part": "export",
      "aria-haspopup": "menu",
      "aria-expanded": "false",
    },
    "Export",
  );
  const menu = h("div", { class: "mix-menu", role: "menu", "aria-label": "Export", hidden: true });
  for (const [format, title] of CHOICES) {
    menu.append(h("button", { type: "button", role: "menuitem", "data-format": format }, title));
  }
  const words = h("span", { class: "mix-export-words", role: "status" });
  element.append(h("div", { class: "mix-export" }, words, button, menu));

  const open = (on: boolean) => {
    const live = current()?.live ?? false;
    for (const item of menu.querySelectorAll<HTMLElement>("[data-format]"))
      item.hidden = !live && !PICTURES.includes(item.dataset.format ?? "");
    menu.hidden = !on;
    button.setAttribute("aria-expanded", String(on));
    if (on) (menu.firstElementChild as HTMLElement | null)?.focus();
  };
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
        save(new Blob([toSvg(panel, context, state)], { type: "image/svg+xml" }), name(format));
      else if (format === "png") save(await toPng(panel, context, state), name(format));
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
    element.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }

  listen(button, "click", () => open(menu.hidden !== false));
  listen(menu, "click", (event) => {
    const format = (event.target as Element).closest<HTMLElement>("[data-format]")?.dataset.format;
    if (!format) return;
    open(false);
    button.focus();
    void run(format);
  });
  listen(menu, "keydown", (event) => {
    if (event.key !== "Escape") return;
    open(false);
    button.focus();
  });
  rove(menu, "[role=menuitem]", listen, { next: ["ArrowDown"], previous: ["ArrowUp"] });
  listen(context.root, "pointerdown", (event) => {
    if (!menu.hidden && !event.composedPath().includes(menu.parentElement as HTMLElement))
      open(false);
  });
}
