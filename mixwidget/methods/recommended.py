"""Which method to take where none is named: the one that finds the truth where it is known."""

from __future__ import annotations

from ..models import Source

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
    if source.task == "causal_lm":
        return "attn_lrp", _DECODER
    return "alti", _OTHERS
