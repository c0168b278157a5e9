"""Pieces of a vocabulary as a reader would write them.

Byte-level vocabularies spell every byte as one printable sign ("Ã©" for "é"), SentencePiece those
it does not know as "<0xE6>", and both split characters over pieces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

# Stands on the pieces of a character that begins in an earlier one.
CONTINUED = "…"

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_MARKS = ("##", "▁")


def readable(tokenizer: Any, pieces: Sequence[str], special: Sequence[bool]) -> list[str]:
    """The text of each piece of one text: without marks, bytes put together to characters. A
    character split over pieces stands on its first, the others show "…"; a line break is "⏎"."""
    by_byte = is_byte_level(tokenizer)
    made: list[str] = []
    run: list[bytes] = []
    for piece, alone in zip(pieces, special, strict=True):
        held = None if alone else _bytes(piece, by_byte)
        if held is not None:
            run.append(held)
            continue
        made += _characters(run)
        run = []
        made.append(piece if alone else _plain(piece))
    return made + _characters(run)


def readable_piece(tokenizer: Any, index: int) -> str:
    """One entry of the vocabulary by itself; what is no whole character stays as its bytes."""
    piece = str(tokenizer.convert_ids_to_tokens(index))
    if index in (getattr(tokenizer, "all_special_ids", None) or ()):
        return piece
    held = _bytes(piece, is_byte_level(tokenizer))
    if held is None:
        return _plain(piece)
    try:
        return _shown(held.decode())
    except UnicodeDecodeError:
        return "".join(f"<0x{byte:02X}>" for byte in held)


def is_byte_level(tokenizer: Any) -> bool:
    """Whether its pieces are bytes, each written as one sign."""
    if hasattr(tokenizer, "byte_decoder"):
        return True
    backend = getattr(tokenizer, "backend_tokenizer", None)
    return backend is not None and _decodes_bytes(backend)


def _decodes_bytes(backend: Any) -> bool:
    decoder = getattr(backend, "decoder", None)
    if decoder is None:
        return False
    if type(decoder).__name__ == "ByteLevel":
        return True
    try:  # one of a row of decoders
        return '"ByteLevel"' in json.dumps(json.loads(decoder.__getstate__()))
    except (AttributeError, TypeError, ValueError):
        return False


@cache
def _signs() -> dict[str, int]:
    """The sign that byte-level vocabularies write for each byte: itself where it can be seen, else
    one of those from 256 on, in order."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    signs = {chr(byte): byte for byte in seen}
    hidden = (byte for byte in range(256) if byte not in set(seen))
    return signs | {chr(256 + number): byte for number, byte in enumerate(hidden)}


def _bytes(piece: str, by_byte: bool) -> bytes | None:
    """The bytes that a piece stands for; None where it stands for its own signs."""
    if by_byte:
        signs = _signs()
        if all(sign in signs for sign in piece):
            return bytes(signs[sign] for sign in piece)
        return piece.encode()  # an added token, written as it is
    found = _BYTE.fullmatch(piece)
    return None if found is None else bytes([int(found[1], 16)])


def _characters(run: list[bytes]) -> list[str]:
    """Bytes of consecutive pieces as text, each character on the piece it begins in."""
    whole, texts = b"".join(run), [""] * len(run)
    owners = [number for number, held in enumerate(run) for _ in held]
    place = 0
    while place < len(whole):
        size = _length(whole, place)
        sign = whole[place : place + size].decode(errors="replace")
        texts[owners[place]] += sign
        for owner in set(owners[place + 1 : place + size]) - {owners[place]}:
            texts[owner] += CONTINUED
        place += size
    return [_shown(text) for text in texts]


def _length(data: bytes, place: int) -> int:
    """Bytes of the character at a place; 1 for what begins none."""
    for size in (1, 2, 3, 4):
        try:
            data[place : place + size].decode()
        except UnicodeDecodeError:
            continue
        return size
    return 1


def _plain(piece: str) -> str:
    for mark in _MARKS:
        if piece.startswith(mark):
            return piece[len(mark) :].replace("▁", " ").removesuffix("</w>") or " "
    return _seen(piece.removeprefix("Ġ").removesuffix("</w>"))


def _shown(text: str) -> str:
    """Without the space that only begins a word."""
    return _seen(text[1:] if text.startswith(" ") and text.strip(" ") else text)


def _seen(text: str) -> str:
    return text.replace("\r\n", "⏎").replace("\n", "⏎") or " "
