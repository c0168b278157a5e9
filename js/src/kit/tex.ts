/** The subset of TeX that method cards use, as MathML (built as nodes) or as plain text. */

const NS = "http://www.w3.org/1998/Math/MathML";

const SYMBOLS: Record<string, string> = {
  alpha: "α",
  beta: "β",
  gamma: "γ",
  delta: "δ",
  epsilon: "ϵ",
  varepsilon: "ε",
  zeta: "ζ",
  eta: "η",
  theta: "θ",
  iota: "ι",
  kappa: "κ",
  lambda: "λ",
  mu: "μ",
  nu: "ν",
  xi: "ξ",
  pi: "π",
  rho: "ρ",
  sigma: "σ",
  tau: "τ",
  upsilon: "υ",
  phi: "ϕ",
  varphi: "φ",
  chi: "χ",
  psi: "ψ",
  omega: "ω",
  Gamma: "Γ",
  Delta: "Δ",
  Theta: "Θ",
  Lambda: "Λ",
  Xi: "Ξ",
  Pi: "Π",
  Sigma: "Σ",
  Phi: "Φ",
  Psi: "Ψ",
  Omega: "Ω",
  ell: "ℓ",
  partial: "∂",
  nabla: "∇",
  infty: "∞",
  emptyset: "∅",
};
const OPERATORS: Record<string, string> = {
  sum: "∑",
  prod: "∏",
  int: "∫",
  cdot: "·",
  times: "×",
  odot: "⊙",
  oplus: "⊕",
  otimes: "⊗",
  pm: "±",
  le: "≤",
  leq: "≤",
  ge: "≥",
  geq: "≥",
  ne: "≠",
  neq: "≠",
  approx: "≈",
  propto: "∝",
  equiv: "≡",
  sim: "∼",
  in: "∈",
  notin: "∉",
  subset: "⊂",
  cup: "∪",
  cap: "∩",
  to: "→",
  rightarrow: "→",
  leftarrow: "←",
  gets: "←",
  mapsto: "↦",
  Rightarrow: "⇒",
  leftrightarrow: "↔",
  ldots: "…",
  dots: "…",
  cdots: "⋯",
  mid: "|",
  vert: "|",
  lvert: "|",
  rvert: "|",
  Vert: "‖",
  lVert: "‖",
  rVert: "‖",
  "|": "‖",
  "{": "{",
  "}": "}",
  langle: "⟨",
  rangle: "⟩",
  lceil: "⌈",
  rceil: "⌉",
  lfloor: "⌊",
  rfloor: "⌋",
  circ: "∘",
  star: "⋆",
  ast: "∗",
  setminus: "∖",
  prime: "′",
  top: "⊤",
  perp: "⊥",
  neg: "¬",
  lnot: "¬",
  forall: "∀",
  exists: "∃",
  "%": "%",
  "#": "#",
  "&": "&",
  _: "_",
  colon: ":",
  ll: "≪",
  gg: "≫",
  backslash: "\\",
};
const SPACES: Record<string, number> = {
  quad: 1,
  qquad: 2,
  ",": 0.17,
  ":": 0.22,
  ";": 0.28,
  "!": 0,
  " ": 0.33,
};
const FUNCTIONS = new Set(
  "max min cos sin tan log ln exp arg argmax argmin lim sup inf det dim Pr softmax tanh".split(" "),
);
const ACCENTS: Record<string, string> = {
  hat: "^",
  widehat: "^",
  bar: "¯",
  overline: "¯",
  tilde: "~",
  widetilde: "~",
  vec: "→",
  dot: "˙",
};
const TEXTS = new Set(
  "text mathrm operatorname textrm mathsf texttt mathtt mathbf boldsymbol mathbb mathcal mathit textbf textit".split(
    " ",
  ),
);
const FRACTIONS = new Set(["frac", "tfrac", "dfrac", "cfrac"]);
/** \big is passed over too: many fonts have no bracket between their plain one and one of two lines. */
const IGNORED = new Set("big bigl bigr bigm limits nolimits displaystyle textstyle".split(" "));
/** Heights that are asked for by name, in em; the letters l, r and m after them say the side. */
const HEIGHTS: Record<string, number> = { Big: 1.8, bigg: 2.4, Bigg: 3 };
const BRACKETS = new Set("()[]{}|‖⟨⟩⌈⌉⌊⌋");
const ABOVE_AND_BELOW = new Set(["∑", "∏"]);

type Piece =
  | { kind: "leaf"; tag: "mi" | "mn" | "mo" | "mtext"; text: string }
  /** As high as what it encloses, or of the given height in em. */
  | { kind: "bracket"; text: string; height: "fit" | number }
  | { kind: "row"; items: Piece[] }
  | { kind: "fraction"; over: Piece; under: Piece }
  | { kind: "root"; of: Piece }
  | { kind: "accent"; of: Piece; sign: string }
  | { kind: "scripts"; base: Piece; sub: Piece | null; sup: Piece | null }
  | { kind: "space"; em: number };

