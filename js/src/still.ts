/** Hides the still picture that the kernel puts beside a widget for the time after it
 * (mixwidget/widget/still.py), as long as the widget itself is there. */

const BASE64 = /^[A-Za-z0-9+/=]{20,}$/;

/** Pictures whose bytes hold the mark are hidden by a rule that comes and goes with the view. */
export function hideStill(element: HTMLElement, mark: unknown, signal: AbortSignal): void {
  if (typeof mark !== "string" || !BASE64.test(mark)) return;
  const picture = `img[src*="${mark}"]`;
  const style = element.ownerDocument.createElement("style");
  // The whole output where it can be told, so that no gap is left.
  const output = `.jp-OutputArea-child:has(> .jp-OutputArea-output > ${picture})`;
  const hidden = "{ display: none !important; }";
  style.textContent = `${picture} ${hidden} ${output} ${hidden}`;
  element.append(style);
  signal.addEventListener("abort", () => style.remove());
}
