"""Explanations as text for a terminal: shaded tokens, or bars where there are no colours."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..explanation import Explanation
    from ..tokens import Token

# Colours of the 256 that terminals agree on, weakest first, and where the letters turn white.
# The weakest step has none: it stays readable on a light and on a dark terminal.
_POSITIVE = (195, 153, 117, 75, 33, 26)
_NEGATIVE = (224, 217, 210, 203, 167, 124)
_WHITE_FROM = 4


def picture(one: Explanation, *, width: int = 80, colour: bool = False, ascii: bool = False) -> str:
    """A heading and the tokens with their scores, at most `width` wide."""
    if colour:
        body = f"{shaded(one, width)}\n{strongest(one, width)}"
    else:
        body = bars(one, width, *("#>" if ascii else "█▶"))
    return "\n".join(filter(None, (heading(one), body, aside(one))))


def aside(one: Explanation) -> str:
    """The tokens that take most whatever the text, with their share."""
    pairs = zip(one.sink, one.sink.shares, strict=True)
    listed = ", ".join(f"{_shown(token)} {share:.0%}" for token, share in pairs)
    return f"  set aside, whatever the text: {listed}" if listed else ""


def heading(one: Explanation) -> str:
    """What the scores of an explanation answer."""
    from ..methods import get_method

    entry = get_method(one.method)
    if one.answer is not None:
        return f"{one.method}: what the answer came from"
    if entry.class_specific:
        return f"{one.method}: what drove {one.target.label}"
    return f"{one.method}: what went into {_shown(one.tokens[one.focus])} (token {one.focus})"


def prediction(one: Explanation) -> str:
    """What is explained, with the model's probability for it; empty for a model with no head."""
    target = one.target
    if target.kind == "none":
        return ""
    share = "" if target.probability is None else f" ({target.probability:.1%})"
    label = " ".join(target.label.split()) if target.kind == "answer" else target.label
    return f"{label}{share}"


def shaded(one: Explanation, width: int = 80) -> str:
    """The text with a background that follows the scores: blue for more, red below zero."""
    lines, line, used = [], "", 0
    before: Token | None = None
    for token, share in zip(one.tokens, _shares(one), strict=True):
        text = _shown(token)
        glued = before is not None and before.word is not None and before.word == token.word
        gap = "" if glued or not used else " "
        if used + len(gap) + len(text) > width and used:
            lines.append(line)
            line, used, gap = "", 0, ""
        line += gap + _painted(text, share)
        used += len(gap) + len(text)
        before = token
    return "\n".join([*lines, line])


def _painted(text: str, share: float) -> str:
    palette = _NEGATIVE if share < 0 else _POSITIVE
    step = min(int(abs(share) * (len(palette) + 1)), len(palette)) - 1
    if step < 0:
        return text
    letters = 231 if step >= _WHITE_FROM else 16
    return f"\033[38;5;{letters};48;5;{palette[step]}m{text}\033[0m"


def strongest(one: Explanation, width: int = 80) -> str:
    """The largest scores in numbers, as many as fit into a line."""
    line = ""
    for i in sorted(range(len(one.tokens)), key=lambda i: -abs(one.scores[i])):
        more = f"{_shown(one.tokens[i])} {_numbers(one)[i]}"
        if len(line) + len(more) + 3 > width:
            break
        line += f"   {more}" if line else more
    return line


def _numbers(one: Explanation) -> list[str]:
    """Scores with three digits of the largest."""
    largest = float(abs(one.scores).max(initial=0.0)) or 1.0
    places = min(max(2 - math.floor(math.log10(largest)), 0), 12)
    return [f"{round(float(s), places) + 0.0:.{places}f}" for s in one.scores]  # no -0.0


def bars(one: Explanation, width: int = 80, mark: str = "█", cut: str = "▶") -> str:
    """A line for each token: its score, and a bar that is `-` below zero. The bar of a special
    token with more than fits ends in `cut`."""
    names = [_shown(token) for token in one.tokens]
    names = [name if len(name) <= 20 else f"{name[:17]}..." for name in names]
    column = max(map(len, names))
    numbers = _numbers(one)
    second = max(map(len, numbers))
    room = max(width - column - second - 6, 8)
    lines = []
    for name, number, share in zip(names, numbers, _shares(one), strict=True):
        bar = ("-" if share < 0 else mark) * round(min(abs(share), 1) * room)
        if abs(share) > 1:
            bar = bar[:-1] + cut
        lines.append(f"  {name:<{column}}  {number:>{second}}  {bar}".rstrip())
    return "\n".join(lines)


def by_unit(one: Explanation, units: Any, width: int = 80, ascii: bool = False) -> str:
    """A line for each unit of the text, what no unit covers last."""
    found = one.by(units)
    values = [float(score) for score in found.scores]
    largest = max(map(abs, values), default=0.0) or 1.0
    places = min(max(2 - math.floor(math.log10(largest)), 0), 12)
    numbers = [f"{round(value, places) + 0.0:.{places}f}" for value in values]
    names = [" ".join(name.split()) for name in found.names]
    column = min(max(map(len, names)), width // 2)
    names = [name if len(name) <= column else f"{name[: column - 1]}…" for name in names]
    second = max(map(len, numbers))
    room = max(width - column - second - 6, 8)
    lines = [heading(one)]
    for name, number, value in zip(names, numbers, values, strict=True):
        mark = "-" if value < 0 else "#" if ascii else "█"
        bar = mark * round(abs(value) / largest * room)
        lines.append(f"  {name:<{column}}  {number:>{second}}  {bar}".rstrip())
    return "\n".join(lines)


def _shares(one: Explanation) -> list[float]:
    """Scores as shares of the largest ordinary token's. [CLS] often has so much that nothing
    else could be seen beside it: what is beyond 1 is cut."""
    sink = one.sink
    pairs = zip(one.scores, one.tokens, strict=True)
    ordinary = [abs(float(s)) for s, t in pairs if not t.special and t not in sink]
    largest = max(ordinary, default=0.0) or float(abs(one.scores).max(initial=0.0)) or 1.0
    return [float(score) / largest for score in one.scores]


def _shown(token: Token) -> str:
    """A token's text on one line, without what would move the cursor."""
    text = "".join(char if char.isprintable() else "·" for char in token.text)
    return text.strip() or "·"