const TOKENS = /\\[a-zA-Z]+\*?|\\.|[{}^_'&]|\d+(?:\.\d+)?|\s+|[\s\S]/gu;

class Reader {
  private readonly tokens: string[];
  private at = 0;

  constructor(source: string) {
    this.tokens = source.match(TOKENS) ?? [];
  }

  /** Pieces up to a closing brace or the end. */
  row(): Piece {
    const items: Piece[] = [];
    for (;;) {
      const token = this.tokens[this.at];
      if (token === undefined || token === "}") break;
      const piece = this.scripted();
      if (piece) items.push(piece);
    }
    return items.length === 1 ? (items[0] as Piece) : { kind: "row", items };
  }

  /** The whole source; a stray closing brace is skipped, not the end. */
  all(): Piece {
    const items: Piece[] = [];
    while (this.at < this.tokens.length) {
      items.push(this.row());
      this.at++;
    }
    return items.length === 1 ? (items[0] as Piece) : { kind: "row", items };
  }

  private scripted(): Piece | null {
    let base = this.piece();
    let sub: Piece | null = null;
    let sup: Piece | null = null;
    for (;;) {
      this.skipBlank();
      const token = this.tokens[this.at];
      if (token === "_") {
        this.at++;
        sub = this.argument();
      } else if (token === "^") {
        this.at++;
        sup = this.argument();
      } else if (token === "'") {
        this.at++;
        sup = { kind: "leaf", tag: "mo", text: "′" };
      } else break;
    }
    if (!sub && !sup) return base;
    base ??= { kind: "row", items: [] };
    return { kind: "scripts", base, sub, sup };
  }

  private skipBlank(): void {
    while (/^\s+$/.test(this.tokens[this.at] ?? "x")) this.at++;
  }

  /** One piece or a group in braces. */
  private argument(): Piece {
    this.skipBlank();
    return this.piece() ?? { kind: "row", items: [] };
  }

  private group(): Piece {
    this.at++; // the opening brace
    const inside = this.row();
    this.at++; // the closing one
    return inside;
  }

  /** What stands in braces, as it is written. */
  private plain(): string {
    this.skipBlank();
    if (this.tokens[this.at] !== "{") return this.tokens[this.at++] ?? "";
    let depth = 0;
    let text = "";
    for (; this.at < this.tokens.length; this.at++) {
      const token = this.tokens[this.at] as string;
      if (token === "{") {
        if (depth++ > 0) text += token;
      } else if (token === "}") {
        if (--depth === 0) break;
        text += token;
      } else text += token.startsWith("\\") && token.length > 1 ? wordFor(token.slice(1)) : token;
    }
    this.at++;
    return text;
  }

  private piece(): Piece | null {
    const token = this.tokens[this.at];
    if (token === undefined || token === "^" || token === "_" || token === "'" || token === "}")
      return null;
    if (token === "{") return this.group();
    this.at++;
    if (token.startsWith("\\") && token.length > 1) return this.command(token.slice(1));
    if (/^\s+$/.test(token) || token === "&") return null;
    if (token === "~") return { kind: "space", em: 0.33 };
    if (/^\d/.test(token)) return { kind: "leaf", tag: "mn", text: token };
    if (/^\p{L}$/u.test(token)) return { kind: "leaf", tag: "mi", text: token };
    return { kind: "leaf", tag: "mo", text: token === "-" ? "−" : token === "*" ? "∗" : token };
  }

  private command(name: string): Piece | null {
    if (IGNORED.has(name)) return null;
    if (name === "left") return this.enclosed();
    if (name === "right") return this.bracket("fit");
    const height = HEIGHTS[name.replace(/[lrm]$/, "")];
    if (height) return this.bracket(height);
    if (FRACTIONS.has(name)) {
      return { kind: "fraction", over: this.digit(), under: this.digit() };
    }
    if (name === "sqrt") return { kind: "root", of: this.argument() };
    const accent = ACCENTS[name];
    if (accent) return { kind: "accent", of: this.argument(), sign: accent };
    if (TEXTS.has(name)) return { kind: "leaf", tag: "mtext", text: this.plain() };
    if (name === "\\") return { kind: "space", em: 2 };
    if (name in SPACES) return { kind: "space", em: SPACES[name] ?? 0 };
    if (FUNCTIONS.has(name)) return { kind: "leaf", tag: "mi", text: name };
    const symbol = SYMBOLS[name];
    if (symbol) return { kind: "leaf", tag: "mi", text: symbol };
    return { kind: "leaf", tag: "mo", text: OPERATORS[name] ?? name };
  }

  /** From \left to its \right: a row of its own, so that its brackets are as high as it is. */
  private enclosed(): Piece {
    const items: (Piece | null)[] = [this.bracket("fit")];
    for (;;) {
      const token = this.tokens[this.at];
      if (token === undefined || token === "}") break;
      if (token === "\\right") {
        this.at++;
        items.push(this.bracket("fit"));
        break;
      }
      items.push(this.scripted());
    }
    return { kind: "row", items: items.filter((item) => item !== null) };
  }

  /** The sign after a command that sets its height; a full stop stands for none. */
  private bracket(height: "fit" | number): Piece | null {
    this.skipBlank();
    if (this.tokens[this.at] === ".") {
      this.at++;
      return null;
    }
    const sign = this.piece();
    return sign?.kind === "leaf" && BRACKETS.has(sign.text)
      ? { kind: "bracket", text: sign.text, height }
      : sign;
  }

  /** TeX reads \tfrac12 as one half: without braces an argument is one digit. */
  private digit(): Piece {
    this.skipBlank();
    const token = this.tokens[this.at] ?? "";
    if (/^\d.+$/.test(token)) {
      this.tokens[this.at] = token.slice(1);
      return { kind: "leaf", tag: "mn", text: token[0] as string };
    }
    return this.argument();
  }
}

const wordFor = (name: string) => SYMBOLS[name] ?? OPERATORS[name] ?? (name in SPACES ? " " : name);

function node(tag: string, ...children: Node[]): Element {
  const made = document.createElementNS(NS, tag);
  made.append(...children);
  return made;
}

function build(piece: Piece): Element {
  switch (piece.kind) {
    case "leaf": {
      const leaf = node(piece.tag);
      // MathML drops blanks at the ends of a text, TeX keeps them.
      leaf.textContent =
        piece.tag === "mtext" ? piece.text.replace(/^\s+|\s+$/g, "\u00a0") : piece.text;
      if (piece.tag === "mo" && BRACKETS.has(piece.text)) leaf.setAttribute("stretchy", "false");
      return leaf;
    }
    case "bracket": {
      const sign = node("mo");
      sign.textContent = piece.text;
      sign.setAttribute("stretchy", "true");
      if (piece.height === "fit") return sign;
      sign.setAttribute("symmetric", "true");
      sign.setAttribute("minsize", `${piece.height}em`);
      sign.setAttribute("maxsize", `${piece.height}em`);
      return sign;
    }
    case "row":
      return node("mrow", ...piece.items.map(build));
    case "fraction":
      return node("mfrac", build(piece.over), build(piece.under));
    case "root":
      return node("msqrt", build(piece.of));
    case "accent": {
      const sign = node("mo");
      sign.textContent = piece.sign;
      return node("mover", build(piece.of), sign);
    }
    case "space": {
      const space = node("mspace");
      space.setAttribute("width", `${piece.em}em`);
      return space;
    }
    case "scripts": {
      const { base, sub, sup } = piece;
      const stacked =
        base.kind === "leaf" &&
        (ABOVE_AND_BELOW.has(base.text) || base.text === "max" || base.text === "min");
      const [lower, upper, both] = stacked
        ? ["munder", "mover", "munderover"]
        : ["msub", "msup", "msubsup"];
      if (sub && sup) return node(both as string, build(base), build(sub), build(sup));
      return node((sub ? lower : upper) as string, build(base), build((sub ?? sup) as Piece));
    }
  }
}

function write(piece: Piece): string {
  const wrapped = (inner: Piece) => {
    const text = write(inner);
    return [...text].length > 1 ? `(${text})` : text;
  };
  switch (piece.kind) {
    case "bracket":
      return piece.text;
    case "leaf":
      return /^[=≤≥≠≈∝∼∈→←+−⊙]$/.test(piece.text) ? ` ${piece.text} ` : piece.text;
    case "row":
      return piece.items.map(write).join("");
    case "fraction":
      return `${wrapped(piece.over)}/${wrapped(piece.under)}`;
    case "root":
      return `√${wrapped(piece.of)}`;
    case "accent":
      return `${write(piece.of)}${piece.sign}`;
    case "space":
      return piece.em > 0.5 ? "   " : " ";
    case "scripts":
      return (
        write(piece.base) +
        (piece.sub ? `_${wrapped(piece.sub)}` : "") +
        (piece.sup ? `^${wrapped(piece.sup)}` : "")
      );
  }
}

/** A <math> element. Anything unknown is shown by its name; nothing is ever lost. */
export function toMath(source: string): Element {
  const math = node("math", build(new Reader(source).all()));
  math.setAttribute("display", "block");
  return math;
}

export const toText = (source: string): string =>
  write(new Reader(source).all())
    .replace(/ {2,}/g, (blank) => (blank.length > 3 ? "   " : " "))
    .trim();

/** A formula of several parts, one per line: they are set apart by wide spaces. */
export const partsOf = (source: string): string[] =>
  source
    .split(/,?\s*\\q?quad\s*/)
    .map((part) => part.trim())
    .filter((part) => part !== "");
