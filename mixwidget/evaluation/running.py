"""Units of work through an executor, finished in any order; what a lost worker leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, Future, as_completed

from ..errors import MixwidgetError
from .worker import Row, Unit, run_unit


class WorkerLostError(MixwidgetError, RuntimeError):
    """A worker died. What was finished before is in the cache, if there is one."""


def results(
    units: list[Unit], executor: Executor | None, sent: Mapping[str, bytes | None]
) -> Iterator[tuple[Unit, list[Row]]]:
    """Finished units in any order.

    Args:
        sent: the bytes of models by their references' keys, for workers that cannot open one.
    """
    if executor is None:
        for unit in units:
            yield unit, run_unit(unit) or []
        return
    waiting: dict[Future[list[Row] | None], Unit] = {}
    lost: Exception | None = None
    try:
        for unit in units:
            try:
                waiting[executor.submit(run_unit, unit)] = unit
            except Exception as error:  # a pool that broke meanwhile takes no more
                lost = error
                break
        while waiting:
            for future in as_completed(list(waiting)):
                unit = waiting.pop(future)
                try:
                    rows = future.result()
                    if rows is None:  # the worker does not see our files: send the model along
                        data = sent.get(unit.model.key)
                        if data is None or unit.model.data is not None:
                            raise WorkerLostError("it could not open the model it was sent")
                        again = unit.with_bytes(data)
                        waiting[executor.submit(run_unit, again)] = again
                        continue
                except Exception as error:  # go on: what others finished is not to be lost
                    lost = error
                    continue
                yield unit, rows
    finally:
        for future in waiting:
            future.cancel()
    if lost is not None:
        raise WorkerLostError(
            f"A worker was lost ({type(lost).__name__}: {lost}). With cache=folder the next call "
            "goes on where this one stopped."
        ) from lost
