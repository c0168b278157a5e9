/** A view as an SVG: boxes, texts and canvases at the places where the browser has put them,
 * under a few lines that say what the picture shows. */

import { inLine } from "../state/answer";
import { shorten } from "../state/format";
import type { State } from "../state/state";
import { quoted } from "../state/words";
import type { MethodEntry, ViewName } from "../wire/types";
import type { Context } from "./context";

const NS = "http://www.w3.org/2000/svg";
const MARGIN = 12;
const TEXT_LETTERS = 80;
/** Sentences that tell what to do on the screen: a picture cannot be clicked. */
const INSTRUCTION = /^(Click|Drag|Hover|Move|Point|Press|Tap|Tick)\b/;
const SENTENCE = /[^.!?]+[.!?]*\s*/g;
const LEFT_OUT =
  "details, button, select, input, form, u, .mix-hidden, .mix-fields, .mix-segments, .mix-bar, .mix-foot, .mix-under, .mix-picker, .mix-menu, .mix-tip, .mix-note, .mix-held, .mix-strip, .mix-refusal, [hidden]";
const KEPT =
  ".mix-thumb, .mix-head-grid button, .mix-fold, .mix-verdict, .mix-pick, .mix-pair > :first-child, .mix-track > u";

/** A shadow that is a line around: what is chosen has one. */
const RING = /^(rgb\([^)]*\)) 0px 0px 0px ([\d.]+)px/;

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

function node(tag: string, attributes: Record<string, string | number>): SVGElement {
  const made = document.createElementNS(NS, tag) as SVGElement;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}

const isClear = (colour: string) =>
  colour === "" || colour === "transparent" || /^rgba\(.*, 0\)$/.test(colour);

/** The whole widget but its controls: question, sentence, claim, verdict and the open view. */
export function toSvg(root: HTMLElement, context: Context, state?: State): string {
  const { svg } = draw(root, context, state);
  return new XMLSerializer().serializeToString(svg);
}

function draw(
  root: HTMLElement,
  context: Context,
  state: State | undefined,
): { svg: SVGElement; width: number; height: number } {
  const frame = root.getBoundingClientRect();
  const gaps = gapsIn(root);
  const above = (top: number) =>
    gaps.reduce((sum, gap) => sum + (gap.top < top ? gap.height : 0), 0);
  const [width, height] = [
    Math.ceil(frame.width) + 2 * MARGIN,
    Math.ceil(frame.height - above(frame.bottom)) + 2 * MARGIN,
  ];
  const svg = node("svg", { xmlns: NS, width, height, viewBox: `0 0 ${width} ${height}` });
  const title = node("title", {});
  title.textContent = state ? about(state, root) : "";
  svg.append(title, node("rect", { width, height, fill: context.inks().ground }));
  const place = (box: DOMRect): Box => ({
    x: box.left - frame.left + MARGIN,
    y: box.top - frame.top - above(box.top) + MARGIN,
    width: box.width,
    height: box.height,
  });
  walk(root, svg, place);
  return { svg, width, height };
}

/** Rows that are left out as a whole: what is below them moves up. */
function gapsIn(root: HTMLElement): { top: number; height: number }[] {
  const rows: HTMLElement[] = [];
  for (const row of root.querySelectorAll<HTMLElement>(":scope > :not([hidden])")) {
    if (getComputedStyle(row).position === "absolute") continue;
    if (!row.matches(".mix-panel")) rows.push(row);
    else
      rows.push(
        ...row.querySelectorAll<HTMLElement>(":scope > .mix-view:not([hidden]) > :not([hidden])"),
      );
  }
  const { bottom } = root.getBoundingClientRect();
  return rows.flatMap((row, i) => {
    if (!leftOut(row) || row.querySelector("h4")) return [];
    const { top, bottom: end } = row.getBoundingClientRect();
    const shares = (other: HTMLElement) => {
      const box = other.getBoundingClientRect();
      return other !== row && !leftOut(other) && box.top < end - 1 && box.bottom > top + 1;
    };
    if (rows.some(shares)) return []; // something that stays stands beside it
    return [{ top, height: (rows[i + 1]?.getBoundingClientRect().top ?? bottom) - top }];
  });
}

/** Text, methods, focus and target, layers: whatever the view depends on. */
export function about(state: State, panel: HTMLElement): string {
  const { text, text_pair: second, view } = state.traits;
  const given = shorten([inLine(text), second].filter(Boolean).join(" / "), TEXT_LETTERS);
  const methods = methodsIn(view, state, panel);
  const byToken = methods.some((method) => method.yields === "maps" || !method.class_specific);
  const byClass = view === "faithfulness" || methods.some((method) => method.class_specific);
  const parts = [
    given && quoted(given),
    methods.map((method) => method.title).join(", "),
    byToken && FOCUSED.has(view) && `focus ${quoted(state.focusLabel)}`,
    byClass && state.targetLabel && `target ${quoted(state.targetLabel)}`,
    layersIn(view, state, methods, panel),
  ];
  return parts.filter(Boolean).join(" · ");
}

