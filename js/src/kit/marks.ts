/** What is looked at: a token under the pointer, and one that a click holds. Shared by all parts
 * of one view of a widget, and no trait: looking asks for nothing. */

export interface Marks {
  /** Position of a token; null if none. */
  readonly hover: number | null;
  readonly pin: number | null;
  /** Tokens that a test has taken away. */
  readonly gone: ReadonlySet<number>;
  point(token: number | null): void;
  hold(token: number | null): void;
  remove(tokens: Iterable<number>): void;
  /** Told of every change, at once. */
  onChange(callback: () => void): void;
}

export function createMarks(): Marks {
  const callbacks: (() => void)[] = [];
  let hover: number | null = null;
  let pin: number | null = null;
  let gone: ReadonlySet<number> = new Set();
  const tell = () => {
    for (const callback of callbacks) callback();
  };
  return {
    get hover() {
      return hover;
    },
    get pin() {
      return pin;
    },
    get gone() {
      return gone;
    },
    point(token) {
      if (hover === token) return;
      hover = token;
      tell();
    },
    hold(token) {
      if (pin === token) return;
      pin = token;
      tell();
    },
    remove(tokens) {
      const next = new Set(tokens);
      if (next.size === 0 && gone.size === 0) return;
      gone = next;
      tell();
    },
    onChange: (callback) => callbacks.push(callback),
  };
}
