/** Geometry and drawing of a matrix; no state, no events. */

import type { Inks } from "./context";
import type { HeatSpec } from "./heatmap";
import { drawSide, sideRoom } from "./heatmap-side";

export interface Geometry {
  /** What is in sight. */
  width: number;
  height: number;
  /** Room for row and column labels. */
  left: number;
  top: number;
  cellWidth: number;
  cellHeight: number;
  contentWidth: number;
  contentHeight: number;
  /** Column labels stand upright where their cell is too narrow for them. */
  upright: boolean;
  /** Room for the lines at the right. */
  side: number;
}

type Context2d = CanvasRenderingContext2D;
interface Offset {
  x: number;
  y: number;
}

const PAD = 6;
/** From this size of a cell on, lines are drawn between cells. */
const LINED = 9;

export function measure(
  spec: HeatSpec,
  width: number,
  magnify: number,
  inks: Inks,
  draw: Context2d | null,
): Geometry {
  if (draw) draw.font = `${inks.size}px ${inks.font}`;
  const widest = (labels: string[]) => {
    let most = 0;
    for (const label of labels) {
      most = Math.max(most, draw ? draw.measureText(label).width : label.length * inks.size * 0.55);
    }
    return Math.ceil(most);
  };
  const rows = Math.max(spec.rows.length, 1);
  const cols = Math.max(spec.cols.length, 1);
  // Everything begins and ends on whole pixels of the screen, so that lines and cells meet.
  const grain = globalThis.devicePixelRatio || 1;
  const down = (length: number) => Math.floor(length * grain + 1e-6) / grain;
  const up = (length: number) => Math.ceil(length * grain - 1e-6) / grain;
  const title = inks.size + 4;
  const left = up(Math.min(widest(spec.rows) + 5, Math.round(width * 0.28), 130) + 2 * PAD + title);
  const labelWidth = Math.min(widest(spec.cols), 96);
  const side = sideRoom(spec, width);
  const room = Math.max(width - left - 1 - side, 40);
  let cellWidth: number;
  let cellHeight: number;
  const maxHeight = spec.maxHeight ?? 640;
  if (spec.square) {
    const top = Math.min(labelWidth, 96) + 2 * PAD + title;
    cellWidth = Math.min(room / cols, (maxHeight - top) / rows, 2.4 * inks.size) * magnify;
    cellHeight = cellWidth;
  } else {
    cellWidth = Math.min(room / cols, 4.5 * inks.size) * magnify;
    cellHeight = Math.max(Math.min((maxHeight - 120) / rows, 2 * inks.size), 1.1 * inks.size);
  }
  if (cellWidth >= LINED) cellWidth = down(cellWidth);
  if (cellHeight >= LINED) cellHeight = down(cellHeight);
  const upright = labelWidth + PAD > cellWidth;
  const top = up((upright ? labelWidth : inks.size) + 2 * PAD + title);
  const contentWidth = up(left + cols * cellWidth);
  const contentHeight = up(top + rows * cellHeight);
  return {
    width: down(Math.min(width, Math.max(contentWidth, 1) + side)),
    height: down(Math.min(contentHeight, Math.max(maxHeight, top + 40))),
    left,
    top,
    cellWidth,
    cellHeight,
    contentWidth,
    contentHeight,
    upright,
    side,
  };
}

/** Pixels of the canvas for one of the page. */
const ratioOf = (canvas: HTMLCanvasElement, g: Geometry) => canvas.width / Math.max(g.width, 1);

function begin(canvas: HTMLCanvasElement, g: Geometry): Context2d | null {
  const draw = canvas.getContext("2d");
  if (!draw) return null;
  const ratio = ratioOf(canvas, g);
  draw.setTransform(ratio, 0, 0, ratio, 0, 0);
  draw.clearRect(0, 0, g.width, g.height);
  return draw;
}

export function drawBase(
  canvas: HTMLCanvasElement,
  image: HTMLCanvasElement,
  spec: HeatSpec,
  g: Geometry,
  scrolled: Offset,
  inks: Inks,
): void {
  const draw = begin(canvas, g);
  if (!draw) return;
  const ratio = ratioOf(canvas, g);
  const whole = (length: number) => Math.round(length * ratio) / ratio;
  const offset = { x: whole(scrolled.x), y: whole(scrolled.y) };
  const { rows, cols } = { rows: spec.rows.length, cols: spec.cols.length };
  draw.save();
  draw.beginPath();
  draw.rect(g.left, g.top, g.width - g.left - g.side, g.height - g.top);
  draw.clip();
  if (image.width > 0 && image.height > 0) {
    draw.imageSmoothingEnabled = g.cellWidth < 1 || (spec.picture?.cols ?? cols) < cols;
    const [x, y] = [g.left - offset.x, g.top - offset.y];
    draw.drawImage(image, x, y, cols * g.cellWidth, rows * g.cellHeight);
  }
  drawGrid(draw, spec, g, offset, inks, Math.max(1, Math.round(ratio)) / ratio);
  draw.restore();
  drawLabels(draw, spec, g, offset, inks);
  drawTitles(draw, spec, g, inks);
  drawSide(draw, spec, g, inks);
}

