"""What a session measures besides its runs: the faithfulness of the methods that are shown.

The worker measures when no run is left to compute, and stops between two passes for anything
more urgent. What the model said about edited texts stays with the text's case, so that work
begun again, or asked again, makes no pass twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .. import protocol
from ..errors import CancelledError, MixwidgetError
from ..protocol import Message, Request
from . import describe
from .plan import Job, Plan
from .telling import Teller, logger

if TYPE_CHECKING:
    from ..explanation import Explanation

Part = dict[str, Any]

_MOST = 4  # methods that a view compares at a time
# Seconds of passes that nobody has asked for.
BUDGET = 2.0


@dataclass(eq=False)
class Measurement:
    """One question, and everybody who asked it.

    Attributes:
        asked: the runs to measure, the target and the focus.
        ids: of the requests that wait for the answer.
        parts: what they have been told so far, of the methods in `measured`.
    """

    asked: Request
    ids: list[str]
    parts: list[Part] = field(default_factory=list)
    measured: list[str] = field(default_factory=list)

    def same(self, request: Request) -> bool:
        mine, other = (
            (list(one.runs.items()), one.target, one.focus, one.by) for one in (self.asked, request)
        )
        return mine == other and (self.asked.whole or not request.whole or self.complete())

    def complete(self) -> bool:
        """Whether nothing was left out because it would take too long."""
        return not any(part["part"] == "budget" for part in self.parts)


def fits(request: Request, plan: Plan | None) -> bool:
    """Whether a request is about what is shown: it may come too early or too late."""
    if plan is None or request.focus not in (None, plan.focus, plan.answer):
        return False
    if describe.plain(plan.wish.target) != request.target:
        return False
    jobs = plan.jobs
    if request.focus not in (None, plan.focus) and not all(
        jobs[id].any_row for id in request.runs if id in jobs
    ):
        return False
    return all(method in jobs and jobs[method].run == run for method, run in request.runs.items())


class Measuring:
    """The measurement that is asked for, if any. Used by the worker alone."""

    def __init__(self, tell: Teller) -> None:
        self._tell = tell
        self.work: Measurement | None = None
        self._finished: Measurement | None = None
        self._refused: Measurement | None = None

    def known(self, plan: Plan) -> list[Part]:
        """What was told last, if it is about what is shown."""
        last = self._finished
        return [] if last is None or not fits(last.asked, plan) else list(last.parts)

    def ask(self, request: Request, plan: Plan | None) -> None:
        """Take a request in; the same question asked again joins the first."""
        work = self.work
        if not fits(request, plan):
            self._tell.post(protocol.cancelled(request.id))
        elif work is not None and work.same(request):
            work.ids.append(request.id)
            for part in work.parts:
                self._tell.post(protocol.faithfulness(request.id, part))
        elif self._finished is not None and self._finished.same(request):
            for part in self._finished.parts:
                self._tell.post(protocol.faithfulness(request.id, part))
            self._tell.post(protocol.done(request.id))
        else:
            self.drop()
            self.work = Measurement(request, [request.id])

    def begin(self, plan: Plan) -> None:
        """What is shown is measured without being asked for, once."""
        runs = {id: plan.jobs[id].run for id in plan.wish.methods[:_MOST]}
        front = plan.jobs[plan.front]
        if self.work is not None or front.state != "ready" or plan.predicted().kind == "none":
            return
        target = describe.plain(plan.wish.target)
        request = Request("measure", "", runs=runs, target=target, focus=plan.answer)
        known = (self._finished, self._refused)
        if fits(request, plan) and not any(one and one.same(request) for one in known):
            self.work = Measurement(request, [])

    def review(self, plan: Plan | None) -> None:
        """Drop what is no longer about what is shown."""
        if self.work is not None and not fits(self.work.asked, plan):
            self.drop()

    def drop(self) -> None:
        """It is overtaken."""
        self._end(protocol.cancelled)

    def stop(self, id: str | None = None) -> None:
        """Somebody does not want it any more."""
        if self.work is not None and (id is None or id in self.work.ids):
            words = "Measuring was stopped before it was finished."
            self._end(lambda id: protocol.failed(id, words))

    def _end(self, final: Callable[[str], Message]) -> None:
        work, self.work = self.work, None
        for id in [] if work is None else work.ids:
            self._tell.post(final(id))

    def go_on(
        self,
        plan: Plan,
        ready: Callable[[int | None], Mapping[str, Explanation]],
        interrupted: Callable[[], bool],
    ) -> None:
        """Measure until it is finished or `interrupted`, then to be called again."""
        work = self.work
        if work is None:
            return
        try:
            refused = self._measure(work, plan, ready(work.asked.focus), interrupted)
        except CancelledError:
            return
        except Exception as error:
            if not isinstance(error, MixwidgetError):
                logger.warning("Faithfulness could not be measured.", exc_info=error)
            refused = describe.in_words(error)
        if self.work is not work:
            return
        if refused is None:
            self._finished = work
            self._end(protocol.done)
        else:
            message, hint = refused
            self._refused = work
            self._end(lambda id: protocol.failed(id, message, hint))

    def _measure(
        self,
        work: Measurement,
        plan: Plan,
        explanations: Mapping[str, Explanation],
        interrupted: Callable[[], bool],
    ) -> tuple[str, str] | None:
        """Tell all parts; why nothing at all could be measured, None if something was."""
        from ..metrics import faithfulness

        made = {
            method: plan.aimed(one)
            for method, one in explanations.items()
            if method in work.asked.runs
        }
        lacking = {m: _lacking(plan.jobs[m]) for m in work.asked.runs if m not in made}
        if work.measured != list(made):  # a run was computed in between: told from the start
            work.measured, work.parts = list(made), []
        told = 0

        def tell(part: Part) -> None:
            nonlocal told
            told += 1
            if told > len(work.parts):  # else it was told before an interruption
                work.parts.append(part)
                for id in work.ids:
                    self._tell.post(protocol.faithfulness(id, part))

        measured = faithfulness(
            plan.case,
            list(made),
            explanations=made,
            by=work.asked.by,  # type: ignore[arg-type]
            cancelled=interrupted,
            budget=None if work.asked.whole else BUDGET,
        )
        for part in measured:
            if part["part"] == "start":
                tell({**part, "methods": list(work.asked.runs)})
                for method, error in lacking.items():
                    tell({"part": "curve", "method": method, "error": error})
            else:
                tell(part)
        if any(part["part"] == "start" for part in work.parts):
            return None
        errors = [part["error"] for part in work.parts if "error" in part] or [*lacking.values()]
        return (errors[0] if errors else "There is nothing to measure."), ""


def _lacking(job: Job) -> str:
    if job.state == "cancelled":
        return f"{job.title} was stopped before it was finished."
    return job.message or f"{job.title} could not be computed."
