/** Colour scales: perceptually ordered for unsigned values, two hues for signed ones. */

import { largestSize, quantileOfSize } from "../state/stats";
import type { ScaleName } from "../wire/types";

export type Theme = "light" | "dark";
type Rgb = readonly [number, number, number];

/** Weak to strong on a light ground. On a dark ground blues and greys have stops of their own. */
const STOPS: Record<ScaleName, Record<Theme, string[]>> = {
  blues: {
    light: ["#ffffff", "#d8e7f7", "#a3c8ec", "#5f9fdb", "#2a74bd", "#0f4d92", "#082f60"],
    dark: ["#16191d", "#17304c", "#1c4d7e", "#2670b3", "#4d98dc", "#8fc2f2", "#d6ebff"],
  },
  greys: {
    light: ["#ffffff", "#e2e2e2", "#bdbdbd", "#8f8f8f", "#5f5f5f", "#333333", "#141414"],
    dark: ["#16191d", "#2e3134", "#4c4f52", "#727476", "#9c9ea0", "#c9cacb", "#f5f5f5"],
  },
  viridis: {
    light: [
      "#fde725",
      "#b5de2b",
      "#6ece58",
      "#35b779",
      "#1f9e89",
      "#26828e",
      "#31688e",
      "#3e4989",
      "#482878",
      "#440154",
    ],
    dark: [
      "#440154",
      "#482878",
      "#3e4989",
      "#31688e",
      "#26828e",
      "#1f9e89",
      "#35b779",
      "#6ece58",
      "#b5de2b",
      "#fde725",
    ],
  },
  cividis: {
    light: ["#fee838", "#d9c55c", "#b0a473", "#8b8778", "#6c6e72", "#4a546d", "#213b6e", "#00224e"],
    dark: ["#00224e", "#213b6e", "#4a546d", "#6c6e72", "#8b8778", "#b0a473", "#d9c55c", "#fee838"],
  },
};

/** Orange below zero, blue above; apart for every common kind of colour blindness. */
const DIVERGING: Record<Theme, string[]> = {
  light: [
    "#7a3403",
    "#b85a0c",
    "#e48b3d",
    "#f6c08e",
    "#ffffff",
    "#a9cbee",
    "#5c9bd8",
    "#256db5",
    "#0c4282",
  ],
  dark: [
    "#ffdcb8",
    "#f7ad66",
    "#d07a26",
    "#8a4a10",
    "#15181d",
    "#174a7c",
    "#2f7cc0",
    "#72b2ee",
    "#cfe6ff",
  ],
};

const LEVELS = 256;

export interface Scale {
  signed: boolean;
  /** Values from `min` to `max` run through the colours; what is beyond takes the last one. */
  min: number;
  max: number;
  /** Some values lie beyond: the legend says so. */
  clipped: boolean;
  /** 256 colours as 0xAABBGGRR, ready for the pixels of a canvas on a little-endian machine. */
  pixels: Uint32Array;
  css(value: number): string;
  /** Black or white, whichever reads better on the colour of the value. */
  ink(value: number): string;
}

export function parseHex(hex: string): Rgb {
  const number = Number.parseInt(hex.slice(1), 16);
  return [(number >> 16) & 255, (number >> 8) & 255, number & 255];
}

const toLinear = (c: number) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
const toGamma = (c: number) => (c <= 0.0031308 ? 12.92 * c : 1.055 * c ** (1 / 2.4) - 0.055);

/** Relative luminance, 0 to 1. */
export function luminance([r, g, b]: Rgb): number {
  return 0.2126 * toLinear(r / 255) + 0.7152 * toLinear(g / 255) + 0.0722 * toLinear(b / 255);
}

