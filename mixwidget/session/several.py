"""Several models of one text: a session for each, of which one stands in front.

The listener is told about the one in front as about a single model, and about all of them in
`models`. Those beside follow: they are asked the same when the one in front has finished.
"""

from __future__ import annotations

import threading
import time
import warnings
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import CancelledError
from ..protocol import Message, Request
from .inbox import Wish, model_of
from .laid import Laid, lay
from .opening import Opened
from .session import CACHE_BYTES, Session
from .shown import Shown
from .telling import Exporter, Listener

if TYPE_CHECKING:
    from ..explanation import Explanation
    from ..models import Case

# What a wish says of the text, and of what is asked about it, whatever the methods.
_TEXT = ("text", "text_pair")
_ASKED = (*_TEXT, "target", "params", "focus")
_LATER = {"state": "waiting", "message": "It waits for the model in front.", "hint": ""}


def open_session(
    opened: Opened, listener: Listener, exporter: Exporter, *, truncate: bool, cache_bytes: int
) -> Session | Several:
    """A view's session: of one model, or of several."""
    if opened.names:
        return Several(opened, listener, exporter, truncate=truncate, cache_bytes=cache_bytes)
    return Session(
        opened.openers[0],
        listener,
        exporter,
        truncate=truncate,
        cache_bytes=cache_bytes,
        verdicts=True,
    )


