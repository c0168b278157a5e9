"""Which method to begin with: the one that finds the truth where it is known.

The figures are those of docs/truth.md (`python -m benchmarks.truth`); a test compares them with
what was measured on models set by hand (`benchmarks/tables/truth.json`).
"""

from __future__ import annotations

from ..errors import UnsupportedMethodError
from ..models import Source
from .defined import check_defined
from .registry import get_method

_DECODER = (
    "recommended for causal language models: it follows the target's logit through every "
    "operation, and of sentences whose decisive word is known it puts that word on top in all of "
    "20 with names and 85 % of 20 repeats (benchmarks/truth.py)"
)
_OTHERS = (
    "recommended for encoders, encoder-decoders and models without a head: how the tokens mix, "
    "checked against the model layer by layer"
)


def recommended(source: Source) -> tuple[str, str]:
    """(id of the method, why it)."""
    if source.task == "causal_lm" and _defined("attn_lrp", source):
        return "attn_lrp", _DECODER
    return "alti", _OTHERS


def _defined(id: str, source: Source) -> bool:
    try:
        check_defined(get_method(id), source)
    except UnsupportedMethodError:
        return False
    return True


# What each tells, in few words; the first is the recommended one.
_FIRST_DECODER = [
    ("attn_lrp", "the answer followed back through every operation"),
    ("logit", "what attention wrote straight into the answer"),
    ("shapley", "what is lost without the word, whatever else is gone"),
]
_FIRST_OTHERS = [
    ("alti", "what points the same way as the result"),
    ("gradient_x_input", "what the score would lose, to first order"),
    ("blank_out", "what happens without the word"),
]


def first_choices(source: Source) -> list[tuple[str, str]]:
    """(id, what it tells in few words) of methods to begin with, the recommended one first."""
    if recommended(source)[0] == "attn_lrp":
        return _FIRST_DECODER
    return [(id, why) for id, why in _FIRST_OTHERS if id == "alti" or source.task != "base"]
