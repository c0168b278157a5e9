/** Lines beside a matrix: for each row one value between 0 and 1. */

import type { Inks } from "./context";
import type { HeatSpec } from "./heatmap";
import type { Geometry } from "./heatmap-draw";

export interface Side {
  title: string;
  /** The first stands out. NaN is a gap. */
  lines: { name: string; values: Float32Array }[];
}

const WIDE = 104;
const NARROW = 84;
const GAP = 18;
/** Below this width there is only room for the matrix. */
const LEAST = 340;

export function sideRoom(spec: HeatSpec, width: number): number {
  if (!spec.side || width < LEAST) return 0;
  return GAP + (width < 600 ? NARROW : WIDE);
}

export function drawSide(
  draw: CanvasRenderingContext2D,
  spec: HeatSpec,
  g: Geometry,
  inks: Inks,
): void {
  const { side } = spec;
  if (!side || g.side === 0) return;
  const left = g.contentWidth + GAP;
  const right = g.contentWidth + g.side - 8;
  const height = spec.rows.length * g.cellHeight;
  draw.font = `${inks.size}px ${inks.font}`;
  draw.fillStyle = inks.muted;
  draw.textBaseline = "bottom";
  draw.textAlign = "left";
  draw.fillText("0", left, g.top - 3);
  draw.textAlign = "right";
  draw.fillText("100 %", right + 8, g.top - 3);
  draw.textBaseline = "top";
  draw.fillText(side.title, right + 8, 1);
  draw.strokeStyle = inks.line;
  draw.lineWidth = 1;
  draw.beginPath();
  for (const x of [left, (left + right) / 2, right]) {
    draw.moveTo(Math.round(x) + 0.5, g.top);
    draw.lineTo(Math.round(x) + 0.5, g.top + height);
  }
  draw.stroke();
  for (const [i, { values }] of [...side.lines.entries()].reverse())
    line(draw, spec, g, values, [left, right], i === 0 ? inks.text : inks.muted, i === 0);
}

function line(
  draw: CanvasRenderingContext2D,
  spec: HeatSpec,
  g: Geometry,
  values: Float32Array,
  [left, right]: [number, number],
  ink: string,
  first: boolean,
): void {
  const place = (row: number) => {
    const at = spec.upward ? spec.rows.length - 1 - row : row;
    return [
      left + (values[row] as number) * (right - left),
      g.top + (at + 0.5) * g.cellHeight,
    ] as const;
  };
  draw.strokeStyle = draw.fillStyle = ink;
  draw.lineWidth = first ? 2 : 1;
  draw.setLineDash(first ? [] : [3, 2]);
  draw.beginPath();
  let open = false;
  for (let row = 0; row < spec.rows.length; row++) {
    if (!Number.isFinite(values[row])) open = false;
    else {
      const [x, y] = place(row);
      if (open) draw.lineTo(x, y);
      else draw.moveTo(x, y);
      open = true;
    }
  }
  draw.stroke();
  draw.setLineDash([]);
  if (!first || g.cellHeight < 8) return;
  for (let row = 0; row < spec.rows.length; row++) {
    if (!Number.isFinite(values[row])) continue;
    const [x, y] = place(row);
    draw.beginPath();
    draw.arc(x, y, row === spec.selectedRow ? 4 : 2.5, 0, 2 * Math.PI);
    draw.fill();
  }
}
