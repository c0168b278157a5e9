"""One text as several tokenizers read it: the words that all of them agree on."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import InputError
from ..tokens import Token
from .units import place_of

# Where something stands: in which of the texts, from which character to which.
Span = tuple[int, int, int]
Place = tuple[int, int, int, int]


def alike(first: Sequence[Token], second: Sequence[Token]) -> bool:
    """Whether two readings of a text are the same tokens."""
    return [(str(t), t.special, t.segment) for t in first] == [
        (str(t), t.special, t.segment) for t in second
    ]


def shared_words(readings: Sequence[Sequence[Token]], texts: Sequence[str]) -> list[list[int]]:
    """For each reading, which unit each token belongs to; the same numbers stand for the same.

    A unit is as small as it can be without cutting a word of any reading ("don't" is one where one
    tokenizer takes it for a word and another for three). Where that leaves nothing to compare,
    since a tokenizer takes all of the text for one word, no token is cut instead. Special tokens
    are the same where they stand at the same place.

    Args:
        texts: what the tokens' characters count in: text and pair.
    """
    for tokens in readings:
        if any(token.start is None and not token.special for token in tokens):
            raise InputError(
                "The models cut this text into unlike tokens, and a tokenizer does not say where "
                "its tokens stand in the text. Pass fast tokenizers (use_fast=True), or compare "
                "models with the same tokenizer."
            )
    units = _joined(readings, texts, by_word=True)
    if len(units) < 2:
        units = _joined(readings, texts, by_word=False)
    placed = [_places(tokens, units, texts) for tokens in readings]
    numbers = {place: i for i, place in enumerate(sorted({p for one in placed for p in one}))}
    return [[numbers[place] for place in one] for one in placed]


def _span(token: Token, texts: Sequence[str]) -> Span:
    """A token's characters without the blanks that some tokenizers count in."""
    place, start, end = place_of(token), token.start or 0, token.end or 0
    text = texts[place][start:end]
    start += len(text) - len(text.lstrip())
    return place, start, max(start, start + len(text.strip()))


def _joined(readings: Sequence[Sequence[Token]], texts: Sequence[str], by_word: bool) -> list[Span]:
    """What lies across each other in any two readings, put together."""
    found: list[Span] = []
    for tokens in readings:
        words: dict[tuple[int, int], Span] = {}
        for token in tokens:
            if token.special:
                continue
            place, start, end = _span(token, texts)
            if start == end:
                continue
            name = token.word if by_word and token.word is not None else -1 - token.position
            _, first, last = words.get((place, name), (place, start, end))
            words[place, name] = place, min(first, start), max(last, end)
        found += words.values()
    units: list[Span] = []
    for place, start, end in sorted(found):
        if units and units[-1][0] == place and start < units[-1][2]:
            units[-1] = place, units[-1][1], max(end, units[-1][2])
        else:
            units.append((place, start, end))
    return units


def _places(tokens: Sequence[Token], units: Sequence[Span], texts: Sequence[str]) -> list[Place]:
    """Of each token the place that its unit has in the order of all: ordinary ones by their
    number, special ones behind the unit before them, counted from there."""
    found: list[Place] = []
    before, count = -1, 0
    for token in tokens:
        if token.special:
            found.append((token.segment, before, 1, count))
            count += 1
            continue
        place, start, _ = _span(token, texts)
        # One without characters of its own (a blank) belongs to the word that follows it.
        ends = (i for i, unit in enumerate(units) if unit[0] == place and start < unit[2])
        last = [i for i, unit in enumerate(units) if unit[0] == place]
        before, count = next(ends, last[-1] if last else -1), 0
        found.append((token.segment, before, 0, 0))
    return found
