/** Small pictures on buttons, drawn in the colour of the text. */

const NS = "http://www.w3.org/2000/svg";
const PATHS = {
  edit: "M3 13h2.5L13 5.5 10.5 3 3 10.5zM9 4.5 11.5 7",
  display:
    "M2 4.5h7M12 4.5h2M2 11.5h2M7 11.5h7M9 4.5a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0-3 0M4 11.5a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0-3 0",
  save: "M8 2v8M4.8 7 8 10.2 11.2 7M2.5 13.5h11",
  present: "M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10",
  play: "M5 3.2 12.5 8 5 12.8z",
  pause: "M5 3.5v9M11 3.5v9",
} as const;

export type IconName = keyof typeof PATHS;

export function icon(name: IconName): SVGElement {
  const svg = document.createElementNS(NS, "svg");
  for (const [key, value] of Object.entries({
    class: "mix-icon",
    viewBox: "0 0 16 16",
    "aria-hidden": "true",
  }))
    svg.setAttribute(key, value);
  const path = document.createElementNS(NS, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}