function lineOf(spec: HeatSpec, row: number): number {
  return spec.upward ? spec.rows.length - 1 - row : row;
}

function drawGrid(
  draw: Context2d,
  spec: HeatSpec,
  g: Geometry,
  offset: Offset,
  inks: Inks,
  thin: number,
): void {
  const [x0, y0] = [g.left - offset.x, g.top - offset.y];
  const [w, height] = [spec.cols.length * g.cellWidth, spec.rows.length * g.cellHeight];
  // Lines cover the first pixels of their cell.
  draw.strokeStyle = inks.ground;
  draw.lineWidth = thin;
  draw.beginPath();
  if (g.cellWidth >= LINED) {
    for (let c = 1; c < spec.cols.length; c++) {
      const x = x0 + c * g.cellWidth + thin / 2;
      draw.moveTo(x, y0);
      draw.lineTo(x, y0 + height);
    }
  }
  if (g.cellHeight >= LINED) {
    for (let r = 1; r < spec.rows.length; r++) {
      const y = y0 + r * g.cellHeight + thin / 2;
      draw.moveTo(x0, y);
      draw.lineTo(x0 + w, y);
    }
  }
  draw.stroke();
  // Between the two texts of a pair.
  draw.strokeStyle = inks.text;
  draw.lineWidth = 1.5;
  draw.beginPath();
  if (spec.colBreak > 0) {
    const x = x0 + spec.colBreak * g.cellWidth;
    draw.moveTo(x, y0);
    draw.lineTo(x, y0 + height);
  }
  if (spec.rowBreak > 0) {
    const y = y0 + spec.rowBreak * g.cellHeight;
    draw.moveTo(x0, y);
    draw.lineTo(x0 + w, y);
  }
  draw.stroke();
  draw.strokeStyle = inks.line;
  draw.lineWidth = 1;
  draw.strokeRect(x0 + 0.5, y0 + 0.5, w - 1, height - 1);
  if (spec.selectedRow >= 0) {
    draw.strokeStyle = inks.accent;
    draw.lineWidth = 2;
    const y = y0 + lineOf(spec, spec.selectedRow) * g.cellHeight;
    draw.strokeRect(x0 + 1, y, w - 2, Math.max(g.cellHeight, 2));
  }
  if (spec.selectedCol >= 0) {
    draw.strokeStyle = inks.accent;
    draw.lineWidth = 2;
    draw.strokeRect(x0 + spec.selectedCol * g.cellWidth, y0 + 1, g.cellWidth, height - 2);
  }
}

/** As much of a label as there is room for. */
function cutTo(draw: Context2d, text: string, room: number): string {
  if (draw.measureText(text).width <= room) return text;
  const characters = [...text];
  let length = Math.max(1, Math.floor((room / draw.measureText(text).width) * characters.length));
  let cut = `${characters.slice(0, length).join("")}…`;
  while (length > 1 && draw.measureText(cut).width > room) {
    length--;
    cut = `${characters.slice(0, length).join("")}…`;
  }
  return cut;
}

function drawLabels(
  draw: Context2d,
  spec: HeatSpec,
  g: Geometry,
  offset: Offset,
  inks: Inks,
): void {
  const line = inks.size + 2;
  const titleRoom = inks.size + 4;
  draw.textBaseline = "middle";
  draw.font = `${inks.size}px ${inks.font}`;
  const rowStep = Math.max(1, Math.ceil(line / g.cellHeight));
  for (let r = 0; r < spec.rows.length; r++) {
    const chosen = r === spec.selectedRow;
    if (r % rowStep !== 0 && !chosen) continue;
    const y = g.top - offset.y + (lineOf(spec, r) + 0.5) * g.cellHeight;
    if (y < g.top - 1 || y > g.height) continue;
    if (!chosen && spec.selectedRow >= 0 && rowStep > 1) {
      const distance = Math.abs(r - spec.selectedRow) * g.cellHeight;
      if (distance < line) continue;
    }
    rowLabel(draw, spec, g, r, y, chosen, inks, titleRoom);
  }
  const colStep = Math.max(1, Math.ceil((g.upright ? line : 1) / g.cellWidth));
  for (let c = 0; c < spec.cols.length; c++) {
    const chosen = c === spec.selectedCol;
    if (c % colStep !== 0 && !chosen) continue;
    if (!chosen && spec.selectedCol >= 0 && colStep > 1) {
      if (Math.abs(c - spec.selectedCol) * g.cellWidth < line) continue;
    }
    const x = g.left - offset.x + (c + 0.5) * g.cellWidth;
    if (x < g.left || x > g.width) continue;
    colLabel(draw, spec, g, c, x, chosen, inks, titleRoom);
  }
}