const FOCUSED: ReadonlySet<ViewName> = new Set(["text", "layers", "map", "compare"]);

function methodsIn(view: ViewName, state: State, panel: HTMLElement): MethodEntry[] {
  if (view === "heads") return [];
  if (view === "compare" || view === "faithfulness") return state.compared;
  const front = state.method ? [state.method] : [];
  if (view !== "multiples") return front;
  const names = thumbsIn(panel);
  const shown = state.compared.filter((method) => names.includes(method.title));
  return shown.length > 0 ? shown : front;
}

/** Only the view of small pictures knows whether these are layers or methods. */
const thumbsIn = (panel: HTMLElement) =>
  [...panel.querySelectorAll(".mix-view-multiples .mix-thumb")].map((thumb) =>
    (thumb.textContent ?? "").trim(),
  );

function layersIn(
  view: ViewName,
  state: State,
  methods: MethodEntry[],
  panel: HTMLElement,
): string {
  const { aggregate, head } = state.traits;
  const front = methods[0];
  const last = Math.max(state.layers - 1, 0);
  if (view === "heads")
    return `attention in layer ${state.layer}, ${head < 0 ? "all heads on average" : `head ${head}`}`;
  if (view === "faithfulness" || methods.every((method) => method.yields === "scores")) return "";
  if (view === "graph") return `layers 0 to ${last}`;
  const each =
    view === "layers" || (view === "multiples" && !thumbsIn(panel).includes(front?.title ?? ""));
  const layer = each ? "each layer" : `layer ${front ? state.reached(front.id) : state.layer}`;
  if (aggregate === "layer") return `${layer} alone`;
  const added = methods.every((method) => method.yields !== "maps");
  return `${added || aggregate === "sum" ? "sum" : "rollout"} up to ${layer}`;
}

export function withoutInstructions(text: string): string {
  return text.replace(SENTENCE, (said) => (INSTRUCTION.test(said) ? "" : said)).trim();
}

function walk(element: Element, into: SVGElement, place: (box: DOMRect) => Box): void {
  for (const child of element.childNodes) {
    if (child instanceof Text) drawText(child, into, place);
    else if (child instanceof HTMLCanvasElement) drawCanvas(child, into, place);
    else if (child instanceof HTMLElement) {
      if (getComputedStyle(child).display === "none") continue;
      if (leftOut(child)) {
        drawHeading(child, into, place);
        continue;
      }
      drawBox(child, into, place);
      walk(child, into, place);
    }
  }
}

function leftOut(element: Element): boolean {
  if (element.matches("p, .mix-notice") && onlyInstructs(element)) return true;
  return element.matches(LEFT_OUT) && !element.matches(KEPT);
}

function onlyInstructs(element: Element): boolean {
  const words = (element.querySelector("p") ?? element).textContent ?? "";
  return words.trim() !== "" && withoutInstructions(words) === "";
}

/** Controls with a heading, as words: "Difference: this minus that". */
function drawHeading(bar: HTMLElement, into: SVGElement, place: (box: DOMRect) => Box): void {
  const title = bar.hidden ? null : bar.querySelector("h4");
  if (!title) return;
  const words = [...bar.children]
    .filter((child) => child !== title && !child.matches("button, [hidden]"))
    .map((child) =>
      child instanceof HTMLSelectElement ? child.selectedOptions[0]?.text : child.textContent,
    );
  const { x, y, height } = place(title.getBoundingClientRect());
  into.append(
    textNode(
      `${title.textContent}: ${words.join(" ")}`,
      x,
      y + height / 2,
      getComputedStyle(title),
    ),
  );
}

function textNode(content: string, x: number, middle: number, style: CSSStyleDeclaration) {
  const size = Number.parseFloat(style.fontSize);
  const struck = style.textDecorationLine === "line-through";
  const made = node("text", {
    x,
    y: middle + size * 0.35,
    fill: style.color,
    "font-family": style.fontFamily,
    "font-size": size,
    "font-weight": style.fontWeight,
    ...(struck ? { "text-decoration": "line-through" } : {}),
  });
  made.textContent = content;
  return made;
}

