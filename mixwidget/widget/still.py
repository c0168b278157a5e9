"""A still picture beside the widget, for a notebook that is looked at without its kernel.

A saved widget shows nothing without a kernel. So in a notebook the view puts one more output
into its cell: a picture, drawn when the work is done. It carries a mark in its bytes, and live
views hide pictures with their mark (js/src/still.ts).
"""

from __future__ import annotations

import base64
import io
import logging
import sys
import threading
import weakref
import zlib
from typing import TYPE_CHECKING, Any

from ..errors import MixwidgetError

if TYPE_CHECKING:
    from ..explanation import Explanation
    from .mixview import MixView

logger = logging.getLogger("mixwidget")

_REST = 1.0  # seconds without new work before the picture is drawn
_DPI, _SHOWN_DPI = 160, 96
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_HEADER_END = 33  # signature and first chunk


def _chunk(kind: bytes, data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")


_EMPTY = (
    _SIGNATURE
    + _chunk(b"IHDR", (1).to_bytes(4, "big") * 2 + bytes([8, 6, 0, 0, 0]))
    + _chunk(b"IDAT", zlib.compress(bytes(5)))
    + _chunk(b"IEND", b"")
)


def mark_of(name: str) -> str:
    """How a name of 3, 6, 9, ... bytes shows in the base64 of a picture marked with it."""
    return base64.b64encode(name.encode("ascii")).decode("ascii")


def marked(png: bytes, name: str) -> bytes:
    """The picture with a comment. It begins at a multiple of three bytes, as the name's length
    is one, so that its base64 is always the same."""
    return png[:_HEADER_END] + _chunk(b"tEXt", b"Source\0" + name.encode()) + png[_HEADER_END:]


def draw(explanation: Explanation, kind: str, options: dict[str, Any]) -> tuple[bytes, int]:
    """A PNG and how wide it is to be shown; the text if the kind cannot be drawn."""

    try:
        figure = explanation.plot(kind, **options)
    except MixwidgetError:
        figure = explanation.plot()
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI)
    png = buffer.getvalue()
    pixels = int.from_bytes(png[16:20], "big")
    return png, round(pixels * _SHOWN_DPI / _DPI)


def _notebook() -> Any:
    """The shell of a notebook whose pages are known to hide the picture; None elsewhere."""
    ipython = sys.modules.get("IPython")
    shell: Any = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is None or "google.colab" in sys.modules:
        return None
    return None if "__vsc_ipynb_file__" in shell.user_ns else shell


class Still:
    """The picture of one view. Does nothing until `show` is called in a notebook."""

    def __init__(self, view: MixView) -> None:
        self._view = weakref.ref(view)
        self._name = ""
        self._drawn: tuple[Any, bytes, int] | None = None
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()

    def show(self) -> str:
        """Put the picture, or a place for it, into the present output. The mark it carries, or
        "" where there is no such output."""
        view, shell = self._view(), _notebook()
        if view is None or shell is None:
            return ""
        self._name = f"mixwidget-{view.model_id:0>32.32}"
        self._draw()
        self._publish(update=False)
        if self._drawn is None:
            self.later()
        return mark_of(self._name)

    def later(self) -> None:
        """Draw it soon, unless there is new work until then."""
        self.cancel()
        if self._name:
            self._timer = threading.Timer(_REST, _refresh, [weakref.ref(self)])
            self._timer.daemon = True
            self._timer.start()

    def refresh(self) -> None:
        """Draw what is shown now, if the picture is of something else. Never raises."""
        try:
            if self._name and self._draw():
                self._publish(update=True)
        except Exception:
            logger.exception("The still picture could not be drawn.")

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _draw(self) -> bool:
        """Whether there is a new picture."""
        view = self._view()
        explanation = None if view is None else view.explanation
        if view is None or explanation is None or view.status["state"] != "ready":
            return False
        others = [sorted(entry["runs"]) for entry in view.models if entry["state"] == "ready"]
        runs = [view.runs[view.method]["run"], others]
        key = (*runs, view.focus, view.view, view.layer, view.aggregate)
        with self._lock:
            if self._drawn is not None and self._drawn[0] == key:
                return False
            self._drawn = (key, *draw(explanation, *_plot_of(view)))
        return True

    def _publish(self, update: bool) -> None:
        view, shell = self._view(), _notebook()
        if view is None or shell is None:
            return
        _, png, width = self._drawn or (None, _EMPTY, 1)
        picture = base64.b64encode(marked(png, self._name)).decode("ascii")
        shell.display_pub.publish(
            {"image/png": picture, "text/plain": repr(view)},
            {"image/png": {"width": width}},
            transient={"display_id": self._name},
            update=update,
        )


def _plot_of(view: MixView) -> tuple[str, dict[str, Any]]:
    """The plot that comes nearest to what the view shows."""
    how = {"special": view.special, "unit": view.unit, "colours": view.colours}
    one = {**how, "layer": view.layer, "how": view.aggregate}
    kinds: dict[str, dict[str, Any]] = {
        "text": one,
        "map": one,
        "layers": {**how, "how": view.aggregate},
        "graph": {**how, "threshold": view.threshold, "top_k": view.top_k or None},
        "multiples": {**how, "how": view.aggregate},
        "compare": {**one, **_others(view)},
    }
    return (view.view, kinds[view.view]) if view.view in kinds else ("text", one)


def _others(view: MixView) -> dict[str, Any]:
    """What stands beside the method in front, of all models, and what it is called."""
    if not view.names:
        return {"others": [one for id, one in view.explanations.items() if id != view.method]}
    titles = {entry["id"]: entry["title"] for entry in view.catalogue}
    held = view.explanations_by_model
    front = (view.names[view.front], view.method)
    found = {(name, id): one for name in view.names for id, one in held[name].items()}
    keys = [front, *(key for key in found if key != front)]
    one_method = len({id for _, id in keys}) == 1
    names = [name if one_method else f"{titles.get(id, id)}, {name}" for name, id in keys]
    return {"others": [found[key] for key in keys[1:]], "names": names}


def _refresh(still: weakref.ref[Still]) -> None:
    """On the timer's thread, which must not keep the view."""
    held = still()
    if held is not None:
        held.refresh()
