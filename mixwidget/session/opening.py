"""From what `MixView` is given to a function that opens the model on the worker."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import demo
from ..errors import InputError, ModelInputError
from ..explanation import named

if TYPE_CHECKING:
    from ..models import Source


MOST_MODELS = 4

Opener = Callable[[], "Source"]


@dataclass(frozen=True)
class Opened:
    """What is to be shown: how each of the models is opened, on the worker.

    `names` is what several models are called, empty for one.
    """

    openers: tuple[Opener, ...]
    names: tuple[str, ...]
    text: Any


def find_openers(
    model: Any, text: Any, tokenizer: Any, names: Sequence[str] | None = None
) -> Opened:
    """How the worker gets the models, and the text. What is cheap to find wrong raises here."""
    if not isinstance(model, list | tuple):
        if names is not None:
            raise InputError("names are for several models: MixView([m1, m2], text, names=[...]).")
        model = _checked(model, text, tokenizer)
        if model is ...:
            return Opened((_open_demo,), (), demo.SENTENCE if text is ... else text)
        return Opened((partial(_open, model, tokenizer),), (), text)
    if not 2 <= len(model) <= MOST_MODELS:
        raise InputError(
            f"A list of models holds two to {MOST_MODELS}, not {len(model)}; one model is given "
            "without a list: MixView(model, text)."
        )
    each = list(tokenizer) if isinstance(tokenizer, list | tuple) else [tokenizer] * len(model)
    if len(each) != len(model):
        raise InputError(f"There are {len(each)} tokenizers for {len(model)} models.")
    pairs = [(_checked(one, text, own), own) for one, own in zip(model, each, strict=True)]
    from ..models import Source

    paths = [one.name if isinstance(one, Source) else os.fspath(one) for one, _ in pairs]
    openers = tuple(partial(_open, *pair) for pair in pairs)
    return Opened(openers, tuple(named(paths, names)), text)


def _checked(model: Any, text: Any, tokenizer: Any) -> Any:
    """A model that is in memory as a `Source`, so that the cell says whether it can be explained;
    its tokenizer may take longer to find. A name as it is."""
    if model is ... or isinstance(model, str | os.PathLike):
        # Not on the worker: transformers replaces itself in sys.modules when its import ends,
        # and a cell that imports it meanwhile would be left with an empty module.
        import transformers  # noqa: F401
    if model is ...:
        return model
    if text is ...:
        raise InputError("text is missing: MixView(model, text).")
    if model is None:
        raise ModelInputError(
            "model is None: pass a transformers model, the name or folder of one, or a pipeline; "
            "MixView() alone shows the embedded demo model."
        )
    if isinstance(model, str | os.PathLike):
        return model
    if "torch" not in sys.modules:
        raise ModelInputError(f"{type(model).__name__} is not a transformers model.")
    from ..models import open_model

    return open_model(model, tokenizer)


def _open(model: Any, tokenizer: Any) -> Source:
    from ..models import open_source

    with _quietly():
        return open_source(model, tokenizer)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """A thread's progress bars and remarks would end up below some other cell."""
    from transformers.utils import logging

    bars, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def _open_demo() -> Source:
    from ..models import open_source

    return replace(open_source(*demo.load()), name="demo model")
