"""Tokens as they are shown: single or merged to words, with or without special tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

if TYPE_CHECKING:
    from ..explanation import Explanation
    from ..tokens import Token

Array = NDArray[np.floating]
_INVISIBLE = re.compile(r"[\s\u200b\u00ad\u2060\ufeff]*")
_LONGEST = 28


@dataclass
class Unit:
    """A token, a word, or a fold of several: its text and the places of its tokens.

    `glued` means that it continues the word before it: no space between them. `fold` is how many
    units a fold stands for, 0 for a unit that stands for itself.
    """

    text: str
    tokens: list[int]
    special: bool
    segment: int
    glued: bool
    fold: int = 0


@dataclass
class Layout:
    """Units shown, in order. `focus` is the one that holds the focus token, None if hidden."""

    units: list[Unit]
    focus: int | None
    tokens: int

    @property
    def texts(self) -> list[str]:
        return [unit.text for unit in self.units]

    @property
    def breaks(self) -> list[int]:
        """Units before which another text begins."""
        pairs = zip(self.units, self.units[1:], strict=False)
        return [i + 1 for i, (a, b) in enumerate(pairs) if a.segment != b.segment]

    @property
    def hides(self) -> bool:
        return sum(len(unit.tokens) for unit in self.units) < self.tokens

    def holding(self, tokens: Sequence[int]) -> list[int]:
        """Columns of the units in which one of these tokens stands."""
        wanted = set(tokens)
        return [i for i, unit in enumerate(self.units) if wanted & {*unit.tokens}]

    def matrix(self) -> NDArray[np.float64]:
        """[tokens, units], 1 where a token belongs to a unit."""
        belongs = np.zeros((self.tokens, len(self.units)))
        for column, unit in enumerate(self.units):
            belongs[unit.tokens, column] = 1.0
        return belongs

    def columns(self, values: Array, signed: bool) -> Array:
        """[..., tokens] -> [..., units]: added; unsigned ones brought to the same total."""
        merged = values @ self.matrix()
        if not self.hides or signed:
            return merged
        kept = merged.sum(-1, keepdims=True)
        factor = np.divide(values.sum(-1, keepdims=True), kept, where=kept > 0, out=kept * 0)
        return merged * factor

    def square(self, map: Array, signed: bool) -> Array:
        """[tokens, tokens] -> [units, units]: columns added, rows averaged."""
        belongs = self.matrix()
        return (belongs / belongs.sum(0)).T @ self.columns(map, signed)


def lay_out(
    explanation: Explanation,
    unit: str = "tokens",
    special: bool = True,
    keep: int | None = None,
) -> Layout:
    """The units of an explanation's text. The one with the token `keep` is never hidden."""
    if unit not in ("tokens", "words"):
        raise InputError(f'unit is {unit!r}; it can be "tokens" or "words".')
    tokens, units = explanation.tokens, list[Unit]()
    for position, token in enumerate(tokens):
        glued = position > 0 and _continues(tokens[position - 1], token)
        if unit == "words" and glued:
            units[-1].text = _shortened(units[-1].text + visible(token))
            units[-1].tokens.append(position)
        else:
            units.append(Unit(visible(token), [position], token.special, token.segment, glued))
    if special or all(one.special for one in units):
        shown = units
    else:
        shown = [one for one in units if not one.special or keep in one.tokens]
    focus = (i for i, one in enumerate(shown) if explanation.focus in one.tokens)
    return Layout(shown, next(focus, None), len(tokens))


def _continues(before: Token, token: Token) -> bool:
    plain = not (before.special or token.special) and token.word is not None
    return plain and before.word == token.word and before.segment == token.segment


def visible(token: Token) -> str:
    """A text that can be seen: blanks and line breaks get signs of their own."""
    text = token.text
    if not _INVISIBLE.fullmatch(text):
        return _shortened(" ".join(text.split()))
    if "\n" in text:
        return "⏎"
    if "\t" in text:
        return "⇥"
    return "␣" if text else _shortened(str(token)) or "∅"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
