"""`MixView`: the widget. Traits and messages only; the work is done by `session`."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
import ipywidgets
import traitlets
from traitlets import TraitError

from .. import protocol
from ..errors import InputError
from ..explanation import plain_text, shortened
from ..protocol import Message
from ..saving import exported_view, format_of
from ..session import CACHE_BYTES, EMPTY_MODEL, Wish, find_openers, open_session, plain
from .answers import Answered, opens_answer
from .controls import CONTROLS, Controls, check_method, check_names, given_text
from .several import SeveralModels
from .still import Still

if TYPE_CHECKING:
    from ..explanation import Explanation

_STATIC = Path(__file__).parents[1] / "static"
_ASKS = (
    *("text", "text_pair", "method", "compared", "params", "focus", "target", "view", "front"),
    *("answer", "step", "max_new_tokens", "shade"),
)
_SHOWN = ("tokens", "reply", "model_info", "catalogue", "runs", "status", "models")

logger = logging.getLogger("mixwidget")


def _bundle(name: str) -> Path | str:
    """The text of a file. As a path anywidget can reload it while it is being developed, but
    then keeps every widget that was ever made."""
    path = _STATIC / name
    return path if os.environ.get("ANYWIDGET_HMR") == "1" else path.read_text("utf-8") + "\n"


class MixView(SeveralModels, Answered, Controls, anywidget.AnyWidget):
    """Shows how a transformer mixes information between the tokens of a text.

    The cell returns at once; model and methods run on a thread, and the picture fills while
    they do. Every control is a trait: `view.layer = 3` moves the slider, and moving it sets
    `view.layer`.

    Args:
        model: a transformers model, the name or folder of one, or a pipeline; or a list of two to
            four, which are shown side by side. Without any the embedded demo model and its
            sentence are shown.
        text: the input; for a language model also a chat, [{"role": ..., "content": ...}, ...].
        tokenizer: needed only if it cannot be found from the model; of several models one for all
            or a list.
        text_pair: the second text of a pair.
        method: an id from `mixwidget.methods()`; None: the one recommended for this kind of model.
        target: what is explained, see `explain`; None means what the model predicts.
        focus: the token whose row is read; None means [CLS], the mask, the last token, or where
            a question is answered the answer's first.
        truncate: cut a text that is too long instead of showing an error.
        cache_bytes: how much of what was computed is kept, to go back to at once.
        **controls: any other control: answer (a text, ids, or True for what the model writes),
            step (which of its tokens is asked about), view, layer, ...; and `names`, what several
            models are called (by default as their folders, numbered where equal).
    """

    _esm = _bundle("widget.js")
    _css = _bundle("widget.css")

    tokens: Any = traitlets.List(read_only=True).tag(sync=True)
    model_info = traitlets.Dict(dict(EMPTY_MODEL), read_only=True).tag(sync=True)
    catalogue: Any = traitlets.List(read_only=True).tag(sync=True)
    runs = traitlets.Dict(read_only=True).tag(sync=True)
    status = traitlets.Dict(
        {"state": "computing", "message": "Starting", "hint": ""}, read_only=True
    ).tag(sync=True)

    _still = traitlets.Unicode(read_only=True).tag(sync=True)

    @traitlets.default("layout")
    def _default_layout(self) -> ipywidgets.Layout:
        # The widget fits itself into any width, so that in a row of others it asks for none.
        return ipywidgets.Layout(flex="1 1 auto")

    def __init__(
        self,
        model: Any = ...,
        text: Any = ...,
        tokenizer: Any = None,
        text_pair: str | None = None,
        method: str | None = None,
        target: Any = None,
        focus: Any = None,
        *,
        truncate: bool = False,
        cache_bytes: int = CACHE_BYTES,
        **controls: Any,
    ) -> None:
        opened = find_openers(model, text, tokenizer, controls.get("names"))
        text = given_text(opened.text, text_pair)
        if method is not None:
            check_method(method)
        check_names(controls, [*CONTROLS, "names", *anywidget.AnyWidget.class_trait_names()])
        if opens_answer(text, controls, opened.names):
            controls = {"view": "answer", **controls}
        if opened.names:
            controls = {"view": "compare", **controls, "names": opened.names}
        # Before anything is sent or observed: both may come from another thread.
        self._lock = threading.RLock()
        self._batch = threading.local()
        self._pace = protocol.Pace()
        self._chosen_focus: int | None = None
        self._session = None
        self._picture = Still(self)
        super().__init__(
            _view_count=0,  # the page counts its views for us from there
            text=text,
            text_pair=text_pair,
            method=method,
            target=target,
            focus=focus,
            **controls,
        )
        self._chosen_focus = self.focus
        self._session = open_session(
            opened, _Outlet(self), exported_view, truncate=truncate, cache_bytes=cache_bytes
        )
        self.on_msg(_receive)
        self.observe(_asked, list(_ASKS))
        self.observe(_views_changed, "_view_count")
        self._ask()

    # For scripts and other cells.

    @property
    def explanation(self) -> Explanation | None:
        """The current result of the method in front; None until it is ready."""
        return self.explanations.get(self.method)

    @property
    def explanations(self) -> dict[str, Explanation]:
        """The finished results of all asked methods, by method id; of the model in front."""
        return {} if self._session is None else self._session.explanations()

    @property
    def error(self) -> BaseException | None:
        """What went wrong with what is asked, None if nothing did."""
        return None if self._session is None else self._session.error

    def wait(self, timeout: float | None = None) -> MixView:
        """Block until all that is asked is computed; raise what went wrong with it."""
        if self._session is not None:
            self._session.wait(timeout)
            self._picture.refresh()
        return self

    def cancel(self) -> None:
        """Stop what is being computed. What is finished stays."""
        if self._session is not None:
            self._session.cancel()

    def rerun(self, method: str | None = None) -> None:
        """Compute a method again (None: everything, with a new pass through the model)."""
        if method is not None:
            check_method(method)
        if self._session is not None:
            self._session.rerun(method)

    def save(self, path: str | os.PathLike[str], *, faithfulness: bool = False) -> None:
        """Write what is shown, by the path's ending; into a folder as html, under a name that says
        model, method and text.

        html is a page of its own to look around in, with all methods that are computed for this
        text; it needs neither Python nor a network. json holds all numbers of the asked methods;
        png, svg and pdf are pictures of the method in front.

        Args:
            faithfulness: measure all methods of a page before it is written. That asks the model
                about some hundred edited texts; otherwise the page holds what has been measured,
                as a rule the verdict on the methods that are shown.
        """
        place = Path(path)
        format = "html" if place.is_dir() else format_of(place)
        self.wait()
        assert self._session is not None
        made = exported_view(self._session.shown(), format, self._page_traits(), faithfulness)
        (place / made[0] if place.is_dir() else place).write_bytes(made[2])

    def close(self) -> None:
        """Stop all work and take the widget off the page."""
        session = getattr(self, "_session", None)
        if session is not None:
            session.close()
            self._picture.cancel()
        super().close()

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        try:
            self.set_trait("_still", self._picture.show())
        except Exception:
            logger.exception("There is no still picture.")
        return super()._repr_mimebundle_(**kwargs)

    def __repr__(self) -> str:
        state = self.status
        shown = shortened(plain_text(self.text), 40)
        name, method = self.model_info["name"] or "model", self.method or "the recommended method"
        return f"<MixView {shown!r} by {method} on {name}: {state['message'] or 'ready'}>"

    # State in: from Python code, and from the browser.

    def _page_traits(self) -> dict[str, Any]:
        """Everything a page shows, as it is now."""
        with self._lock:
            return {name: getattr(self, name) for name in (*CONTROLS, *_SHOWN)}

    def _known_size(self) -> tuple[int, int]:
        return self.model_info["layers"], self.model_info["heads"]

    def _ask(self) -> None:
        if self._session is not None:
            self._session.ask(
                Wish(
                    text=self.text,
                    text_pair=self.text_pair or None,
                    method=self.method or None,
                    compared=tuple(self.compared),
                    params=plain(self.params),
                    target=tuple(self.target) if isinstance(self.target, list) else self.target,
                    focus=self._chosen_focus,
                    ways=True,
                    heads=self.view == "heads",
                    model=self.front,
                    **self._asked_of_answer(),
                )
            )

    def notify_change(self, change: Any) -> None:
        with self._lock:
            super().notify_change(change)

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """State from the browser: what is wrong is refused, and the browser told the old."""
        accepted, refused, reasons = {}, [], []
        with self._lock:
            for name, value in sync_data.items():
                try:
                    if name in (*_SHOWN, "_still"):
                        raise TraitError(f"{name} cannot be set.")
                    if name in CONTROLS:
                        value = self.traits()[name]._validate(self, value)
                    accepted[name] = value
                except TraitError as error:
                    refused.append(name)
                    reasons.append(str(error))
            super().set_state(accepted)
        if refused:
            self.send_state(refused)
            self._post(protocol.failed("", " ".join(reasons), "The former value was kept."))

    # State out: from the session's worker.

    def _show(self, values: dict[str, Any]) -> None:
        """Take over what the session found out, in one message."""
        if self._gone():
            return
        self._pace.wait()
        with self._lock, self._one_message():
            self._batch.publishing = True
            try:
                if "focus" in values:
                    self._settle_focus(values.pop("focus"))
                if self.method:  # chosen while the recommended one was being found
                    values.pop("method", None)
                for name, value in values.items():
                    self.set_trait(name, value)
                if "model_info" in values:
                    self._settle_ranges()
                if values.get("status", {}).get("state") == "ready":
                    self._picture.later()
            finally:
                self._batch.publishing = False

    def _settle_focus(self, focus: int) -> None:
        if self._chosen_focus is not None and self._chosen_focus != focus:
            n = len(self.tokens)
            negative = self._chosen_focus < 0 and self._chosen_focus + n == focus
            self._chosen_focus = focus if negative else None
        self.set_trait("focus", focus)

    def _settle_ranges(self) -> None:
        """Layer and head may have been chosen before the model was known."""
        layers, heads = self.model_info["layers"], self.model_info["heads"]
        if self.layer is None or not -layers <= self.layer < layers:
            self.set_trait("layer", layers - 1)
        elif self.layer < 0:
            self.set_trait("layer", self.layer % layers)
        if self.head >= heads:
            self.set_trait("head", -1)

    @contextlib.contextmanager
    def _one_message(self) -> Iterator[None]:
        """Send the traits set on this thread together, so that the browser sees no mixture."""
        names: list[str] = []
        self._batch.names = names
        try:
            yield
        finally:
            self._batch.names = None
            if names and self.comm is not None:
                super().send_state(list(dict.fromkeys(names)))

    def send_state(self, key: str | Iterable[str] | None = None) -> None:
        names: list[str] | None = getattr(self._batch, "names", None)
        if names is not None and isinstance(key, str):
            names.append(key)
        else:
            super().send_state(key)

    def _gone(self) -> bool:
        """Whether there is nobody to send to. A host that runs a cell again may close the comm
        without a word to the widget."""
        if self.comm is not None and getattr(self.comm, "_closed", False):
            self.close()
        return self.comm is None

    def _post(self, message: Message) -> None:
        content, data = message
        if self._gone():
            return
        self._pace.wait()
        self.send(content, None if data is None else [data])


class _Outlet:
    """The session's way to its view, which it must not keep alive."""

    def __init__(self, view: MixView) -> None:
        self._view = weakref.ref(view)

    def publish(self, values: dict[str, Any]) -> None:
        view = self._view()
        if view is not None:
            view._show(values)

    def post(self, message: Message) -> None:
        view = self._view()
        if view is not None:
            view._post(message)


def _receive(view: MixView, content: Any, buffers: Any) -> None:
    """A message from the browser: only queued, whatever thread this is."""
    try:
        request = protocol.parse(content)
    except InputError as error:
        id = content.get("id", "") if isinstance(content, dict) else ""
        view._post(protocol.failed(str(id), str(error), "Reload the page."))
        return
    if request.kind == "export":
        request = replace(request, state=view._page_traits())
    if view._session is not None:
        view._session.request(request)


def _asked(change: Any) -> None:
    """A control that decides what is computed has changed."""
    view: MixView = change["owner"]
    if getattr(view._batch, "publishing", False):
        return
    if change["name"] == "focus":
        view._chosen_focus = change["new"]
    task = view.model_info["task"]
    view._of_another_answer(change["name"])
    if change["name"] == "text" and task == "question_answering" and view.target is not None:
        view.target = None  # a span of the text that was
    view._ask()


def _views_changed(change: Any) -> None:
    """The last view has gone (its cell was run again, say), or one has come back."""
    view: MixView = change["owner"]
    if view._session is not None:
        view._session.pause(change["new"] == 0)
