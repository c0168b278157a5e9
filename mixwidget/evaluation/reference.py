"""How units of work refer to a model: by its name, by its bytes, or as the one that is here."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import tempfile
import uuid
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..models import Source
from .worker import ModelRef, pinned


def reference(
    model: Any, source: Source | None, executor: Executor | None, stack: contextlib.ExitStack
) -> tuple[ModelRef, bytes | None]:
    """How units refer to the model, and its bytes for workers that cannot see our files."""
    if source is None:
        name = os.fspath(model)
        return ModelRef(f"name:{name}", name=name), None
    if executor is None or isinstance(executor, ThreadPoolExecutor):
        ref = ModelRef(f"here:{uuid.uuid4()}")
        stack.enter_context(pinned(ref, source))
        return ref, None
    try:
        data = pickle.dumps((source.model, source.tokenizer), protocol=5)
    except Exception as error:
        raise InputError(
            f"The model cannot be sent to workers ({error}). Pass its name or folder instead."
        ) from error
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="mixwidget-"))
    path = Path(folder) / "model.pickle"
    path.write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    return ModelRef(f"bytes:{digest}", path=str(path)), data
