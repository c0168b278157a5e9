"""From what `MixView` is given to a function that opens the model on the worker."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import demo
from ..errors import InputError, ModelInputError

if TYPE_CHECKING:
    from ..models import Source


def find_opener(model: Any, text: Any, tokenizer: Any) -> tuple[Callable[[], Source], Any]:
    """How the worker gets the model, and the text. What is cheap to find wrong raises here."""
    if model is ... or isinstance(model, str | os.PathLike):
        # Not on the worker: transformers replaces itself in sys.modules when its import ends,
        # and a cell that imports it meanwhile would be left with an empty module.
        import transformers  # noqa: F401
    if model is ...:
        return _open_demo, demo.SENTENCE if text is ... else text
    if text is ...:
        raise InputError("text is missing: MixView(model, text).")
    if model is None:
        raise ModelInputError(
            "model is None: pass a transformers model, the name or folder of one, or a pipeline; "
            "MixView() alone shows the embedded demo model."
        )
    if not isinstance(model, str | os.PathLike):
        if "torch" not in sys.modules:
            raise ModelInputError(f"{type(model).__name__} is not a transformers model.")
        from ..models import open_model

        # Whether it can be explained is said in the cell; a tokenizer may take longer to find.
        model = open_model(model, tokenizer)
    return partial(_open, model, tokenizer), text


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