class Several:
    """The sessions of several models. For callers on any thread, as a `Session` is."""

    def __init__(
        self,
        opened: Opened,
        listener: Listener,
        exporter: Exporter,
        *,
        truncate: bool = False,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        self.names = opened.names
        self._listener = listener
        # `_telling` is held while the listener is told, so that nothing older comes later; `_lock`
        # never while anybody else is called.
        self._lock, self._telling = threading.Lock(), threading.Lock()
        self._wish: Wish | None = None
        self._front = 0
        self._stopped = False
        count = len(opened.openers)
        self._told: list[dict[str, Any]] = [{} for _ in range(count)]
        self._wishes: list[Wish | None] = [None] * count
        self._read: tuple[Any, Laid] = None, Laid()
        me = weakref.ref(self)

        def export(shown: Shown, format: str, traits: Any) -> tuple[str, str, bytes]:
            owner = me()
            return exporter(shown if owner is None else owner._whole(shown), format, traits)

        self._sessions = [
            Session(
                opener,
                _Ear(me, place),
                export,
                truncate=truncate,
                cache_bytes=cache_bytes // count,
                verdicts=True,
            )
            for place, opener in enumerate(opened.openers)
        ]

    # What a session can do.

    def ask(self, wish: Wish) -> None:
        """Show this from now on, with the model `wish.model` in front."""
        with self._lock:
            moved = self._front != wish.model
            if moved and self._lie().units:
                wish = replace(wish, focus=None)  # its tokens are others
            self._front, self._wish, self._stopped = wish.model, wish, False
            self._wishes[wish.model] = wish
        front = self._sessions[wish.model]
        if moved:
            front.request(Request("show", ""))
        front.ask(wish)

    def request(self, request: Request) -> None:
        """Answer this, by exactly one final message: by the model that it is about."""
        if request.kind in ("cancel", "rerun") and request.run is None:
            if request.request is None:
                self._stopped = request.kind == "cancel"
            for place, session in enumerate(self._sessions):
                id = request.id if place == self._front else ""
                session.request(replace(request, id=id))
            return
        self._sessions[self._meant(request)].request(request)

    def cancel(self, run: str | None = None) -> None:
        self.request(Request("cancel", "", run=run))

    def rerun(self, method: str | None = None) -> None:
        self.request(Request("rerun", "", method=method))

    def wait(self, timeout: float | None = None) -> None:
        """Block until the latest wish is carried out for all models; raise what went wrong with
        the one in front. What went wrong with another is a warning: the others stay."""
        end = None if timeout is None else time.monotonic() + timeout
        self._sessions[self._front].wait(timeout)
        for place, session in enumerate(self._sessions):
            if place == self._front or self._wishes[place] is None:
                continue
            try:
                session.wait(None if end is None else max(end - time.monotonic(), 0.01))
            except (TimeoutError, CancelledError):
                raise
            except Exception as error:
                warnings.warn(f"{self.names[place]}: {error}", stacklevel=3)

    def pause(self, paused: bool = True) -> None:
        for session in self._sessions:
            session.pause(paused)

    def close(self, timeout: float = 0.0) -> None:
        for session in self._sessions:
            session.close(timeout)

    @property
    def working(self) -> bool:
        return any(session.working for session in self._sessions)

    @property
    def case(self) -> Case | None:
        """Text and model in front as they are shown."""
        return self._sessions[self._front].case

    @property
    def error(self) -> BaseException | None:
        """What went wrong with the model in front."""
        return self._sessions[self._front].error

    def explanations(self) -> dict[str, Explanation]:
        """The finished explanations of the model in front, by method."""
        return self._sessions[self._front].explanations()

    def by_model(self) -> dict[str, dict[str, Explanation]]:
        """The finished explanations of all models, by name and method."""
        return {
            name: session.explanations()
            for name, session in zip(self.names, self._sessions, strict=True)
        }

    def shown(self) -> Shown:
        return self._whole(self._sessions[self._front].shown())

    # Between the sessions.

    def heard(self, place: int, values: dict[str, Any]) -> None:
        """A session tells how things stand; on its own thread."""
        with self._telling:
            with self._lock:
                self._told[place] |= values
                values = dict(values) if place == self._front else {}
                if "reply" in values:  # answers are of one model
                    values["reply"] = {**values["reply"], "offer": False}
                wishes = self._following()
                values["models"] = [self._entry(k) for k in range(len(self._sessions))]
            self._listener.publish(values)
        for follower, wish in wishes:
            self._sessions[follower].ask(wish)

    def post(self, message: Message) -> None:
        self._listener.post(message)

    def _meant(self, request: Request) -> int:
        """The model that a request is about: runs say whose they are."""
        runs = [want.run for want in request.wants] or [*request.runs.values()]
        runs += [] if request.run is None else [request.run]
        models = {model_of(run) if run else self._front for run in runs} or {self._front}
        place = models.pop()
        known = not models and place < len(self._sessions)
        return place if known else self._front

    def _following(self) -> list[tuple[int, Wish]]:
        """What the models beside are asked now: the same, once the one in front has finished."""
        wish, front = self._wish, self._sessions[self._front]
        busy = self._told[self._front].get("status", {}).get("state") == "computing"
        if wish is None or self._stopped or front.stale or busy:
            return []
        plan = front.plan
        if plan is not None and not _same(plan.wish, wish, _ASKED):
            plan = None  # the one in front has failed
        method = wish.method if plan is None else plan.front
        found = []
        for place in range(len(self._sessions)):
            if place == self._front:
                continue
            # Its own answer's row while that of the model in front is looked at.
            focus = None if plan is None or plan.focus == plan.answer else plan.focus
            if focus is not None:
                focus = self._lie().seen_by(place, self._front, focus)
            follows = replace(wish, model=place, method=method, focus=focus)
            self._wishes[place] = replace(follows, heads=False, ways=False)
            found.append((place, self._wishes[place]))
        return found  # type: ignore[return-value]

    def _lie(self) -> Laid:
        """How the models read the text that is shown, as far as they have read it."""
        wish, found = self._wish, dict[int, Any]()
        for place, session in enumerate(self._sessions):
            plan = session.plan
            if plan is not None and wish is not None and _same(plan.wish, wish, _TEXT):
                found[place] = plan.case.encoding.tokens
        key = (self._front, {place: id(one) for place, one in found.items()})
        if wish is not None and self._read[0] != key:
            self._read = key, lay(found, self._front, [wish.text, wish.text_pair or ""])
        return self._read[1]

    def _entry(self, place: int) -> dict[str, Any]:
        """A model as a view shows it beside others."""
        session, wish, told = self._sessions[place], self._wishes[place], self._told[place]
        plan = session.plan
        units, refused = self._lie().units, self._lie().refused
        status = dict(told.get("status", _LATER))
        current = plan is not None and wish is not None and _same(plan.wish, wish, _ASKED)
        if wish is None or self._wish is None or not _same(wish, self._wish, _TEXT):
            status, current = dict(_LATER), False
        if place in refused:
            status = {"state": "error", "message": refused[place], "hint": ""}
        info = told.get("model_info", {}) if current else {}
        runs = told.get("runs", {}) if current and place not in refused else {}
        asked_for = [] if plan is None else plan.wish.methods
        return {
            "name": self.names[place],
            "front": place == self._front,
            **status,
            "layers": info.get("layers", 0),
            "tokens": len(plan.case.encoding.tokens) if current and plan else 0,
            "answer": info.get("answer"),
            "cut": info.get("cut", 0),
            "prediction": info.get("prediction"),
            "target": plan.target.label if current and plan else "",
            "runs": {id: run for id, run in runs.items() if id in asked_for},
            "units": units.get(place),
        }

    def _whole(self, shown: Shown) -> Shown:
        """With what is shown of the other models."""
        others = {}
        for place, session in enumerate(self._sessions):
            plan = session.plan
            if place != self._front and plan is not None and session.explanations():
                others[place] = session.shown()
        return replace(shown, beside=others, names=self.names)


def _same(one: Wish, other: Wish, fields: tuple[str, ...]) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in fields)


class _Ear:
    """Listens to one of the sessions, without keeping the others alive."""

    def __init__(self, owner: weakref.ref[Several], place: int) -> None:
        self._owner, self._place = owner, place

    def publish(self, values: dict[str, Any]) -> None:
        owner = self._owner()
        if owner is not None:
            owner.heard(self._place, values)

    def post(self, message: Message) -> None:
        owner = self._owner()
        if owner is not None:
            owner.post(message)
