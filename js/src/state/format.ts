/** Numbers and durations in words. */

export function number(value: number): string {
  if (!Number.isFinite(value)) return "not a number";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text =
    size >= 1000 || size < 0.0005
      ? value.toExponential(1)
      : size >= 100
        ? value.toFixed(0)
        : size >= 10
          ? value.toFixed(1)
          : size >= 1
            ? value.toFixed(2)
            : value.toFixed(3);
  return text.replaceAll("-", "−");
}

export function percent(share: number): string {
  const value = 100 * share;
  if (value === 0) return "0 %";
  if (Math.abs(value) < 0.1) return "< 0.1 %";
  return `${value.toFixed(Math.abs(value) < 9.95 ? 1 : 0).replace("-", "−")} %`;
}

export function duration(seconds: number): string {
  if (seconds < 1) return "less than a second";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

/** Time relative to one forward pass, in words. */
export function cost(passes: number | null | undefined): string {
  if (passes === null || passes === undefined || !Number.isFinite(passes)) return "not known";
  if (passes <= 0.15) return "almost nothing beyond the model's own pass";
  if (passes < 0.75) return "less than one more pass of the model";
  if (passes < 1.5) return "about as long as one pass of the model";
  if (passes < 10) return `about ${passes.toFixed(passes < 3 ? 1 : 0)} passes of the model`;
  return `about ${Math.round(passes)} passes of the model`;
}

export const plural = (count: number, one: string, many = `${one}s`) =>
  `${count} ${count === 1 ? one : many}`;

/** A short form that keeps both ends readable. */
export function shorten(text: string, length: number): string {
  const characters = [...text];
  if (characters.length <= length) return text;
  return `${characters.slice(0, Math.max(1, length - 1)).join("")}…`;
}

/** A share in a sentence: whole percents, one place below one, more where nearly all is taken. */
export function share(part: number, exact = false): string {
  const value = 100 * part;
  if (value >= 99.5 && value < 100 && exact) {
    const places = Math.min(4, Math.max(1, Math.ceil(-Math.log10(100 - value))));
    return `${value.toFixed(places)} %`;
  }
  if (value >= 0.95 || value === 0) return `${Math.round(value)} %`;
  return value >= 0.05 ? `${value.toFixed(1)} %` : "< 0.1 %";
}

/** A score with its sign, to two figures. */
export function signed(value: number): string {
  const size = Math.abs(value);
  const text = size >= 0.995 ? number(size) : size.toFixed(Math.abs(value) >= 0.0095 ? 2 : 4);
  return `${value < 0 ? "−" : "+"}${Number(text) === 0 ? number(size) : text}`;
}

/** A change of a probability. */
export function points(change: number): string {
  const size = Math.abs(100 * change);
  const text = size >= 0.95 ? String(Math.round(size)) : size >= 0.05 ? size.toFixed(1) : "< 0.1";
  return `${text} ${text === "1" ? "point" : "points"}`;
}
