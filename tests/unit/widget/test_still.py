"""The still picture of a view; tests/browser/test_still.py looks at it in notebooks."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from mixwidget import MixView
from mixwidget.widget import still
from tests.lib.sessions import until


class Shell:
    """The part of a notebook's shell that is used."""

    def __init__(self) -> None:
        self.kernel = object()
        self.user_ns: dict[str, Any] = {}
        self.sent: list[dict[str, Any]] = []
        self.display_pub = SimpleNamespace(publish=self._publish)

    def _publish(self, data: Any, metadata: Any, *, transient: Any, update: bool) -> None:
        picture = Image.open(io.BytesIO(base64.b64decode(data["image/png"])))
        picture.load()
        shown = {"size": picture.size, "source": picture.info.get("Source"), **data}
        self.sent.append({**shown, "id": transient["display_id"], "update": update})


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Shell:
    made = Shell()
    monkeypatch.setattr("IPython.get_ipython", lambda: made)
    return made


@pytest.fixture
def view() -> Iterator[MixView]:
    made = MixView(method="attention_rollout")
    yield made
    made.close()


def test_a_place_at_first_and_the_picture_when_the_work_is_done(
    shell: Shell, view: MixView, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:  # as if it were still being computed
        patch.setattr(still.Still, "_draw", lambda self: False)
        view._repr_mimebundle_()
    assert [(one["size"], one["update"]) for one in shell.sent] == [((1, 1), False)]
    view.wait(30)
    until(lambda: len(shell.sent) == 2)
    place, picture = shell.sent
    assert picture["update"]
    assert picture["size"][0] > 300
    assert picture["id"] == place["id"] == picture["source"]
    assert view._still
    assert view._still in place["image/png"]
    assert view._still in picture["image/png"]
    view.wait(30)
    assert len(shell.sent) == 2  # nothing new


def test_what_is_ready_is_shown_at_once(shell: Shell, view: MixView) -> None:
    view.wait(30)
    assert shell.sent == []
    bundle = view._repr_mimebundle_()
    assert [one["update"] for one in shell.sent] == [False]
    assert shell.sent[0]["size"][0] > 300
    assert "application/vnd.jupyter.widget-view+json" in bundle[0]


@pytest.mark.parametrize("name", ["text", "layers", "map", "graph", "multiples", "compare"])
def test_it_is_drawn_as_the_view_shows_it(shell: Shell, view: MixView, name: str) -> None:
    view.view, view.layer, view.unit, view.special = name, 2, "words", False
    view.compared = ["attcat"]
    view.wait(30)._repr_mimebundle_()
    assert shell.sent[0]["size"][0] > 300


def test_methods_without_maps_are_drawn_as_text(shell: Shell, view: MixView) -> None:
    view.view, view.method = "map", "attcat"
    view.wait(30)._repr_mimebundle_()
    assert shell.sent[0]["size"][0] > 300


@pytest.mark.parametrize("elsewhere", ["no shell", "terminal", "vscode"])
def test_elsewhere_there_is_none(
    shell: Shell, view: MixView, monkeypatch: pytest.MonkeyPatch, elsewhere: str
) -> None:
    if elsewhere == "no shell":
        monkeypatch.setattr("IPython.get_ipython", lambda: None)
    elif elsewhere == "terminal":
        shell.kernel = None  # type: ignore[assignment]
    else:
        shell.user_ns["__vsc_ipynb_file__"] = "x.ipynb"
    view.wait(30)._repr_mimebundle_()
    assert shell.sent == []
    assert view._still == ""


def test_a_picture_that_cannot_be_drawn_spoils_nothing(
    shell: Shell, view: MixView, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("no font")

    monkeypatch.setattr(still, "draw", fail)
    view.wait(30)
    assert view._repr_mimebundle_() is not None
    view.wait(30)
