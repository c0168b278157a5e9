"""What else a model could have said: the likeliest tokens at each place of an answer."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ..blocks import wide
from ..errors import InputError
from .answers import bare_target
from .encode import Encoding
from .predict import edit, outputs, places_of
from .readable import readable_piece
from .source import Source


@dataclass(frozen=True)
class Choice:
    """A token that could stand at a place, and what the model gave it."""

    id: int
    label: str
    probability: float


def choices(source: Source, encoding: Encoding, others: int = 4) -> list[list[Choice]]:
    """Of each token of the answer: itself, then the likeliest other tokens, from one pass over
    all of it. `source` is a case's, whose model is a shadow."""
    one = edit(source, encoding, bare_target(encoding), (), "delete")
    if one.target is None or not isinstance(one.target.position, tuple):
        raise InputError("Nothing stands before the answer to read its probability from.")
    places = places_of(source, [one.target])
    (output,) = outputs(source, encoding, [one], places)
    logits: Tensor = output.logits[0]  # type: ignore[attr-defined]
    rows = logits if places is not None else logits[list(one.target.position)]
    count = min(others + 1, rows.shape[-1])
    found = []
    for logit, token in zip(rows, encoding.tokens[encoding.answer], strict=True):  # type: ignore[index]
        row = wide(logit).softmax(-1).cpu()
        best = [int(id) for id in row.topk(count).indices]
        ids = [token.id, *[id for id in best if id != token.id][:others]]
        found.append(
            [Choice(id, readable_piece(source.tokenizer, id), float(row[id])) for id in ids]
        )
    return found
