/** Formulas: MathML as Python sends it, built anew from elements that do nothing but draw. */

const NS = "http://www.w3.org/1998/Math/MathML";
const ELEMENTS = new Set(
  `math mrow mi mn mo mtext mspace mfrac msqrt mroot mstyle mpadded mphantom menclose msub msup msubsup
  munder mover munderover mmultiscripts mprescripts none mtable mtr mtd`.split(/\s+/),
);
const ATTRIBUTES = new Set(
  `display displaystyle scriptlevel mathvariant stretchy symmetric fence separator form accent
  accentunder minsize maxsize width height depth lspace rspace linethickness columnalign rowspacing
  columnspacing notation`.split(/\s+/),
);

/** A <math> element; null where the source is no MathML, or holds anything else beside it. */
export function mathOf(source: string): Element | null {
  const { documentElement } = new DOMParser().parseFromString(source, "application/xml");
  return documentElement?.localName === "math" ? copied(documentElement) : null;
}

function copied(from: Element): Element | null {
  if (!ELEMENTS.has(from.localName)) return null;
  const made = document.createElementNS(NS, from.localName);
  for (const { name, value } of from.attributes) {
    if (ATTRIBUTES.has(name)) made.setAttribute(name, value);
  }
  for (const child of from.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) made.append(child.nodeValue ?? "");
    else if (child.nodeType === Node.ELEMENT_NODE) {
      const inside = copied(child as Element);
      if (!inside) return null;
      made.append(inside);
    }
  }
  return made;
}
