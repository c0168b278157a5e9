/** A view as an SVG: boxes, texts and canvases at the places where the browser has put them. */

import type { Context } from "./context";

const NS = "http://www.w3.org/2000/svg";
const LEFT_OUT =
  "details, button, select, input, .mix-hidden, .mix-controls, .mix-segments, [hidden]";
const KEPT = ".mix-thumb, .mix-head-grid button";

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
  colour === "" || colour === "transparent" || /, 0\)$/.test(colour);

export function toSvg(panel: HTMLElement, context: Context): string {
  const { svg } = draw(panel, context);
  return new XMLSerializer().serializeToString(svg);
}

function draw(
  panel: HTMLElement,
  context: Context,
): { svg: SVGElement; width: number; height: number } {
  const margin = 12;
  const frame = panel.getBoundingClientRect();
  const [width, height] = [
    Math.ceil(frame.width) + 2 * margin,
    Math.ceil(frame.height) + 2 * margin,
  ];
  const svg = node("svg", { xmlns: NS, width, height, viewBox: `0 0 ${width} ${height}` });
  svg.append(node("rect", { width, height, fill: context.inks().ground }));
  const place = (box: DOMRect): Box => ({
    x: box.left - frame.left + margin,
    y: box.top - frame.top + margin,
    width: box.width,
    height: box.height,
  });
  walk(panel, svg, place);
  return { svg, width, height };
}

function walk(element: Element, into: SVGElement, place: (box: DOMRect) => Box): void {
  for (const child of element.childNodes) {
    if (child instanceof Text) drawText(child, into, place);
    else if (child instanceof HTMLCanvasElement) drawCanvas(child, into, place);
    else if (child instanceof HTMLElement) {
      if (child.matches(LEFT_OUT) && !child.matches(KEPT)) continue;
      drawBox(child, into, place);
      walk(child, into, place);
    }
  }
}

function drawBox(element: HTMLElement, into: SVGElement, place: (box: DOMRect) => Box): void {
  const style = getComputedStyle(element);
  const gradient = element.dataset.gradient?.match(/rgb\([^)]*\)/g);
  if (isClear(style.backgroundColor) && !gradient) return;
  const { x, y, width, height } = place(element.getBoundingClientRect());
  if (width === 0 || height === 0) return;
  if (gradient) {
    gradient.forEach((fill, i) => {
      const step = width / gradient.length;
      into.append(node("rect", { x: x + i * step, y, width: step + 0.5, height, fill }));
    });
    return;
  }
  const rx = Math.min(Number.parseFloat(style.borderTopLeftRadius) || 0, height / 2);
  into.append(node("rect", { x, y, width, height, rx, fill: style.backgroundColor }));
}

function drawText(text: Text, into: SVGElement, place: (box: DOMRect) => Box): void {
  const content = text.data.replace(/\s+/g, " ");
  const parent = text.parentElement;
  if (!content.trim() || !parent) return;
  const style = getComputedStyle(parent);
  const size = Number.parseFloat(style.fontSize);
  for (const line of linesOf(text)) {
    const { x, y, height } = place(line.box);
    const made = node("text", {
      x,
      y: y + height / 2 + size * 0.35,
      fill: style.color,
      "font-family": style.fontFamily,
      "font-size": size,
      "font-weight": style.fontWeight,
    });
    made.textContent = line.text;
    into.append(made);
  }
}

/** The lines that the browser has broken a text into. */
function linesOf(text: Text): { text: string; box: DOMRect }[] {
  const range = document.createRange();
  range.selectNodeContents(text);
  if (range.getClientRects().length <= 1)
    return [{ text: text.data, box: range.getBoundingClientRect() }];
  const lines: { text: string; box: DOMRect }[] = [];
  for (const word of text.data.matchAll(/\S+\s*/g)) {
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

export async function toPng(panel: HTMLElement, context: Context): Promise<Blob> {
  const { svg, width, height } = draw(panel, context);
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
