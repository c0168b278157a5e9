"""Helpers for the tests of session and widget: a listener that records, methods that wait."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from mixwidget.explanation import Part
from mixwidget.methods.registry import forget, method
from mixwidget.models import Source, open_source
from mixwidget.protocol import Message, Request, Want
from mixwidget.saving import exported_view
from mixwidget.session import Session
from mixwidget.session.inbox import Wish
from tests.lib import tiny

TEXT = "the film is not bad ."
OTHER = "we saw a good film and it was never boring ."
CARD: dict[str, Any] = {
    "family": "baseline",
    "paper": "",
    "year": 2024,
    "link": "",
    "measures": "",
    "formula": "",
    "ignores": "",
    "cost": lambda size: 1.0,
}


class Recorder:
    """A listener that keeps all it is told."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.history: list[dict[str, Any]] = []
        self.messages: list[Message] = []
        self.threads: set[str] = set()

    def publish(self, values: dict[str, Any]) -> None:
        self.threads.add(threading.current_thread().name)
        self.values.update(values)
        self.history.append(values)

    def post(self, message: Message) -> None:
        self.threads.add(threading.current_thread().name)
        self.messages.append(message)

    def of_kind(self, kind: str, id: str | None = None) -> list[dict[str, Any]]:
        found = [content for content, _ in list(self.messages) if content["kind"] == kind]
        return found if id is None else [content for content in found if content["id"] == id]

    def answer(self, session: Session, request: Request) -> list[dict[str, Any]]:
        """Send a request and give all messages with its id once the final one is there."""
        session.request(request)
        until(lambda: self.finals(request.id))
        return [content for content, _ in self.messages if content["id"] == request.id]

    def finals(self, id: str) -> list[dict[str, Any]]:
        return [
            content
            for content, _ in list(self.messages)
            if content["id"] == id and content["kind"] in ("done", "error", "cancelled")
        ]


def until(condition: Callable[[], Any], timeout: float = 10.0) -> Any:
    """Wait for a condition; its value."""
    end = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError("it did not come to that")
        time.sleep(0.002)
    return value


def source(family: str = "bert", head: str = "SequenceClassification") -> Source:
    return open_source(tiny.model(family, head), tiny.tokenizer())


@contextlib.contextmanager
def session(given: Source | None = None, **options: Any) -> Iterator[tuple[Session, Recorder]]:
    recorder = Recorder()
    made = Session(lambda: given or source(), recorder, exported_view, **options)
    try:
        yield made, recorder
    finally:
        made.close(timeout=5)


def wish(text: str = TEXT, method: str = "raw_attention", **more: Any) -> Wish:
    return Wish(**{"text_pair": None, **more}, text=text, method=method)


def need(id: str, *wants: Want) -> Request:
    return Request("need", id, wants=wants)


class Gate:
    """A method that waits in every layer until it is let go, and counts how often it ran."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.open = threading.Event()
        self.began = threading.Event()
        self.begun = 0

    def run(self, run: Any) -> Iterator[Part]:
        self.begun += 1
        self.began.set()
        for layer in run.layers():
            while not self.open.wait(0.005):
                run.tick(0.5)
            yield run.part(layer, torch.eye(run.trace.tokens))


@contextlib.contextmanager
def gate(name: str = "gate", **card: Any) -> Iterator[Gate]:
    """Register a method that waits, for the length of a block."""
    made = Gate(name)
    entry = {"title": name, "yields": "maps", "needs": ("attention",), **CARD, **card}
    method(name, **entry)(lambda run: made.run(run))
    try:
        yield made
    finally:
        made.open.set()
        forget(name)
