"""How a session's worker tells its listener."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from ..protocol import Message
from .inbox import Inbox

if TYPE_CHECKING:
    from .shown import Shown

logger = logging.getLogger("mixwidget")
logger.addHandler(logging.NullHandler())  # threads do not write into the notebook

_EVERY = 0.1  # seconds between two reports of progress


# (what is shown, format, the view's traits) -> the file's name, mime type and bytes.
Exporter = Callable[["Shown", str, Any], tuple[str, str, bytes]]


class Listener(Protocol):
    """Who is told. Called on the worker thread, with no lock held."""

    def publish(self, values: dict[str, Any]) -> None:
        """Small state: any of status, runs, tokens, model_info, catalogue, focus."""

    def post(self, message: Message) -> None:
        """A message with its bytes."""


class Teller:
    """Talks to a listener until the inbox is closed; a listener's mistake ends nothing."""

    def __init__(self, listener: Listener, inbox: Inbox) -> None:
        self._listener, self._inbox = listener, inbox
        self._at = 0.0

    def due(self) -> bool:
        """Whether it is time for another report of progress."""
        return time.perf_counter() - self._at >= _EVERY

    def publish(self, values: dict[str, Any]) -> None:
        self._at = time.perf_counter()
        if self._inbox.closed:
            return
        try:
            self._listener.publish(values)
        except Exception:
            logger.exception("A listener failed.")

    def say(self, message: str, state: str = "computing", **values: Any) -> None:
        """How things stand while there is no plan."""
        self.publish({**values, "status": {"state": state, "message": message, "hint": ""}})

    def post(self, message: Message) -> None:
        if self._inbox.closed:
            return
        try:
            self._listener.post(message)
        except Exception:
            logger.exception("A message could not be sent.")
