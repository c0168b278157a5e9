"""A model and what is asked about it: worker, cache, cancellation. Knows no widget.

Callers on any thread leave a `Wish` (the latest is the only one that counts) or a request.
One worker thread carries them out: it tokenizes, records the pass, runs the methods that are
asked for, the one in front first, and tells its listener. Between two chunks of a method's
work it looks into its inbox, so that a wish that overtakes the running work ends it there,
and requests for arrays are answered while something else is computed.
"""

from __future__ import annotations

import atexit
import contextlib
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import protocol
from ..errors import CancelledError, MixwidgetError
from ..protocol import Request, Want
from . import describe
from .cache import ByteCache
from .inbox import Inbox, Wish
from .measuring import Measuring
from .plan import Job, Plan, make_plan
from .results import Result, text_array
from .sending import Sender
from .shown import Shown
from .telling import Listener, Teller, logger

if TYPE_CHECKING:
    from ..explanation import Explanation
    from ..models import Case, Source

# torch and transformers are imported by the worker, not by the cell that makes a session.

CACHE_BYTES = 256 * 2**20

# (what is shown, format, the view's traits) -> the file's name, mime type and bytes.
Exporter = Callable[[Shown, str, Any], tuple[str, str, bytes]]

_sessions: weakref.WeakSet[Session] = weakref.WeakSet()


