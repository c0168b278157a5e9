"""What an explanation is as a value: equal to its like, told in a line, summed over words, and the
tokens that take most of it whatever the text says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from ..tokens import Token

if TYPE_CHECKING:
    from .record import Array, Explanation

_LINE = 160  # characters; with what stands around it a line stays below 200
_TEXT, _LABEL = 60, 30
# What sinks have together is more than all the rest has.
_MOST = 0.5
_LEAST = 0.05  # of all, that each of them has


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


class Sink(Sequence[Token]):
    """The tokens, strongest first; empty where no token is one. A place is in it as well.

    Attributes:
        shares: of each, of the sum of all sizes; `share` is that of all of them.
    """

    def __init__(self, tokens: Sequence[Token] = (), shares: Sequence[float] = ()) -> None:
        self._tokens, self.shares = tuple(tokens), tuple(shares)

    @property
    def share(self) -> float:
        return float(sum(self.shares))

    @property
    def positions(self) -> list[int]:
        return [token.position for token in self._tokens]

    @overload
    def __getitem__(self, index: int) -> Token: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Token]: ...

    def __getitem__(self, index: int | slice) -> Token | Sequence[Token]:
        return self._tokens[index]

    def __len__(self) -> int:
        return len(self._tokens)

    def __iter__(self) -> Iterator[Token]:
        return iter(self._tokens)

    def __contains__(self, one: object) -> bool:
        """A token is in it by its place: the same piece may stand elsewhere too."""
        place = one.position if isinstance(one, Token) else one
        return place in self.positions if isinstance(place, int) else one in self._tokens

    def __eq__(self, other: object) -> bool:
        return list(self._tokens) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = (f"{t.text.strip()!r} {s:.0%}" for t, s in zip(self, self.shares, strict=True))
        return f"Sink({', '.join(shown)})"


def sink_of(tokens: Sequence[Token], scores: NDArray[np.floating], focus: int) -> Sink:
    """Of special tokens, and the first one where scores have no sign, those that have more than
    any word: together more than half of all. Where the scores are read is none of them."""
    sizes = np.abs(np.asarray(scores, dtype=np.float64))
    total = float(sizes.sum())
    if len(tokens) < 3 or not total > 0:
        return Sink()
    first = 0 if float(np.min(scores)) >= 0 else -1
    empty = [t.position for t in tokens if t.special or t.position == first]
    words = [i for i in range(len(tokens)) if i not in set(empty) and i != focus]
    if not words:
        return Sink()
    most = float(sizes[words].max())
    least = max(most, _LEAST * total)
    found = [i for i in empty if i != focus and sizes[i] > least]
    found.sort(key=lambda i: -sizes[i])
    shares = [float(sizes[i] / total) for i in found]
    return Sink([tokens[i] for i in found], shares) if sum(shares) > _MOST else Sink()
