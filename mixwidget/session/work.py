"""The session's worker: wishes carried out, on one thread.

It tokenizes, records the pass, runs the methods that are asked for, the one in front first, and
tells its listener. Between two chunks of a method's work it looks into its inbox, so that a wish
that overtakes the running work ends it there, and requests for arrays are answered while
something else is computed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import CancelledError, MixwidgetError
from . import describe
from .answering import Answering, Reply, case_key, key_of
from .cache import ByteCache
from .inbox import Inbox, Wish
from .measuring import Measuring
from .plan import Job, Plan, make_plan
from .requests import serve
from .results import Result
from .sending import Sender
from .telling import Exporter, Listener, Teller, logger

if TYPE_CHECKING:
    from ..models import Case, Source

# torch and transformers are imported here, not by the cell that makes a session.


class Worker:
    """Does what is left in its inbox. All but what is said to be for any thread is for its own.

    Attributes:
        plan: the wish that is worked on, made concrete; None before the first is.
        failure: why the latest wish cannot be carried out at all.
        jobs: those that are asked for, by run id.
        given_up: the text that is being prepared is not wanted any more.
    """

    def __init__(
        self,
        opener: Callable[[], Source],
        listener: Listener,
        exporter: Exporter,
        *,
        truncate: bool,
        cache_bytes: int,
        idle_seconds: float,
        verdicts: bool,
    ) -> None:
        self._opener, self.export = opener, exporter
        self._verdicts = verdicts
        self.inbox = Inbox(self, idle_seconds)
        self.tell = Teller(listener, self.inbox)
        self._sender = Sender(self.tell)
        self.measuring = Measuring(self.tell)
        self.cache = ByteCache(cache_bytes)
        self.answering = Answering(self.tell, self.cache, truncate)
        self._source: Source | None = None
        self._version = 0
        self.plan: Plan | None = None
        self.failure: BaseException | None = None
        self.jobs: dict[str, Job] = {}
        self.given_up = False
        self._catalogued: frozenset[str] = frozenset()

    # For any thread.

    def stale(self) -> bool:
        """Whether the plan is not of the latest wish."""
        version, _ = self.inbox.latest()
        return version != self._version

    # The work.

    def give_up(self) -> None:
        """What is being prepared is not wanted any more."""
        if self._version != self.inbox.version:
            self.given_up = True

    def turn(self) -> None:
        """Do all that is to be done, and settle."""
        inbox = self.inbox
        while not inbox.closed:
            version, wish = inbox.latest()
            try:
                self._restore()
                serve(self)
                if wish is None or inbox.paused:
                    self.measuring.drop()
                    return
                if version != self._version and not self._prepare(version, wish):
                    continue
                job = self._next()
                if job is not None:
                    self._compute(job)
                    continue
                self._depend()
                self.show()
                if self._verdicts and self.plan is not None and self.failure is None:
                    self.measuring.begin(self.plan)
                    self._measure()
                    if self.stale() or self.measuring.work is not None:
                        continue
            except Exception as error:  # nothing may end the thread but its owner
                logger.exception("The session's worker failed.")
                self._version = version
                self._fail(error)
            inbox.settle(version)
            self._measure()
            with inbox.changed:
                if inbox.idle() and self.measuring.work is None:
                    return

    def _restore(self) -> None:
        """Record the shown text again if its pass was let go in a pause."""
        plan = self.plan
        if plan is not None and not plan.case.recorded and not self.inbox.paused:
            with contextlib.suppress(CancelledError):
                plan.case.trace(self._check_closed)

    def _prepare(self, version: int, wish: Wish) -> bool:
        """Model, tokens and recorded pass for a wish. False if another wish overtook it."""
        from ..models import Case

        self.failure, self.given_up = None, False

        def check() -> None:
            serve(self)
            inbox = self.inbox
            if inbox.closed or inbox.paused or inbox.version != version or self.given_up:
                raise CancelledError("overtaken")

        try:
            if self._source is None:
                self.tell.say("Loading the model")
                self._source = self._opener()
            reply = self.answering.find(self._source, wish, check, self._stopped)
            step = reply.step(wish.step)
            key = case_key(wish, reply, step)
            case = self.cache.get(key) or Case(self._source, reply.asked(step))
            if not case.recorded:
                tokens, told = describe.tokens(case.encoding), reply.told()
                self.tell.say("Running the model", tokens=tokens, reply=told, runs={})
            case.trace(check)
            self.cache.put(key, case, case.trace().nbytes())
            self._commit(version, wish, case, reply)
        except CancelledError:
            if self.given_up and self.inbox.version == version:
                self._version, self.plan = version, None
                self.measuring.drop()
                self.tell.say("Cancelled.", state="ready", runs={})
                return True
            return False
        except Exception as error:
            self._version = version
            self._fail(error)
        return True

    def _stopped(self) -> bool:
        """Whether the preparing was stopped; what is there already may be gone on with."""
        stopped, self.given_up = self.given_up, False
        return stopped and not (self.inbox.closed or self.inbox.paused)

    def _commit(self, version: int, wish: Wish, case: Case, reply: Reply) -> None:
        """Make a wish whose text is recorded the one that is worked on, and show it."""
        before = self.plan
        plan = make_plan(wish, case, reply, self.jobs, self.finished)
        self.jobs = {job.run: job for job in plan.jobs.values()}
        self.plan, self._version = plan, version
        self.measuring.review(plan)
        self.cache.pin([plan.key, key_of(wish), *self.jobs])
        values: dict[str, Any] = {"focus": plan.focus, "step": plan.step}
        if wish.method is None:
            values["method"] = plan.front
        row = (plan.case, plan.focus, plan.answer)
        if before is None or (before.case, before.focus, before.answer) != row:
            values["model_info"] = plan.model_info()
        if before is None or before.case is not case:
            values |= {"tokens": describe.tokens(case.encoding), "reply": reply.told()}
            self._catalogued = frozenset()
        if not self._catalogued.issuperset(plan.jobs):  # a method may be registered at any time
            values["catalogue"] = describe.catalogue(case, plan.predicted())
            self._catalogued = frozenset(entry["id"] for entry in values["catalogue"])
        self.show(**values)
        for job in plan.jobs.values():
            result: Result | None = self.cache.get(job.run)
            if result is not None and job.state == "ready":
                self._sender.looked_at(result, plan.focus)

    def finished(self, run: str) -> Result | None:
        result: Result | None = self.cache.get(run)
        return None if result is None or result.explanation is None else result

    def _check_closed(self) -> None:
        if self.inbox.closed or self.inbox.paused:
            raise CancelledError("closed")

    def _next(self) -> Job | None:
        return None if self.plan is None or self.failure is not None else self.plan.next()

    def _compute(self, job: Job) -> None:
        from .. import engine

        assert self.plan is not None
        plan, case = self.plan, self.plan.case
        job.state, job.begun = "computing", time.perf_counter()
        self.show()
        try:
            run = engine.start(
                case,
                job.method,
                target=plan.target if plan.target.kind != "none" else None,
                focus=None if plan.whole else plan.focus,
                params=job.options,
                cancelled=lambda: self._interrupted(job, case),
                report=lambda share: self._progress(job, share),
            )
            result = Result(job.run, run.method, case.trace().tokens, len(case.trace()))
            self.cache.put(job.run, result, result.nbytes)
            collected = []
            with contextlib.closing(engine.parts(run)) as parts:  # type: ignore[type-var]
                for part in parts:
                    collected.append(part)
                    new = result.add(part)
                    job.done_layers = result.done_layers
                    self._sender.grown(result, new, self._focus())
                    run.check()
            job.seconds = time.perf_counter() - job.begun
            whole = engine.assemble(run, collected, job.seconds)
            if plan.why is not None and job.method == plan.front:
                whole.info["recommended"] = plan.why
            new = result.finish(whole)
            self._sender.grown(result, new, self._focus())
        except CancelledError:
            if job.state == "computing":  # overtaken, not stopped: begun again when wanted
                job.state, job.progress, job.done_layers = "waiting", 0.0, []
            return
        except Exception as error:
            logger.warning("%s failed.", job.method, exc_info=error)
            job.state, job.error = "error", error
            job.message, job.hint = describe.in_words(error)
            return
        job.state, job.progress, job.done_layers = "ready", 1.0, result.done_layers
        job.told = result.told
        self.show(model_info=self.plan.model_info())

    def _focus(self) -> int:
        assert self.plan is not None
        return self.plan.focus

    def _interrupted(self, job: Job, case: Case) -> bool:
        """Asked between chunks: whether the running work is to end here."""
        inbox = self.inbox
        if inbox.closed or inbox.paused or not case.recorded:
            return True
        serve(self)
        if job.state != "computing" or self.jobs.get(job.run) is not job:
            return True
        version, wish = inbox.latest()
        if version == self._version or wish is None:
            return False
        if self.plan is None or not wish.same_text(self.plan.wish):
            return True
        reply = self.plan.reply
        try:
            plan = make_plan(wish, case, reply, self.jobs, self.finished)
            if plan.next() is not job:
                return True
            self._commit(version, wish, case, reply)  # something else changed: go on with this
        except Exception:
            return True  # it will be found and told again when the wish is prepared
        return False

    def _progress(self, job: Job, share: float) -> None:
        job.progress = share
        if self.tell.due():
            self.show()

    def _depend(self) -> None:
        """How much the answer needed the prompt, where that is to be shown."""
        plan = self.plan if self.failure is None else None
        if plan is not None and self.answering.depend(plan.case.source, plan.wish, plan.reply):
            self.show(reply=plan.reply.told())

    def _measure(self) -> None:
        """Measure what is asked for, now that no run is left; anything new comes first."""
        work, plan, inbox = self.measuring.work, self.plan, self.inbox
        if work is None or inbox.closed:
            return
        if plan is None or self.failure is not None:
            self.measuring.drop()
            return

        def interrupted() -> bool:
            # A pause, however short, lets go of the recorded pass, which requests may ask about.
            if inbox.closed or inbox.paused or not plan.case.recorded:
                return True
            serve(self)
            return self.measuring.work is not work or self.stale()

        self.measuring.go_on(plan, lambda row: plan.ready(self.cache.get, row), interrupted)

    # Telling.

    def show(self, **values: Any) -> None:
        """Tell the listener how things stand."""
        if self.plan is not None and self.failure is None:
            values |= {"runs": self.plan.runs(), "status": self.plan.status()}
        elif self.failure is not None:
            message, hint = describe.in_words(self.failure)
            values["status"] = {"state": "error", "message": message, "hint": hint}
        self.tell.publish(values)

    def show_all(self) -> None:
        """Tell the listener everything again."""
        plan = self.plan
        if plan is None or self.failure is not None:
            self.show(runs={})
            return
        self.show(**plan.told(), catalogue=describe.catalogue(plan.case, plan.predicted()))

    def _fail(self, error: BaseException) -> None:
        """The wish cannot be carried out at all."""
        if not isinstance(error, MixwidgetError):
            logger.warning("The text could not be prepared.", exc_info=error)
        self.failure, self.jobs = error, {}
        self.measuring.drop()
        self.show(runs={})
