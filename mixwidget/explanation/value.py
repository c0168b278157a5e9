"""What an explanation is as a value: equal to its like, told in a line, summed over words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from ..tokens import Token
    from .record import Array, Explanation

_LINE = 160  # characters; with what stands around it a line stays below 200
_TEXT, _LABEL = 60, 30


class WordScore(NamedTuple):
    """A word of the text, and what its tokens got together."""

    word: str
    score: float


def word_scores(tokens: Sequence[Token], scores: Array) -> list[WordScore]:
    """Scores of neighbouring tokens of one word added; what is no part of a word stays alone."""
    found: list[WordScore] = []
    before: Token | None = None
    for token, score in zip(tokens, scores, strict=True):
        if before is not None and _continues(before, token):
            last = found.pop()
            found.append(WordScore(last.word + token.text, last.score + float(score)))
        else:
            found.append(WordScore(token.text, float(score)))
        before = token
    return found


def _continues(before: Token, token: Token) -> bool:
    return token.word is not None and (before.word, before.segment) == (token.word, token.segment)


def same(one: Any, other: Any) -> bool:
    """Equal in all parts, arrays to the last bit (NaN is NaN); never raises."""
    if one is other:
        return True
    if hasattr(one, "detach") and hasattr(other, "detach"):  # tensors, without importing torch
        one, other = one.detach().cpu().numpy(), other.detach().cpu().numpy()
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        like = one.dtype == other.dtype and one.shape == other.shape
        return like and one.tobytes() == other.tobytes()
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and type(one) is type(other):
        return len(one) == len(other) and all(map(same, one, other))
    try:
        return bool(one == other) or bool(one != one and other != other)
    except Exception:  # an option may be any object, and its comparison may do anything
        return False


def plain_text(text: str | list[dict[str, Any]]) -> str:
    """A text, or what a chat's messages say."""
    return text if isinstance(text, str) else "\n".join(str(one["content"]) for one in text)


def in_a_line(one: Explanation) -> str:
    """`repr`: method, text, what is explained and how large it is."""
    label = shortened(one.target.label, _LABEL)
    about = f" of {label!r}" if label and one.target.kind != "none" else ""
    which = "" if one.id is None else f", id={shortened(str(one.id), _LABEL)}"
    line = f"{shortened(one.method, _LABEL)}{about}: {shortened(plain_text(one.text), _TEXT)!r}"
    layers = one.maps if one.maps is not None else one.layer_scores
    count = "" if layers is None else f", {len(layers)} layers"
    return f"<Explanation {shortened(line, _LINE)}, {len(one.tokens)} tokens{count}{which}>"


def shortened(text: str, most: int) -> str:
    """On one line and at most so long, cut at its end."""
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