class Session:
    """Explains one model's texts on a thread of its own.

    Args:
        opener: gives the model's `Source`; called once, on the worker.
        listener: who is told; held weakly by whoever made it if it should be collectable.
        exporter: makes the file that a view asks for.
        truncate: cut a text that is too long instead of refusing it.
        cache_bytes: how much of what was computed is kept.
        idle_seconds: after this long without work the thread ends; it comes back on demand.
        verdicts: test what is shown without being asked, as far as it is quick; `wait` waits
            for it.
    """

    def __init__(
        self,
        opener: Callable[[], Source],
        listener: Listener,
        exporter: Exporter,
        *,
        truncate: bool = False,
        cache_bytes: int = CACHE_BYTES,
        idle_seconds: float = 3.0,
        verdicts: bool = False,
    ) -> None:
        self._opener, self._export, self._truncate = opener, exporter, truncate
        self._verdicts = verdicts
        self._inbox = Inbox(self, idle_seconds)
        self._tell = Teller(listener, self._inbox)
        self._sender = Sender(self._tell)
        self._measuring = Measuring(self._tell)
        self._cache = ByteCache(cache_bytes)
        self._source: Source | None = None
        self._version = 0
        self._plan: Plan | None = None
        self._failure: BaseException | None = None
        self._jobs: dict[str, Job] = {}  # by run id: those that are asked for
        self._given_up = False
        self._catalogued: frozenset[str] = frozenset()
        weakref.finalize(self, self._inbox.close)
        _sessions.add(self)

    # What callers on any thread may do.

    def ask(self, wish: Wish) -> None:
        """Show this from now on; what it does not need is cancelled."""
        self._inbox.leave(wish=wish)

    def request(self, request: Request) -> None:
        """Answer this through the listener, by exactly one final message."""
        self._inbox.leave(request=request)

    def cancel(self, run: str | None = None) -> None:
        """Stop a run, or all that is not finished."""
        self.request(Request("cancel", "", run=run))

    def rerun(self, method: str | None = None) -> None:
        """Forget what was computed for a method (None: for the text) and compute it again."""
        self.request(Request("rerun", "", method=method))

    def wait(self, timeout: float | None = None) -> None:
        """Block until the latest wish is carried out; raise what went wrong with it."""
        self._inbox.wait(timeout)
        plan = self._plan
        if self._failure is not None:
            raise self._failure
        front = None if plan is None else plan.jobs.get(plan.wish.method)
        if front is not None and front.error is not None:
            raise front.error
        if front is None or front.state == "cancelled":
            raise CancelledError("The work was cancelled before it was finished.")

    def pause(self, paused: bool = True) -> None:
        """Nobody looks: stop, and keep only the explanations shown last. `wait` resumes too."""
        self._inbox.pause(paused)
        if paused:
            self._cache.trim()
            if self._plan is not None:
                self._plan.case.release()

    def close(self, timeout: float = 0.0) -> None:
        """End the work; wait for the thread at most `timeout` seconds."""
        self._inbox.close()
        if timeout:
            self._inbox.join(timeout)

    @property
    def working(self) -> bool:
        """Whether a thread is alive."""
        thread = self._inbox.thread
        return thread is not None and thread.is_alive()

    @property
    def case(self) -> Case | None:
        """Text and model as they are shown; None while they are being prepared."""
        plan = self._plan
        return None if plan is None or self._stale() else plan.case

    @property
    def error(self) -> BaseException | None:
        """What went wrong with the latest wish, None if nothing did."""
        plan = self._plan
        front = None if plan is None else plan.jobs.get(plan.wish.method)
        return self._failure or (None if front is None else front.error)

    def explanations(self) -> dict[str, Explanation]:
        """The finished explanations of what is asked, by method."""
        plan = self._plan
        return {} if plan is None or self._stale() else self._ready(plan)

    def _ready(self, plan: Plan, focus: int | None = None) -> dict[str, Explanation]:
        found = {}
        row = plan.focus if focus is None else focus
        for method, job in plan.jobs.items():
            result: Result | None = self._cache.get(job.run) if job.state == "ready" else None
            whole = None if result is None else result.at(row, plan.target_at(row))
            if whole is not None:
                found[method] = whole
        return found

    def shown(self) -> Shown:
        """All that is finished for the shown text: what a file of it holds."""
        plan = self._plan
        if plan is None or self._stale():
            raise MixwidgetError("There is nothing to save yet: wait until it is computed.")
        results = plan.results(self._finished)
        row, target = plan.answer, plan.target_at(plan.answer)
        here = [one for one in results if one.follows_focus or plan.focus == row]
        found = {result.method.id: result.at(row, target) for result in here}
        aimed = {id: plan.aimed(one) for id, one in found.items() if one is not None}
        return Shown(plan.case, results, self._ready(plan), aimed, self._measuring.known(plan))

    def _stale(self) -> bool:
        version, _ = self._inbox.latest()
        return version != self._version

    # The worker. All below runs on its thread alone.

    def turn(self) -> None:
        """Do all that is to be done, and settle."""
        inbox = self._inbox
        while not inbox.closed:
            version, wish = inbox.latest()
            try:
                self._restore()
                self._serve()
                if wish is None or inbox.paused:
                    self._measuring.drop()
                    return
                if version != self._version and not self._prepare(version, wish):
                    continue
                job = self._next()
                if job is not None:
                    self._compute(job)
                    continue
                self._show()
                if self._verdicts and self._plan is not None and self._failure is None:
                    self._measuring.begin(self._plan)
                    self._measure()
                    if self._stale() or self._measuring.work is not None:
                        continue
            except Exception as error:  # nothing may end the thread but its owner
                logger.exception("The session's worker failed.")
                self._version = version
                self._fail(error)
            inbox.settle(version)
            self._measure()
            with inbox.changed:
                if inbox.idle() and self._measuring.work is None:
                    return

    def _restore(self) -> None:
        """Record the shown text again if its pass was let go in a pause."""
        plan = self._plan
        if plan is not None and not plan.case.recorded and not self._inbox.paused:
            with contextlib.suppress(CancelledError):
                plan.case.trace(self._check_closed)

    def _prepare(self, version: int, wish: Wish) -> bool:
        """Model, tokens and recorded pass for a wish. False if another wish overtook it."""
        self._failure, self._given_up = None, False

        def check() -> None:
            self._serve()
            inbox = self._inbox
            if inbox.closed or inbox.paused or inbox.version != version or self._given_up:
                raise CancelledError("overtaken")

        try:
            if self._source is None:
                self._tell.say("Loading the model")
                self._source = self._opener()
            case = self._case(wish)
            if not case.recorded:
                self._tell.say("Running the model", tokens=describe.tokens(case), runs={})
            case.trace(check)
            self._cache.put(("case", wish.text, wish.text_pair), case, case.trace().nbytes())
            self._commit(version, wish, case)
        except CancelledError:
            if self._given_up and self._inbox.version == version:
                self._version, self._plan = version, None
                self._measuring.drop()
                self._tell.say("Cancelled.", state="ready", runs={})
                return True
            return False
        except Exception as error:
            self._version = version
            self._fail(error)
        return True

    def _case(self, wish: Wish) -> Case:
        from ..models import Case, encode

        kept: Case | None = self._cache.get(("case", wish.text, wish.text_pair))
        if kept is not None:
            return kept
        assert self._source is not None
        encoding = encode(self._source, wish.text, wish.text_pair, self._truncate)
        return Case(self._source, encoding)

    def _commit(self, version: int, wish: Wish, case: Case) -> None:
        """Make a wish whose text is recorded the one that is worked on, and show it."""
        before = self._plan
        plan = make_plan(wish, case, self._jobs, self._finished)
        self._jobs = {job.run: job for job in plan.jobs.values()}
        self._plan, self._version = plan, version
        self._measuring.review(plan)
        self._cache.pin([("case", wish.text, wish.text_pair), *self._jobs])
        values: dict[str, Any] = {"focus": plan.focus}
        if before is None or (before.case, before.focus) != (case, plan.focus):
            values["model_info"] = plan.model_info()
        if before is None or before.case is not case:
            values["tokens"] = describe.tokens(case)
            self._catalogued = frozenset()
        if not self._catalogued.issuperset(plan.jobs):  # a method may be registered at any time
            values["catalogue"] = describe.catalogue(case, plan.predicted())
            self._catalogued = frozenset(entry["id"] for entry in values["catalogue"])
        self._show(**values)
        for job in plan.jobs.values():
            result: Result | None = self._cache.get(job.run)
            if result is not None and job.state == "ready":
                self._sender.looked_at(result, plan.focus)

    def _finished(self, run: str) -> Result | None:
        result: Result | None = self._cache.get(run)
        return None if result is None or result.explanation is None else result

    def _next(self) -> Job | None:
        return None if self._plan is None or self._failure is not None else self._plan.next()

    def _compute(self, job: Job) -> None:
        from .. import engine

        assert self._plan is not None
        plan, case = self._plan, self._plan.case
        job.state, job.begun = "computing", time.perf_counter()
        self._show()
        try:
            run = engine.start(
                case,
                job.method,
                target=plan.target if plan.target.kind != "none" else None,
                focus=plan.focus,
                params=job.options,
                cancelled=lambda: self._interrupted(job, case),
                report=lambda share: self._progress(job, share),
            )
            result = Result(job.run, run.method, case.trace().tokens, len(case.trace()))
            self._cache.put(job.run, result, result.nbytes)
            collected = []
            with contextlib.closing(engine.parts(run)) as parts:  # type: ignore[type-var]
                for part in parts:
                    collected.append(part)
                    new = result.add(part)
                    job.done_layers = result.done_layers
                    self._sender.grown(result, new, self._focus())
                    run.check()
            job.seconds = time.perf_counter() - job.begun
            new = result.finish(engine.assemble(run, collected, job.seconds))
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
        self._show(model_info=self._plan.model_info())

    def _focus(self) -> int:
        assert self._plan is not None
        return self._plan.focus

    def _interrupted(self, job: Job, case: Case) -> bool:
        """Asked between chunks: whether the running work is to end here."""
        inbox = self._inbox
        if inbox.closed or inbox.paused or not case.recorded:
            return True
        self._serve()
        if job.state != "computing" or self._jobs.get(job.run) is not job:
            return True
        version, wish = inbox.latest()
        if version == self._version or wish is None:
            return False
        encoding = case.encoding
        if (wish.text, wish.text_pair) != (encoding.text, encoding.text_pair):
            return True
        try:
            plan = make_plan(wish, case, self._jobs, self._finished)
            if plan.next() is not job:
                return True
            self._commit(version, wish, case)  # something else changed: go on with this
        except Exception:
            return True  # it will be found and told again when the wish is prepared
        return False

    def _progress(self, job: Job, share: float) -> None:
        job.progress = share
        if self._tell.due():
            self._show()

    def _measure(self) -> None:
        """Measure what is asked for, now that no run is left; anything new comes first."""
        work, plan, inbox = self._measuring.work, self._plan, self._inbox
        if work is None or inbox.closed:
            return
        if plan is None or self._failure is not None:
            self._measuring.drop()
            return

        def interrupted() -> bool:
            if inbox.closed or inbox.paused:
                return True
            self._serve()
            return self._measuring.work is not work or self._stale()

        self._measuring.go_on(plan, lambda row: self._ready(plan, row), interrupted)

    # Telling.

    def _show(self, **values: Any) -> None:
        """Tell the listener how things stand."""
        if self._plan is not None and self._failure is None:
            values |= {"runs": self._plan.runs(), "status": self._plan.status()}
        elif self._failure is not None:
            message, hint = describe.in_words(self._failure)
            values["status"] = {"state": "error", "message": message, "hint": hint}
        self._tell.publish(values)

    def _fail(self, error: BaseException) -> None:
        """The wish cannot be carried out at all."""
        if not isinstance(error, MixwidgetError):
            logger.warning("The text could not be prepared.", exc_info=error)
        self._failure, self._jobs = error, {}
        self._measuring.drop()
        self._show(runs={})

    # Requests.

    def _serve(self) -> None:
        """Answer what has come in. Called between chunks too, so it is quick."""
        while (request := self._inbox.take()) is not None:
            try:
                self._answer(request)
            except Exception as error:
                if not isinstance(error, MixwidgetError):
                    logger.exception("A request failed.")
                self._tell.post(protocol.failed(request.id, *describe.in_words(error)))

    def _answer(self, request: Request) -> None:
        if request.kind == "need":
            missing = tuple(want for want in request.wants if not self._send(want, request.id))
            self._tell.post(protocol.done(request.id, missing))
            return
        if request.kind == "export":
            name, mime, data = self._export(self.shown(), request.format, request.state)
            self._tell.post(protocol.file(request.id, name, mime, data))
        elif request.kind == "measure":
            self._measuring.ask(request, None if self._failure is not None else self._plan)
            return
        elif request.kind == "cancel" and request.request is not None:
            self._measuring.stop(request.request)
        elif request.kind == "cancel":
            self._stop(request.run)
        elif request.kind == "rerun":
            self._forget(request.method)
        if request.id:
            self._tell.post(protocol.done(request.id))

    def _send(self, want: Want, id: str) -> bool:
        if want.run:
            result: Result | None = self._cache.get(want.run)
            values = None if result is None else result.array(want)
        else:
            plan = self._plan
            values = None if plan is None else text_array(plan.case, want)
        if values is None:
            return False
        self._tell.post(protocol.array(want, values, id=id))
        return True

    def _check_closed(self) -> None:
        if self._inbox.closed or self._inbox.paused:
            raise CancelledError("closed")

    def _stop(self, run: str | None) -> None:
        if run is None:
            self._measuring.stop()
        if run is None and self._version != self._inbox.version:
            self._given_up = True  # it is still being prepared
        for job in self._jobs.values():
            if job.open and run in (None, job.run):
                job.state, job.message = "cancelled", "Cancelled."
        if self._plan is not None:
            self._show()

    def _forget(self, method: str | None) -> None:
        for run, job in list(self._jobs.items()):
            if method in (None, job.method):
                self._cache.drop(run)
                del self._jobs[run]
        if method is None and self._plan is not None:
            wish = self._plan.wish
            self._cache.drop(("case", wish.text, wish.text_pair))


@atexit.register
def _close_all() -> None:
    """Threads in torch while Python goes away end in a crash: stop them first."""
    for session in list(_sessions):
        session.close(timeout=1.0)