function rowLabel(
  draw: Context2d,
  spec: HeatSpec,
  g: Geometry,
  r: number,
  y: number,
  strong: boolean,
  inks: Inks,
  titleRoom: number,
): void {
  draw.textAlign = "right";
  draw.font = `${strong ? "600 " : ""}${inks.size}px ${inks.font}`;
  draw.fillStyle = strong ? inks.accent : inks.text;
  draw.fillText(cutTo(draw, spec.rows[r] ?? "", g.left - 2 * PAD - titleRoom), g.left - PAD, y);
}

function colLabel(
  draw: Context2d,
  spec: HeatSpec,
  g: Geometry,
  c: number,
  x: number,
  strong: boolean,
  inks: Inks,
  titleRoom: number,
): void {
  draw.font = `${strong ? "600 " : ""}${inks.size}px ${inks.font}`;
  draw.fillStyle = strong ? inks.accent : inks.text;
  const room = g.upright ? g.top - 2 * PAD - titleRoom : g.cellWidth - 2;
  const text = cutTo(draw, spec.cols[c] ?? "", room);
  draw.save();
  draw.translate(x, g.top - PAD);
  if (g.upright) {
    draw.rotate(-Math.PI / 2);
    draw.textAlign = "left";
    draw.fillText(text, 0, 0);
  } else {
    draw.textAlign = "center";
    draw.fillText(text, 0, -inks.size / 2);
  }
  draw.restore();
}

function drawTitles(draw: Context2d, spec: HeatSpec, g: Geometry, inks: Inks): void {
  draw.font = `${inks.size}px ${inks.font}`;
  draw.fillStyle = inks.muted;
  draw.textBaseline = "top";
  draw.textAlign = "left";
  draw.fillText(cutTo(draw, spec.colTitle, g.width - g.left - g.side), g.left, 1);
  draw.save();
  draw.translate(1, g.top);
  draw.rotate(-Math.PI / 2);
  draw.textAlign = "right";
  draw.fillText(cutTo(draw, spec.rowTitle, Math.max(g.height - g.top, 40)), 0, 0);
  draw.restore();
}

/** Crosshair and the labels of the cell under the pointer. */
export function drawOverlay(
  canvas: HTMLCanvasElement,
  spec: HeatSpec,
  g: Geometry,
  offset: Offset,
  cursor: { row: number; col: number } | null,
  inks: Inks,
): void {
  const draw = begin(canvas, g);
  if (!draw || !cursor) return;
  const x = g.left - offset.x + cursor.col * g.cellWidth;
  const y = g.top - offset.y + lineOf(spec, cursor.row) * g.cellHeight;
  draw.save();
  draw.beginPath();
  draw.rect(g.left, g.top, g.width - g.left, g.height - g.top);
  draw.clip();
  draw.strokeStyle = inks.accent;
  draw.lineWidth = 1;
  draw.strokeRect(g.left, y - 0.5, spec.cols.length * g.cellWidth, g.cellHeight + 1);
  if (cursor.col >= 0) {
    draw.strokeRect(x - 0.5, g.top, g.cellWidth + 1, spec.rows.length * g.cellHeight);
    draw.lineWidth = 2;
    draw.strokeStyle = inks.text;
    draw.strokeRect(x - 1, y - 1, g.cellWidth + 2, g.cellHeight + 2);
  }
  draw.restore();
  const titleRoom = inks.size + 4;
  draw.textBaseline = "middle";
  draw.fillStyle = inks.ground;
  draw.fillRect(
    titleRoom,
    y + g.cellHeight / 2 - inks.size * 0.7,
    g.left - titleRoom - 1,
    inks.size * 1.4,
  );
  rowLabel(draw, spec, g, cursor.row, y + g.cellHeight / 2, true, inks, titleRoom);
  if (cursor.col < 0) return;
  draw.fillStyle = inks.ground;
  const half = g.upright ? inks.size * 0.7 : g.cellWidth / 2;
  draw.fillRect(x + g.cellWidth / 2 - half, titleRoom, 2 * half, g.top - titleRoom - 1);
  colLabel(draw, spec, g, cursor.col, x + g.cellWidth / 2, true, inks, titleRoom);
}
