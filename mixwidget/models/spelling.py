"""How a string is spelt where it follows a text: " Mary" or "Mary"."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InputError
from .readable import readable_piece

# Two spellings whose probabilities differ by more than this are two different questions.
_UNLIKE = 10.0


class SeveralTokensError(InputError):
    """A target that is several tokens long: an answer."""


@dataclass(frozen=True)
class Spelling:
    """One way to write a string after a text."""

    text: str
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Spelt:
    """The way that was taken, the likelier one, and how likely each way is there."""

    chosen: Spelling
    shares: dict[str, float]  # log probabilities

    @classmethod
    def of(cls, ways: Sequence[Spelling], log_shares: Sequence[float]) -> Spelt:
        best = max(range(len(ways)), key=lambda i: log_shares[i])
        texts = [way.text for way in ways]
        return cls(ways[best], dict(zip(texts, log_shares, strict=True)))

    def told(self) -> dict[str, Any]:
        shares = {text: math.exp(share) for text, share in self.shares.items()}
        return {"target_spelling": self.chosen.text, "target_spellings": shares}

    def warn(self, target: str) -> None:
        """Say so where the ways are far apart: the other one is another question."""
        mine = self.shares[self.chosen.text]
        for text, share in self.shares.items():
            if mine - share > math.log(_UNLIKE):
                warnings.warn(
                    f"{target!r} can follow here as {self.chosen.text!r} (probability "
                    f"{math.exp(mine):.2g}) or as {text!r} ({math.exp(share):.2g}): explained is "
                    "the likelier. For the other give its token id.",
                    stacklevel=_outside(),
                )


def _outside() -> int:
    """How many calls up the code stands that is not ours: where a warning is of use."""
    level, outside, frame = 0, 1, inspect.currentframe()
    ours = __name__.partition(".")[0]
    while frame is not None:
        level += 1
        if frame.f_globals.get("__name__", "").partition(".")[0] == ours:
            outside = level
        frame = frame.f_back
    return outside


def spellings(tokenizer: Any, text: str) -> list[Spelling]:
    """The ways a string may follow a text: with a space before it and without, each once. What
    begins with white space, or is a piece as the vocabulary writes it, is meant literally."""
    known = _piece(tokenizer, text)
    if known is not None:
        return [Spelling(text, (known,))]
    literal = text[:1].isspace()
    found = [text] if literal else [f" {text}", text]
    made: dict[tuple[int, ...], Spelling] = {}
    for one in found:
        ids = following(tokenizer, one)
        if ids and getattr(tokenizer, "unk_token_id", None) not in ids:
            made.setdefault(ids, Spelling(one, ids))
    return list(made.values())


def _piece(tokenizer: Any, text: str) -> int | None:
    """The id of a piece that reads otherwise than it is written ("Ġthe", "##ing", "</s>")."""
    index = tokenizer.convert_tokens_to_ids(text)
    if index is None or index == getattr(tokenizer, "unk_token_id", None):
        return None
    special = index in (getattr(tokenizer, "all_special_ids", None) or ())
    read = readable_piece(tokenizer, index)
    # "é" is also how byte-level vocabularies write a byte that is no character.
    written = special or (read != text and not read.startswith("<0x"))
    return int(index) if written and not text.isspace() else None


def following(tokenizer: Any, text: str) -> tuple[int, ...]:
    """The ids of a string exactly as it stands, where it follows other text."""

    def ids(string: str) -> tuple[int, ...]:
        return tuple(tokenizer(string, add_special_tokens=False)["input_ids"])

    if not text:
        return ()
    begun = ids("a")
    first = str(tokenizer.convert_ids_to_tokens(begun[0])) if begun else ""
    if not first.startswith(("▁", "Ġ")):
        return ids(text)
    # This tokenizer puts a space before all it is given.
    if text.startswith(" ") and text[1:2].strip():
        return ids(text[1:])
    before, whole = ids("\n"), ids(f"\n{text}")
    return whole[len(before) :] if whole[: len(before)] == before else ids(text)
