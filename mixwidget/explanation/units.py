"""Units of a text: its tokens put together to words, sentences, lines, messages or given spans."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..tokens import Token

Array = NDArray[np.float32]

KINDS = ("tokens", "words", "sentences", "lines", "messages")
REST = "rest"

# A sentence ends with its mark and the quotes and brackets that close after it, or with its line.
_SENTENCE = re.compile(r"[^\n]*?(?:[.!?。！？…]+[\"'”’»)\]]*(?=\s|$)|[。！？](?=.)|(?=\n)|$)")
_LINE = re.compile(r"[^\n]+")


@dataclass(frozen=True)
class Unit:
    """Some tokens that are one thing.

    Attributes:
        name: what it is called, its text if nothing else.
        place: which of the texts it stands in (a chat's message; text, pair), None for the rest.
        start, end: its characters there.
        tokens: indices.
    """

    name: str
    place: int | None
    start: int
    end: int
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class ByUnit:
    """Scores summed over units.

    Attributes:
        names: of each unit; the last may be "rest", what no unit covers.
        spans: (start, end) characters, in a chat (message, start, end); None for the rest.
        scores: float32 [units]; matrix: float32 [T, units] of an answer, else None.
        units: the same with their tokens.
    """

    names: list[str]
    spans: list[tuple[int, ...] | None]
    scores: Array
    matrix: Array | None
    units: list[Unit]

    def __len__(self) -> int:
        return len(self.names)


def place_of(token: Token) -> int:
    """Which of the texts a token stands in: a chat's message, else text (0) or pair (1)."""
    return token.segment if token.message is None else token.message


def units_of(
    tokens: Sequence[Token], texts: Sequence[str], kind: Any, answer: slice | None = None
) -> list[Unit]:
    """The units of a text, in order; tokens that none covers are left out.

    Args:
        texts: what the tokens' characters count in: a chat's messages, else text and pair.
        kind: one of `KINDS`, or spans of characters.
    """
    if not isinstance(kind, str):
        return _spanned(tokens, texts, kind)
    if kind not in KINDS:
        raise InputError(
            f"units is {kind!r}; it can be {', '.join(KINDS)}, or spans of characters "
            "[(start, end), ...], in a chat [(message, start, end), ...]."
        )
    if kind in ("tokens", "words"):
        return _by_word(tokens, texts, kind)
    _need_places(tokens, kind)
    found: list[tuple[str, int, int, int]] = []
    for place, text in enumerate(texts):
        if kind == "messages":
            name = _message_name(tokens, place, answer)
            found += [(name, place, 0, len(text))] if name else []
            continue
        pattern = _SENTENCE if kind == "sentences" else _LINE
        for match in pattern.finditer(text):
            inner = match[0].strip()
            if inner:
                start = match.start() + match[0].index(inner)
                found.append((inner, place, start, start + len(inner)))
    return _covered(tokens, texts, found)


def _message_name(tokens: Sequence[Token], place: int, answer: slice | None) -> str:
    inside = [t for t in tokens if not t.special and place_of(t) == place]
    if not inside:
        return ""
    if answer is not None and inside[0].position >= answer.start:
        return "answer"
    first = inside[0]
    if first.role is None:
        return "text" if place == 0 else "text pair"
    same = {t.message for t in tokens if t.role == first.role and t.message is not None}
    if answer is not None:
        same -= {place_of(t) for t in tokens[answer]}
    number = sorted(same).index(place) + 1
    return first.role if len(same) == 1 else f"{first.role} {number}"


def _need_places(tokens: Sequence[Token], kind: str) -> None:
    if all(token.start is None for token in tokens if not token.special):
        raise InputError(
            f"This tokenizer does not say which characters its tokens are, so there are no {kind}; "
            "use a fast tokenizer, or units 'tokens' or 'words'."
        )


def _by_word(tokens: Sequence[Token], texts: Sequence[str], kind: str) -> list[Unit]:
    groups: list[list[Token]] = []
    for token in tokens:
        if token.special:
            continue
        last = groups[-1][-1] if groups else None
        same = last is not None and token.word is not None and last.word == token.word
        if kind == "words" and same and last is not None and place_of(last) == place_of(token):
            groups[-1].append(token)
        else:
            groups.append([token])
    made = []
    for group in groups:
        place, start, end = place_of(group[0]), group[0].start, group[-1].end
        name = "".join(token.text for token in group)
        if start is not None and end is not None and len(group) > 1 and place < len(texts):
            name = texts[place][start:end].strip() or name
        where = tuple(token.position for token in group)
        made.append(Unit(name, place, start or 0, end or 0, where))
    return made


def _spanned(tokens: Sequence[Token], texts: Sequence[str], spans: Any) -> list[Unit]:
    if not isinstance(spans, Sequence) or not spans:
        raise InputError(f"units is {spans!r}; spans are a list of (start, end) of characters.")
    _need_places(tokens, "spans")
    chat = any(token.message is not None for token in tokens)
    found = []
    for span in spans:
        numbers = [one for one in span if not isinstance(one, str)]
        names = [one for one in span if isinstance(one, str)]
        if len(numbers) != (3 if chat else 2) or len(names) > 1:
            form = "(message, start, end)" if chat else "(start, end)"
            raise InputError(f"{span!r} is not a span: give {form}, with a name if you like.")
        place, start, end = (int(one) for one in (numbers if chat else [0, *numbers]))
        if not 0 <= place < len(texts) or not 0 <= start < end <= len(texts[place]):
            size = f"{len(texts[place])} characters" if 0 <= place < len(texts) else "nothing"
            raise InputError(f"The span {span!r} is not in the text: there are {size}.")
        found.append((names[0] if names else texts[place][start:end], place, start, end))
    return _covered(tokens, texts, found)


def _covered(
    tokens: Sequence[Token], texts: Sequence[str], found: list[tuple[str, int, int, int]]
) -> list[Unit]:
    """Units with their tokens: a token belongs to the first unit that holds its first character
    that is not white space."""
    inside: list[list[int]] = [[] for _ in found]
    for token in tokens:
        if token.special or token.start is None or token.end is None:
            continue
        place = place_of(token)
        if place >= len(texts):
            continue
        read = texts[place][token.start : token.end]
        first = token.start + (len(read) - len(read.lstrip()) if read.strip() else 0)
        for number, (_, where, start, end) in enumerate(found):
            if where == place and start <= first < end:
                inside[number].append(token.position)
                break
    return [Unit(*one, tuple(held)) for one, held in zip(found, inside, strict=True)]


def summed_by(units: Sequence[Unit], scores: Array, matrix: Array | None, chat: bool) -> ByUnit:
    """Scores summed over units, and what no unit covers as one more: sums are kept."""
    units = list(units)
    covered = {index for unit in units for index in unit.tokens}
    rest = tuple(i for i in range(len(scores)) if i not in covered)
    if rest:
        units.append(Unit(REST, None, 0, 0, rest))
    member = np.zeros((len(scores), len(units)))
    for number, unit in enumerate(units):
        member[list(unit.tokens), number] = 1.0
    return ByUnit(
        [unit.name for unit in units],
        [_span(unit, chat) for unit in units],
        np.asarray(scores.astype(np.float64) @ member, dtype=np.float32),
        None
        if matrix is None
        else np.asarray(matrix.astype(np.float64) @ member, dtype=np.float32),
        units,
    )


def _span(unit: Unit, chat: bool) -> tuple[int, ...] | None:
    if unit.place is None:
        return None
    return (unit.place, unit.start, unit.end) if chat else (unit.start, unit.end)
