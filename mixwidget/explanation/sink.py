"""Tokens that take most of what there is whatever the text says, and hide what its words get."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from ..tokens import Token

# What sinks have together is more than all the rest has.
_MOST = 0.5


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
    found = [i for i in empty if i != focus and sizes[i] > most]
    found.sort(key=lambda i: -sizes[i])
    shares = [float(sizes[i] / total) for i in found]
    return Sink([tokens[i] for i in found], shares) if sum(shares) > _MOST else Sink()
