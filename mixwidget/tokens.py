"""A token of the input: its text and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .errors import InputError


def check_text(text: Any, name: str) -> None:
    """Refuse what no tokenizer can make tokens of: the one check of texts."""
    if not isinstance(text, str):
        raise InputError(f"{name} must be a string, not {type(text).__name__}.")
    if not text.strip():
        raise InputError(f"{name} is empty; give it at least one word.")
    check_characters(text, name)


def check_characters(text: str, name: str) -> None:
    """Refuse half characters."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{name} holds a lone surrogate (half of a character) at position {error.start}, "
            "which no tokenizer can read. Remove it."
        ) from error


# Of tokens in a chat only.
_CHAT = ("role", "message")


class Token(str):
    """The tokenizer's piece as a string ("##ing"), with what is known about it.

    It is a `str`, so lists of tokens compare, print and serialise as plain strings.

    Attributes:
        id: vocabulary id.
        position: index in the model's input (`str.index` is taken).
        special: added by the tokenizer (`[CLS]`, `<s>`, ...), not part of the text.
        word: running number of the word it belongs to, None for special tokens.
        segment: 0 for the text, 1 for the text pair.
        start, end: characters of its segment's text, None if the tokenizer cannot say.
        text: the piece as a reader would write it, without the tokenizer's marks.
        role, message: in a chat, whose message it belongs to and which; None for what the
            template writes around them. `start` and `end` are then characters of that message.
    """

    id: int
    position: int
    special: bool
    word: int | None
    segment: int
    start: int | None
    end: int | None
    text: str
    role: str | None
    message: int | None

    __slots__ = (
        *("end", "id", "message", "position", "role", "segment", "special", "start", "text"),
        "word",
    )

    def __new__(cls, piece: str, **known: Any) -> Token:
        token = super().__new__(cls, piece)
        for name in cls.__slots__:
            setattr(token, name, known.get(name) if name in _CHAT else known[name])
        return token

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (str(self), self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def _rebuild(piece: str, known: dict[str, Any]) -> Token:
    return Token(piece, **known)


@dataclass(frozen=True)
class Target:
    """What is explained: a class, a token, an answer span, a whole answer or a contrast of two.

    Compares equal to its index and to its label, so `e.target == "positive"` reads well.

    Attributes:
        kind: "class", "token", "span", "answer", "contrast" or "none" (a model without a head).
        index: class index or vocabulary id; a (start, end) or (for, against) pair; an answer's ids.
        label: in words.
        position: the row of the logits it is read from, None where there is only one; the rows
            that predict an answer's tokens.
        logit, probability: what the model gave it (for a contrast the difference of logits, and
            no probability; for an answer the sum of its tokens' log probabilities).
    """

    kind: str
    index: int | tuple[int, ...] | None
    label: str
    position: int | tuple[int, ...] | None = None
    logit: float | None = None
    probability: float | None = None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Target):
            return (self.kind, self.index, self.position) == (
                other.kind,
                other.index,
                other.position,
            )
        if isinstance(other, str):
            return self.label == other
        return self.index == other

    def __hash__(self) -> int:
        return hash(self.index)

    def __index__(self) -> int:
        if not isinstance(self.index, int):
            raise TypeError(f"target {self.label!r} is not a single index")
        return self.index

    __int__ = __index__