function drawBox(element: HTMLElement, into: SVGElement, place: (box: DOMRect) => Box): void {
  const style = getComputedStyle(element);
  const gradient = element.dataset.gradient?.match(/rgb\([^)]*\)/g);
  const dashed = style.borderTopStyle === "dashed";
  const shape = element.matches(".mix-dot");
  if (isClear(style.backgroundColor) && !gradient && !dashed && !shape) return;
  const { x, y, width, height } = place(element.getBoundingClientRect());
  if (width === 0 || height === 0) return;
  if (dashed) {
    const line = { stroke: style.borderTopColor, "stroke-dasharray": "3 2", fill: "none" };
    into.append(node("rect", { x, y, width, height, rx: 5, ...line }));
    return;
  }
  if (gradient) {
    gradient.forEach((fill, i) => {
      const step = width / gradient.length;
      into.append(node("rect", { x: x + i * step, y, width: step + 0.5, height, fill }));
    });
    return;
  }
  const rx = Math.min(Number.parseFloat(style.borderTopLeftRadius) || 0, height / 2);
  const [, stroke, line] = style.boxShadow.match(RING) ?? [];
  const ring = stroke && line ? { stroke, "stroke-width": line } : {};
  if (element.dataset.level === "partly") {
    const [middle, half] = [x + width / 2, height / 2];
    const d = `M${middle} ${y}A${half} ${half} 0 0 0 ${middle} ${y + height}Z`;
    into.append(node("path", { d, fill: stroke ?? style.color }));
  }
  const fill = isClear(style.backgroundColor) ? "none" : style.backgroundColor;
  if (element.dataset.level === "chance") {
    const [cx, cy, half] = [x + width / 2, y + height / 2, width / 2];
    const d = `M${cx - half} ${cy}L${cx} ${cy - half}L${cx + half} ${cy}L${cx} ${cy + half}Z`;
    into.append(node("path", { d, fill }));
    return;
  }
  into.append(node("rect", { x, y, width, height, rx, fill, ...ring }));
}

function drawText(text: Text, into: SVGElement, place: (box: DOMRect) => Box): void {
  const parent = text.parentElement;
  if (!text.data.trim() || !parent) return;
  const style = getComputedStyle(parent);
  const upright = style.writingMode?.startsWith("vertical");
  for (const line of linesOf(text)) {
    const { x, y, width, height } = place(line.box);
    const { share } = parent.dataset;
    const made = textNode(share ? `${line.text} ${share}` : line.text, x, y + height / 2, style);
    if (upright) {
      const [left, foot] = [x + width / 2, y + height];
      for (const [name, value] of Object.entries({
        x: 0,
        y: 4,
        transform: `translate(${left} ${foot}) rotate(-90)`,
      }))
        made.setAttribute(name, String(value));
    }
    into.append(made);
  }
}

/** The lines that the browser has broken a text into, without what tells the reader to do. */
function linesOf(text: Text): { text: string; box: DOMRect }[] {
  const range = document.createRange();
  // A blank at the beginning has a width in the browser, and none in a picture.
  range.setStart(text, text.data.length - text.data.trimStart().length);
  range.setEnd(text, text.data.trimEnd().length);
  // A token of the text may begin like an instruction: only sentences over a picture are cut.
  const told = text.parentElement?.matches("p")
    ? [...text.data.matchAll(SENTENCE)].filter(([said]) => INSTRUCTION.test(said))
    : [];
  if (range.getClientRects().length <= 1 && told.length === 0)
    return [{ text: text.data.trim(), box: range.getBoundingClientRect() }];
  const lines: { text: string; box: DOMRect }[] = [];
  for (const word of text.data.matchAll(/\S+\s*/g)) {
    const place = word.index;
    if (told.some((said) => said.index <= place && place < said.index + said[0].length)) continue;
    range.setStart(text, word.index);
    range.setEnd(text, word.index + word[0].length);
    const box = range.getBoundingClientRect();
    const last = lines[lines.length - 1];
    if (last && Math.abs(last.box.top - box.top) < 2) last.text += word[0];
    else lines.push({ text: word[0], box });
  }
  return lines;
}

function drawCanvas(
  canvas: HTMLCanvasElement,
  into: SVGElement,
  place: (box: DOMRect) => Box,
): void {
  if (canvas.width === 0 || canvas.classList.contains("mix-overlay")) return;
  const box = place(canvas.getBoundingClientRect());
  const crisp = canvas.width < box.width ? { "image-rendering": "pixelated" } : {};
  into.append(
    node("image", { ...box, href: canvas.toDataURL(), preserveAspectRatio: "none", ...crisp }),
  );
}

export async function toPng(root: HTMLElement, context: Context, state?: State): Promise<Blob> {
  const { svg, width, height } = draw(root, context, state);
  const source = new XMLSerializer().serializeToString(svg);
  const image = new Image();
  await new Promise((resolve, reject) => {
    image.onload = resolve;
    image.onerror = reject;
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(source)}`;
  });
  const canvas = document.createElement("canvas");
  canvas.width = 2 * width;
  canvas.height = 2 * height;
  const paper = canvas.getContext("2d");
  if (!paper) throw new Error("There is no canvas to draw on.");
  paper.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => {
    canvas.toBlob(
      (blob) => (blob ? resolve(blob) : reject(new Error("The canvas is empty."))),
      "image/png",
    );
  });
}
