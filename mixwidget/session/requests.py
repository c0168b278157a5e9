"""Questions and orders that come in: a table of who answers them, one final answer each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .. import protocol
from ..errors import MixwidgetError
from ..protocol import Message, Request, Want
from . import describe
from .results import Result, text_array
from .shown import shown
from .telling import logger

if TYPE_CHECKING:
    from .work import Worker


def serve(worker: Worker) -> None:
    """Answer what has come in. Called between chunks too, so it is quick."""
    while (request := worker.inbox.take()) is not None:
        try:
            final = _ANSWERS[request.kind](worker, request)
        except Exception as error:
            if not isinstance(error, MixwidgetError):
                logger.exception("A request failed.")
            final = protocol.failed(request.id, *describe.in_words(error))
        if final is not None:
            worker.tell.post(final)


def _done(request: Request) -> Message | None:
    """The final answer to an order; none where nobody waits for one."""
    return protocol.done(request.id) if request.id else None


def _need(worker: Worker, request: Request) -> Message:
    """Arrays are asked for."""
    missing = tuple(want for want in request.wants if not _send(worker, want, request.id))
    return protocol.done(request.id, missing)


def _send(worker: Worker, want: Want, id: str) -> bool:
    if want.run:
        result: Result | None = worker.cache.get(want.run)
        values = None if result is None else result.array(want)
    else:
        plan = worker.plan
        values = None if plan is None else text_array(plan.case, want)
    if values is None:
        return False
    worker.tell.post(protocol.array(want, values, id=id))
    return True


def _export(worker: Worker, request: Request) -> Message | None:
    """A file of what is shown is asked for."""
    name, mime, data = worker.export(shown(worker), request.format, request.state)
    worker.tell.post(protocol.file(request.id, name, mime, data))
    return _done(request)


def _measure(worker: Worker, request: Request) -> None:
    """It is answered when it is measured."""
    worker.measuring.ask(request, None if worker.failure is not None else worker.plan)


def _cancel(worker: Worker, request: Request) -> Message | None:
    """A request, a run, or all that is open is not wanted any more."""
    if request.request is not None:
        worker.measuring.stop(request.request)
        return _done(request)
    if request.run is None:
        worker.measuring.stop()
        worker.give_up()
    for job in worker.jobs.values():
        if job.open and request.run in (None, job.run):
            job.state, job.message = "cancelled", "Cancelled."
    if worker.plan is not None:
        worker.show()
    return _done(request)


def _rerun(worker: Worker, request: Request) -> Message | None:
    """What was computed for a method, or for the text, is forgotten."""
    for run, job in list(worker.jobs.items()):
        if request.method in (None, job.method):
            worker.cache.drop(run)
            del worker.jobs[run]
    if request.method is None and worker.plan is not None:
        wish = worker.plan.wish
        worker.cache.drop(worker.plan.key)
        worker.answering.forget(wish)
    return _done(request)


def _show(worker: Worker, request: Request) -> None:
    """All of it is to be told again: the listener looks at this model now."""
    worker.show_all()


_ANSWERS: dict[str, Callable[[Worker, Request], Message | None]] = {
    "need": _need,
    "export": _export,
    "measure": _measure,
    "cancel": _cancel,
    "rerun": _rerun,
    "show": _show,
}