export function contrast(a: Rgb, b: Rgb): number {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

function table(stops: string[]): Rgb[] {
  const colours = stops.map(parseHex);
  return Array.from({ length: LEVELS }, (_, level) => {
    const at = (level / (LEVELS - 1)) * (colours.length - 1);
    const low = Math.min(Math.floor(at), colours.length - 2);
    const [a, b] = [colours[low] as Rgb, colours[low + 1] as Rgb];
    const mix = (i: 0 | 1 | 2) => {
      const linear = toLinear(a[i] / 255) * (1 - at + low) + toLinear(b[i] / 255) * (at - low);
      return Math.round(255 * toGamma(linear));
    };
    return [mix(0), mix(1), mix(2)] as const;
  });
}

/** Pure black: on a ground of middle tone anything lighter, and white, are below 4.5 to 1. */
const INK_DARK: Rgb = [0, 0, 0];
const INK_LIGHT: Rgb = [255, 255, 255];
const css = ([r, g, b]: Rgb) => `rgb(${r}, ${g}, ${b})`;

interface Table {
  pixels: Uint32Array;
  css: string[];
  ink: string[];
}

export interface Palette {
  scale(signed: boolean, max: number, clipped?: boolean): Scale;
}

/** The colours of one theme; tables are made once and shared by all scales. */
export function palette(name: ScaleName, theme: Theme): Palette {
  const made = new Map<boolean, Table>();
  const tables = (signed: boolean): Table => {
    const known = made.get(signed);
    if (known) return known;
    const colours = table(signed ? DIVERGING[theme] : (STOPS[name] ?? STOPS.blues)[theme]);
    const built = {
      pixels: Uint32Array.from(colours, ([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r),
      css: colours.map(css),
      ink: colours.map((ground) => {
        const dark = contrast(ground, INK_DARK) >= contrast(ground, INK_LIGHT);
        return css(dark ? INK_DARK : INK_LIGHT);
      }),
    };
    made.set(signed, built);
    return built;
  };
  return {
    scale(signed, size, clipped = false) {
      const known = tables(signed);
      const max = size > 0 ? size : 1;
      const min = signed ? -max : 0;
      const level = (value: number) => levelOf(Number.isFinite(value) ? value : 0, min, max);
      return {
        signed,
        min,
        max,
        clipped,
        pixels: known.pixels,
        css: (value) => known.css[level(value)] as string,
        ink: (value) => known.ink[level(value)] as string,
      };
    },
  };
}

export function levelOf(value: number, min: number, max: number): number {
  const level = Math.round(((value - min) / (max - min)) * (LEVELS - 1));
  return level < 0 ? 0 : level >= LEVELS ? LEVELS - 1 : level;
}

/**
 * How far a scale goes beyond what most values reach. Tokens keep most of themselves, so their
 * own share would leave all others blank: it takes the last colour, and the legend says "or more".
 */
const BEYOND = 1.6;
/** But where next to nothing is left for the others, they stay pale: a hundredth is no half. */
const FAINTEST = 0.1;

function clippedScale(from: Palette, peak: number, most: number, signed: boolean): Scale {
  const high = BEYOND * most;
  return high > 0 && high < 0.98 * peak ? from.scale(signed, high, true) : from.scale(signed, peak);
}

/** A scale for a row: up to the strongest token, unless it stands far above all others. */
export function rowScale(from: Palette, values: ArrayLike<number>, signed: boolean): Scale {
  let [peak, second] = [0, 0];
  for (let i = 0; i < values.length; i++) {
    const size = Math.abs(values[i] as number);
    if (!(size < Number.POSITIVE_INFINITY)) continue;
    if (size > peak) [peak, second] = [size, peak];
    else if (size > second) second = size;
  }
  const most = second > 0 ? Math.max(second, (FAINTEST * peak) / BEYOND) : 0;
  return clippedScale(from, peak, most, signed);
}

/** A scale for a map: a diagonal, or one strong column, does not leave the rest blank. */
export function mapScale(
  from: Palette,
  values: ArrayLike<number>,
  signed: boolean,
  columns: number,
): Scale {
  const most = quantileOfSize(values, Math.max(0, 1 - 1.2 / Math.max(columns, 1)));
  return clippedScale(from, largestSize(values), most, signed);
}

/** Values as pixels of the scale's colours. */
export function paint(values: ArrayLike<number>, scale: Scale, into: Uint32Array): void {
  const factor = (LEVELS - 1) / (scale.max - scale.min);
  for (let i = 0; i < into.length; i++) {
    let level = ((values[i] as number) - scale.min) * factor + 0.5;
    if (Number.isNaN(level)) {
      into[i] = 0; // not computed: see-through
      continue;
    }
    level = level > 0 ? (level < LEVELS ? level : LEVELS - 1) : 0;
    into[i] = scale.pixels[level | 0] as number;
  }
}
