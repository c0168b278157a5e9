"""Whether a method is defined for a model: the one place that says it is not."""

from __future__ import annotations

from ..errors import UnsupportedMethodError
from ..models import (
    Source,
    need_target,
)
from ..tokens import Target
from .registry import Method

# They share a prediction out through every operation, from the decoder into the encoder too.
_OF_TWO = ("attn_lrp", "cp_lrp")


def check_defined(method: Method, source: Source, target: Target | None = None) -> None:
    """Refuse a method that is not defined for a model, before anything is computed; and for a
    target, once it is known."""
    if method.class_specific and (target is not None or source.task == "base"):
        need_target(target or Target("none", None, ""), method.id)
    if "answer" in method.needs and source.task not in ("causal_lm", "seq2seq_lm"):
        raise UnsupportedMethodError(
            f"{method.id} explains what a language model answers; for other predictions shapley "
            "and blank_out take parts of the text away."
        )
    if source.decodes and _of_one_text(method):
        raise UnsupportedMethodError(
            f"{method.id} is not defined here for encoder-decoder models: it follows one text "
            "through the layers, and here there are two. Methods that map each layer are, class "
            "methods, gradients and blank_out."
        )


def _of_one_text(method: Method) -> bool:
    """Whether it differentiates each layer by what that layer read, or shares a prediction out
    through the layers of one stack."""
    if method.id in _OF_TWO or "rules" in method.needs:
        return False
    shares = method.family in ("relevance", "contributions") and "gradients" in method.needs
    return shares or ("gradients" in method.needs and "target" not in method.needs)
