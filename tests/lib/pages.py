"""A page without a browser: a comm that records what would have been sent to it."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import comm
import pytest

from mixwidget import MixView
from tests.lib import tiny
from tests.lib.sessions import TEXT, until

MODEL = tiny.model("bert")


class Page:
    """All that went to the browser through one comm, and a way back."""

    def __init__(self) -> None:
        self.comm_id = uuid.uuid4().hex
        self.sent: list[tuple[dict[str, Any], list[bytes]]] = []
        self.state: dict[str, Any] = {}
        self.closed = self._closed = False
        self.threads: set[int] = set()
        self._handler: Any = None

    def on_msg(self, handler: Any) -> None:
        self._handler = handler

    def send(self, data: Any = None, buffers: Any = None, **_: Any) -> None:
        data = json.loads(json.dumps(data))  # must be JSON
        self.threads.add(threading.get_ident())
        self.sent.append((data, [bytes(buffer) for buffer in buffers or []]))
        if data["method"] == "update":
            self.state.update(data["state"])

    def close(self, *_: Any, **__: Any) -> None:
        self.closed = True
        self._handler = None

    def set(self, **state: Any) -> None:
        """As if the user had moved a control."""
        self._handler({"content": {"data": {"method": "update", "state": state}}, "buffers": []})

    def ask(self, **content: Any) -> list[dict[str, Any]]:
        """Send a request; all answers once the final one is there."""
        content = {"v": 1, "id": uuid.uuid4().hex, **content}
        data = {"method": "custom", "content": content}
        self._handler({"content": {"data": data}, "buffers": []})
        final = ("done", "error", "cancelled")
        until(lambda: any(c["kind"] in final for c in self.messages(content["id"])))
        return self.messages(content["id"])

    def messages(self, id: str | None = None) -> list[dict[str, Any]]:
        found = [d["content"] for d, _ in list(self.sent) if d["method"] == "custom"]
        return found if id is None else [content for content in found if content["id"] == id]

    def updates(self) -> list[dict[str, Any]]:
        return [d["state"] for d, _ in list(self.sent) if d["method"] == "update"]


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Page:
    """The page of the next widget that is made."""
    made = Page()

    def create(**options: Any) -> Page:
        made.state.update(json.loads(json.dumps(options["data"]["state"])))
        return made

    monkeypatch.setattr(comm, "create_comm", create)
    return made


def make(**options: Any) -> MixView:
    options = {"method": "attention_rollout", "tokenizer": tiny.tokenizer(), **options}
    return MixView(options.pop("model", MODEL), options.pop("text", TEXT), **options)


@pytest.fixture
def view(page: Page) -> Iterator[MixView]:
    made = make()
    made.wait(20)
    yield made
    made.close()
