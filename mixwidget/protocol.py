"""Messages between kernel and browser. This file and js/src/wire/protocol.ts alone spell them.

docs/architecture.md holds the table of messages and of what each array means.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from .errors import InputError

VERSION = 1

# Up to this many tokens every map is pushed; of longer texts only what is looked at.
PUSH_TOKENS = 192
OVERVIEW = 96  # most rows and columns of an overview
MAX_BYTES = 4_000_000  # of one message's buffer
MAX_PER_SECOND = 200  # the server drops widget messages above 1000 a second, silently

Dtype = Literal["f4", "f2", "u1"]
What = Literal[
    "layer", "rollout", "sum", "rows", "layer_scores", "scores", "overview", "heads", "head_stats",
    "head_scores", "head_sums", "mixing",
]  # fmt: skip
Aggregate = Literal["layer", "rollout", "sum"]
WHATS: tuple[str, ...] = get_args(What)
AGGREGATES: tuple[str, ...] = get_args(Aggregate)
_BY_LAYER = {"layer", "rollout", "sum", "layer_scores", "overview", "heads", "head_scores"}
_NUMPY: dict[str, str] = {"f4": "<f4", "f2": "<f2", "u1": "u1"}

Content = dict[str, Any]
# A message as it goes out: its content, and its numbers if it has any.
Message = tuple[Content, bytes | None]


@dataclass(frozen=True)
class Want:
    """One array by name; `run` "" stands for what belongs to the text."""

    run: str
    what: str
    layer: int | None = None
    of: str | None = None
    focus: int | None = None

    def fields(self) -> Content:
        return {
            "run": self.run,
            "what": self.what,
            "layer": self.layer,
            "of": self.of,
            "focus": self.focus,
        }


@dataclass(frozen=True)
class Request:
    """What the browser asks. `kind` is need, cancel, rerun, measure or export."""

    kind: str
    id: str
    wants: tuple[Want, ...] = ()
    run: str | None = None
    request: str | None = None
    method: str | None = None
    format: str = ""
    state: Mapping[str, Any] | None = None  # the traits of the view that asks, for a page
    runs: Mapping[str, str] = field(default_factory=dict)
    target: Any = None
    focus: int | None = None
    by: str = "delete"
    whole: bool = False  # measure however long it takes


def parse(content: Any) -> Request:
    """A request from the browser; an InputError for anything that is not one."""
    if not isinstance(content, Mapping):
        raise InputError("The message is not an object.")
    kind, id = content.get("kind"), str(content.get("id", ""))
    if content.get("v", VERSION) != VERSION:
        raise InputError(
            f"The message has version {content.get('v')}, this is {VERSION}: reload the page."
        )
    if kind == "need":
        wants = content.get("wants")
        if not isinstance(wants, list):
            raise InputError("need lacks its list of wants.")
        return Request("need", id, wants=tuple(_want(want) for want in wants))
    if kind == "cancel":
        run, other = content.get("run"), content.get("request")
        return Request(
            "cancel",
            id,
            run=None if run is None else str(run),
            request=None if other is None else str(other),
        )
    if kind == "rerun":
        method = content.get("method")
        return Request("rerun", id, method=None if method is None else str(method))
    if kind == "measure":
        return _measure(content, id)
    if kind == "export":
        return Request("export", id, format=str(content.get("format", "")))
    raise InputError(f"There is no message {kind!r}.")


def _measure(content: Mapping[str, Any], id: str) -> Request:
    runs, focus = content.get("runs"), content.get("focus")
    if not isinstance(runs, Mapping) or not runs:
        raise InputError("measure lacks its runs.")
    if focus is not None and (isinstance(focus, bool) or not isinstance(focus, int)):
        raise InputError(f"focus is a whole number, not {focus!r}.")
    return Request(
        "measure",
        id,
        runs={str(method): str(run) for method, run in runs.items()},
        target=content.get("target"),
        focus=focus,
        by=str(content.get("by", "delete")),
        whole=content.get("whole") is True,
    )


def _want(given: Any) -> Want:
    if not isinstance(given, Mapping) or given.get("what") not in WHATS:
        raise InputError(f"There is no array {given!r}; `what` can be {', '.join(WHATS)}.")
    of = given.get("of")
    if of is not None and of not in AGGREGATES:
        raise InputError(f"of is {of!r}; it can be {', '.join(AGGREGATES)}.")
    numbers = [given.get("layer"), given.get("focus")]
    for number in numbers:
        if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
            raise InputError(f"layer and focus are whole numbers, not {number!r}.")
    if given["what"] in _BY_LAYER and numbers[0] is None:
        raise InputError(f"{given['what']} needs a layer.")
    return Want(str(given.get("run", "")), given["what"], numbers[0], of, numbers[1])


def done(id: str, missing: tuple[Want, ...] = ()) -> Message:
    return {"kind": "done", "id": id, "v": VERSION, "missing": [w.fields() for w in missing]}, None


def failed(id: str, message: str, hint: str = "") -> Message:
    """The request could not be carried out; with id "" a value was refused."""
    return {"kind": "error", "id": id, "v": VERSION, "message": message, "hint": hint}, None


def cancelled(id: str) -> Message:
    return {"kind": "cancelled", "id": id, "v": VERSION}, None


def file(id: str, name: str, mime: str, data: bytes) -> Message:
    return {"kind": "file", "id": id, "v": VERSION, "name": name, "mime": mime}, data


def faithfulness(id: str, part: Content) -> Message:
    """One part of an answer to `measure`; see metrics/report.py."""
    return {**part, "kind": "faithfulness", "id": id, "v": VERSION}, None


def array(want: Want, values: NDArray[Any], *, id: str = "", seq: int = -1) -> Message:
    """An array as a message. Its bytes are a copy: what is written later does not show."""
    dtype, packed, scale = pack(fitted(values), wire_type(want.what, values))
    content = {
        "kind": "array",
        "id": id,
        "v": VERSION,
        **want.fields(),
        "seq": seq,
        "dtype": dtype,
        "shape": list(packed.shape),
        "scale": scale,
    }
    return content, packed.tobytes()


def wire_type(what: str, values: NDArray[Any]) -> Dtype:
    """Vectors as they are, maps in half precision, overviews and very large arrays in bytes."""
    if values.ndim < 2 or what in ("rows", "head_stats", "head_scores", "head_sums", "mixing"):
        return "f4"
    if what == "overview" or values.size * 2 > MAX_BYTES:
        return "f2" if values.size and values.min() < 0 else "u1"
    return "f2"


def pack(values: NDArray[Any], dtype: Dtype) -> tuple[Dtype, NDArray[Any], float]:
    """Numbers for the wire: value = number * scale. Halves and bytes use their whole range."""
    if dtype == "f4":
        return dtype, np.ascontiguousarray(values, dtype="<f4"), 1.0
    finite = np.abs(values[np.isfinite(values)])
    largest = float(finite.max(initial=0.0)) or 1.0
    if dtype == "f2":
        return dtype, (values / largest).astype("<f2"), largest
    scale = largest / 255
    return dtype, np.rint(np.clip(values / scale, 0, 255)).astype("u1"), scale


def unpack(content: Content, buffer: bytes) -> NDArray[np.float32]:
    """The numbers of an array message (what the browser does; for tests and for scripts)."""
    numbers = np.frombuffer(buffer, dtype=_NUMPY[content["dtype"]]).reshape(content["shape"])
    return np.asarray(numbers.astype(np.float32) * np.float32(content["scale"]))


def fitted(values: NDArray[Any]) -> NDArray[Any]:
    """Square maps too large for one message even in bytes are shrunk until they fit."""
    if values.size <= MAX_BYTES or values.ndim < 2 or values.shape[-1] != values.shape[-2]:
        return values
    others = values.size // (values.shape[-1] * values.shape[-2])
    return shrink(values, max(1, int((MAX_BYTES / others) ** 0.5)))


def shrink(values: NDArray[Any], most: int = OVERVIEW) -> NDArray[Any]:
    """[..., n, n] -> [..., m, m], m <= most: the value of largest size in each patch."""
    n = values.shape[-1]
    if n <= most:
        return values
    edges = np.arange(most) * n // most

    def patches(pick: np.ufunc) -> NDArray[Any]:
        return pick.reduceat(pick.reduceat(values, edges, axis=-1), edges, axis=-2)

    high = patches(np.maximum)
    if values.min() >= 0:
        return high
    low = patches(np.minimum)
    return np.where(-low > high, low, high)


class Pace:
    """Keeps a sender below a number of messages a second by letting it wait."""

    def __init__(self, most: int = MAX_PER_SECOND) -> None:
        self._sent: deque[float] = deque(maxlen=most)
        self._lock = threading.Lock()

    def wait(self) -> None:
        with self._lock:
            now = time.monotonic()
            full = len(self._sent) == self._sent.maxlen
            due = max(now, self._sent[0] + 1.0) if full else now
            self._sent.append(due)
        if due > now:
            time.sleep(due - now)
