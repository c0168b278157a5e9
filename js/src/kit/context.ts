/** What every view is given besides the state and its element. */

import type { State } from "../state/state";
import type { Traits } from "../wire/types";
import type { Palette } from "./colour";
import type { Listen } from "./dom";
import type { Marks } from "./marks";
import type { Tooltip } from "./tooltip";

/** Colours that canvases take from the style sheet. */
export interface Inks {
  text: string;
  muted: string;
  line: string;
  accent: string;
  ground: string;
  edge: string;
  /** What stays where it is, in the graph. */
  keep: string;
  font: string;
  /** Size of small text in pixels: follows the reader's setting. */
  size: number;
}

export interface Context {
  root: HTMLElement;
  signal: AbortSignal;
  listen: Listen;
  tip: Tooltip;
  marks: Marks;
  set(values: Partial<Traits>): void;
  /** Draw again in the next frame: something of the view's own has changed. */
  redraw(): void;
  palette(): Palette;
  inks(): Inks;
  /** Say something to screen readers. */
  announce(text: string): void;
  /** Settings of this one view of a widget; `redraw` after a change. */
  own: { allEdges: boolean; stretch: string };
  /** Ask the kernel to compute a method again. */
  rerun(method?: string): void;
}

export interface View {
  update(state: State): void;
  /** Another view is opened in its place. */
  leave?(): void;
}

export type MakeView = (element: HTMLElement, context: Context) => View;
