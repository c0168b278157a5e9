"""A model and what is asked about it, for callers on any thread. Knows no widget.

They leave a `Wish` (the latest is the only one that counts) or a request; one worker thread
(`work.py`) carries them out and tells a listener.
"""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import CancelledError
from ..protocol import Request
from .inbox import Wish
from .plan import Plan
from .shown import Shown, shown
from .telling import Exporter, Listener
from .work import Worker

if TYPE_CHECKING:
    from ..explanation import Explanation
    from ..models import Case, Source

CACHE_BYTES = 256 * 2**20

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
        self._worker = Worker(
            opener,
            listener,
            exporter,
            truncate=truncate,
            cache_bytes=cache_bytes,
            idle_seconds=idle_seconds,
            verdicts=verdicts,
        )
        self._inbox, self._cache = self._worker.inbox, self._worker.cache
        weakref.finalize(self, self._inbox.close)
        _sessions.add(self)

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
        plan = self._worker.plan
        if self._worker.failure is not None:
            raise self._worker.failure
        front = None if plan is None else plan.jobs.get(plan.front)
        if front is not None and front.error is not None:
            raise front.error
        if front is None or front.state == "cancelled":
            raise CancelledError("The work was cancelled before it was finished.")

    def pause(self, paused: bool = True) -> None:
        """Nobody looks: stop, and keep only the explanations shown last. `wait` resumes too."""
        self._inbox.pause(paused)
        if paused:
            self._cache.trim()
            if self._worker.plan is not None:
                self._worker.plan.case.release()

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
    def plan(self) -> Plan | None:
        """The last wish that was made concrete; the latest may still be `stale`, or have failed."""
        return self._worker.plan

    @property
    def stale(self) -> bool:
        """Whether the latest wish is still being prepared."""
        return self._worker.stale()

    @property
    def case(self) -> Case | None:
        """Text and model as they are shown; None while they are being prepared."""
        plan = self._worker.plan
        return None if plan is None or self._worker.stale() else plan.case

    @property
    def error(self) -> BaseException | None:
        """What went wrong with the latest wish, None if nothing did."""
        plan = self._worker.plan
        front = None if plan is None else plan.jobs.get(plan.front)
        return self._worker.failure or (None if front is None else front.error)

    def explanations(self) -> dict[str, Explanation]:
        """The finished explanations of what is asked, by method."""
        plan = self._worker.plan
        return {} if plan is None or self._worker.stale() else plan.ready(self._cache.get)

    def by_model(self) -> dict[str, dict[str, Explanation]]:
        """The same by the model's name, as of several."""
        case = self.case
        return {} if case is None else {case.source.name: self.explanations()}

    def shown(self) -> Shown:
        """All that is finished for the shown text: what a file of it holds."""
        return shown(self._worker)


@atexit.register
def _close_all() -> None:
    """Threads in torch while Python goes away end in a crash: stop them first."""
    for session in list(_sessions):
        session.close(timeout=1.0)
