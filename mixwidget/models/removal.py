"""Prompts with some of their units taken out of the text, before it is made into tokens again."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import InputError, UnsupportedMethodError
from ..explanation import Unit, units_of
from ..tokens import Target
from .chat import encode_chat
from .encode import Encoding, encode
from .predict import Edit, begin_token
from .source import Source

# Kinds of units with white space between them, which goes with the unit behind it.
_SEPARATED = ("words", "sentences", "lines")


def prompt_units(encoding: Encoding, kind: object) -> list[Unit]:
    """Units of the text before the answer, those that hold tokens."""
    tokens = encoding.tokens[: encoding.prompt]
    found = units_of(tokens, encoding.texts, kind)
    return [unit for unit in found if unit.tokens]


def prompt_without(
    source: Source, encoding: Encoding, gone: Sequence[Unit], kind: object
) -> list[int]:
    """The prompt's ids when these units are cut from its text."""
    texts = list(encoding.texts)
    for unit in sorted(gone, key=lambda one: -one.start):
        if unit.place is None:
            continue
        text, start = texts[unit.place], unit.start
        if isinstance(kind, str) and kind in _SEPARATED:
            start = len(text[:start].rstrip())
        texts[unit.place] = text[:start] + text[unit.end :]
    if isinstance(kind, str) and kind in _SEPARATED:
        cut = {unit.place for unit in gone}
        texts = [text.lstrip() if i in cut else text for i, text in enumerate(texts)]
    return _ids(source, encoding, texts)


def _ids(source: Source, encoding: Encoding, texts: Sequence[str]) -> list[int]:
    if isinstance(encoding.text, list):
        inside = encoding.answer_text is None and encoding.prompt is not None
        messages = encoding.text[:-1] if inside else encoding.text
        chat = [{**one, "content": text} for one, text in zip(messages, texts, strict=False)]
        return [token.id for token in encode_chat(source, chat, empty=True).tokens]
    if texts[0].strip():
        pair = encoding.text_pair if encoding.first_row == 0 else None
        read = encode(source, texts[0], pair)
        size = read.first_row or len(read.tokens)
        return [token.id for token in read.tokens[:size]]
    begin = begin_token(source)
    if begin is None:
        raise InputError("Nothing is left of the text, and this model has no token to begin with.")
    return [begin]


def edits_without(
    source: Source,
    encoding: Encoding,
    target: Target,
    removed: Sequence[Sequence[Unit]],
    kind: object,
) -> list[Edit]:
    """The edited prompts with what has been written since, ready to be predicted for."""
    first, made = encoding.first_row, list[Edit]()
    size = len(encoding.tokens) if encoding.prompt is None else encoding.prompt
    begin = first or size
    tail = [token.id for token in encoding.tokens[begin:]]
    whole = [token.id for token in encoding.tokens[:begin]]
    if prompt_without(source, encoding, [], kind) != whole:
        raise UnsupportedMethodError(
            "The prompt cannot be put together again from its text: its tokens come out otherwise. "
            "Use units with blank_out, which removes tokens."
        )
    for gone in removed:
        ids = prompt_without(source, encoding, gone, kind) if gone else whole
        by = 0 if first else len(ids) - begin
        made.append(
            Edit([*ids, *tail], list(range(len(ids) + len(tail))), _shifted(target, by),
                 len(ids) if first else 0)
        )  # fmt: skip
    return made


def _shifted(target: Target, by: int) -> Target:
    place = target.position
    moved = tuple(one + by for one in place) if isinstance(place, tuple) else (place or 0) + by
    return Target(target.kind, target.index, target.label, moved)
