"""Typed errors. Every message says what is wrong and what to do about it."""

from __future__ import annotations


class MixwidgetError(Exception):
    """Base of all errors raised on purpose by this package."""


class InputError(MixwidgetError, ValueError):
    """A text, target, focus or parameter that cannot be used as given."""


class TextTooLongError(InputError):
    """More tokens than the model can take."""

    def __init__(self, tokens: int, limit: int) -> None:
        self.tokens, self.limit = tokens, limit
        super().__init__(
            f"The text has {tokens} tokens, but the model takes at most {limit}. "
            "Shorten it, or pass truncate=True to cut it at the limit."
        )


class UnknownMethodError(InputError):
    """A method id that is not in the registry."""


class ModelInputError(MixwidgetError, TypeError):
    """Something that is not a model, or a model that could not be loaded."""


class TokenizerNotFoundError(MixwidgetError, ValueError):
    """No tokenizer was given and none could be found."""


class UnsupportedModelError(MixwidgetError, NotImplementedError):
    """An architecture whose blocks are not known here, or that has no attention."""


class UnsupportedMethodError(MixwidgetError, NotImplementedError):
    """A method that is not defined for this model or text; the message gives the reason."""


class CostError(UnsupportedMethodError):
    """Work refused beforehand because it would take far too long or too much memory."""


class NumericsError(MixwidgetError, ArithmeticError):
    """NaN or infinity in the model's own numbers."""


class CancelledError(MixwidgetError):
    """The work was cancelled by its owner."""


class MissingExtraError(MixwidgetError, ImportError):
    """An optional dependency is needed that is not installed."""


def spoken(seconds: float) -> str:
    """A duration in words, for messages."""
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"
