"""Executors that misbehave in known ways, for the tests of `benchmark`."""

from __future__ import annotations

import os
import signal
import uuid
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from mixwidget.evaluation.worker import Unit


def spawned(workers: int) -> ProcessPoolExecutor:
    """Worker processes that inherit nothing: what works in them works anywhere."""
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))


def noted(function: Any, unit: Unit, folder: str, killer: str | None) -> Any:
    """Run a unit, note its texts in a folder, and die at the text that kills."""
    texts = [example.text for example in unit.examples]
    if killer is not None and killer in texts:
        os.kill(os.getpid(), signal.SIGKILL)
    result = function(unit)
    (Path(folder) / uuid.uuid4().hex).write_text("\n".join(texts))
    return result


class Noting(Executor):
    """Sends work to another executor and has the workers note what they finished."""

    def __init__(self, inner: Executor, folder: Path, killer: str | None = None) -> None:
        self.inner, self.folder, self.killer = inner, folder, killer

    def submit(self, function: Any, /, unit: Unit) -> Future[Any]:  # type: ignore[override]
        return self.inner.submit(noted, function, unit, str(self.folder), self.killer)

    def finished(self) -> list[str]:
        notes = [path.read_text().splitlines() for path in self.folder.iterdir()]
        return sorted(text for note in notes for text in note)


class Backwards(Executor):
    """Does the last work first, here, when the first result is asked for."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[Any], Any, Any]] = []

    def submit(self, function: Any, /, unit: Unit) -> Future[Any]:  # type: ignore[override]
        future: Future[Any] = Future()
        self.waiting.append((future, function, unit))
        if len(self.waiting) == 3:
            for one, work, given in reversed(self.waiting):
                one.set_result(work(given))
        return future
