"""What callers on any thread leave for a session's worker, and the worker's life."""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..errors import CancelledError
from ..protocol import Request


@dataclass(frozen=True)
class Wish:
    """What is to be shown: the latest wish is the only one that counts."""

    text: Any  # or a chat
    text_pair: str | None
    method: str | None  # None: the recommended one, which the plan of it names
    compared: tuple[str, ...] = ()
    params: dict[str, dict[str, Any]] = field(default_factory=dict)
    target: Any = None
    focus: int | None = None
    heads: bool = False  # what each head wrote into the answer is shown
    ways: bool = False  # which token took what from which is shown, whatever the method
    model: int = 0  # which of several models is asked; of a whole view, which stands in front
    answer: Any = None  # a text, ids, or True for what the model writes; None for none
    longest: int = 64  # most tokens that it writes
    step: int | None = None  # which token of the answer is asked about; None: all of it
    shade: str = "probability"  # or "dependence": what is shown of the answer's tokens

    def same_text(self, other: Wish) -> bool:
        """Whether the model reads the same for it."""
        return _read(self) == _read(other)

    @property
    def methods(self) -> list[str]:
        """The asked methods, the one in front first."""
        return list(dict.fromkeys(id for id in (self.method, *self.compared) if id))


def _read(wish: Wish) -> tuple[Any, ...]:
    longest = wish.longest if wish.answer is True else 0
    return wish.text, wish.text_pair, wish.answer, longest, wish.step


def model_mark(model: int) -> str:
    """What a run's name begins with if it is of one of the other models."""
    return f"{model}:" if model else ""


def model_of(run: str) -> int:
    """Whose run it is."""
    mark, colon, _ = run.partition(":")
    return int(mark) if colon and mark.isdecimal() else 0


class Owner(Protocol):
    def turn(self) -> None:
        """Do all that is to be done."""


class Inbox:
    """Outlives its session by a moment, so that a waiting worker keeps no session alive.

    `version` counts the wishes; `settled` is the version that has been carried out.
    """

    def __init__(self, owner: Owner, idle_seconds: float) -> None:
        self.changed = threading.Condition()
        self.wish: Wish | None = None
        self.version = self.settled = 0
        self.requests: deque[Request] = deque()
        self.closed = self.paused = False
        self.thread: threading.Thread | None = None
        self._owner = weakref.ref(owner)
        self._idle_seconds = idle_seconds

    def leave(self, wish: Wish | None = None, request: Request | None = None) -> None:
        """Leave a wish or a request, and see to it that somebody is there to read it."""
        with self.changed:
            if self.closed or (request is None and wish == self.wish):
                return
            if wish is not None:
                self.wish = wish
                self.version += 1
            if request is not None:
                if request.kind == "rerun":
                    self.version += 1
                self.requests.append(request)
            self._wake()

    def _wake(self) -> None:
        if self.thread is None:
            self.thread = threading.Thread(
                target=_work, args=(self, self._owner), name="mixwidget", daemon=True
            )
            self.thread.start()
        self.changed.notify_all()

    def pause(self, paused: bool) -> None:
        """Carry out nothing (requests excepted) until it is resumed."""
        with self.changed:
            self.paused = paused
            if not self.closed and not self.idle():
                self._wake()

    def latest(self) -> tuple[int, Wish | None]:
        with self.changed:
            return self.version, self.wish

    def take(self) -> Request | None:
        with self.changed:
            return self.requests.popleft() if self.requests else None

    def settle(self, version: int) -> None:
        with self.changed:
            self.settled = version
            self.changed.notify_all()

    def close(self) -> None:
        with self.changed:
            self.closed = True
            self.requests.clear()
            self.changed.notify_all()

    def wait(self, timeout: float | None) -> None:
        """Block until the latest wish is carried out. An interrupt ends it at once."""
        if threading.current_thread() is self.thread:
            raise RuntimeError("wait() would wait for itself: it was called from an observer.")
        self.pause(False)
        end = None if timeout is None else time.monotonic() + timeout
        with self.changed:
            while self.settled != self.version:
                if self.closed:
                    raise CancelledError("The view is closed.")
                left = 1.0 if end is None else end - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"Still computing after {timeout} seconds.")
                self.changed.wait(min(left, 0.2))  # short, so that interrupts get through

    def join(self, timeout: float) -> None:
        thread = self.thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def idle(self) -> bool:
        """Whether there is nothing to do (call with the lock held)."""
        return not self.requests and (self.paused or self.settled == self.version)

    def rest(self) -> bool:
        """Wait for something to do; False, and no thread any more, if nothing comes."""
        with self.changed:
            if self.idle() and not self.closed:
                self.changed.wait(self._idle_seconds)
            if self.idle() or self.closed:
                self.thread = None
                self.changed.notify_all()
                return False
            return True


def _work(inbox: Inbox, owner: Callable[[], Owner | None]) -> None:
    """The worker: does what there is to do, holds on to nothing while it rests."""
    while (session := owner()) is not None:
        session.turn()
        del session
        if not inbox.rest():
            return
    with inbox.changed:
        inbox.thread = None
