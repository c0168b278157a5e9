/** The context of one view: its colours as the host has them, its tooltip, its marks. */

import type { Host } from "../wire/host";
import { rerun } from "../wire/protocol";
import type { Store } from "../wire/store";
import { palette } from "./colour";
import type { Context } from "./context";
import { h, listener, onResize, setText } from "./dom";
import { createMarks } from "./marks";
import { followTheme, readInks } from "./theme";
import { createTooltip } from "./tooltip";

export function createContext(
  root: HTMLElement,
  host: Host,
  store: Store,
  signal: AbortSignal,
  redraw: () => void,
): Context {
  let inks: ReturnType<typeof readInks> | undefined;
  let colours: { name: string; theme: string; palette: ReturnType<typeof palette> } | undefined;
  const theme = followTheme(
    root,
    () => {
      inks = undefined;
      colours = undefined;
      redraw();
    },
    signal,
  );
  onResize(
    root,
    () => {
      const before = inks?.size;
      inks = undefined;
      // Presenting is larger: what is drawn on canvases is drawn anew.
      if (before !== undefined && readInks(root).size !== before) redraw();
    },
    signal,
  );
  const voice = h("div", { class: "mix-hidden", "aria-live": "polite" });
  root.append(voice);
  return {
    root,
    signal,
    listen: listener(signal),
    tip: createTooltip(root),
    marks: createMarks(),
    own: { allEdges: false, stretch: "" },
    redraw,
    set(values) {
      host.set(values);
      redraw();
    },
    rerun: (method) => store.request((id) => rerun(id, method)),
    palette() {
      const name = host.get("colours");
      if (colours?.name !== name || colours.theme !== theme())
        colours = { name, theme: theme(), palette: palette(name, theme()) };
      return colours.palette;
    },
    inks() {
      inks ??= readInks(root);
      return inks;
    },
    announce: (text) => setText(voice, text),
  };
}
