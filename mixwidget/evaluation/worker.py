"""A benchmark's unit of work: some examples, measured wherever it is sent.

A unit pickles: it says how to get the model instead of holding it. Each process opens a
model once and keeps it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..engine import explain_case, prepare
from ..errors import MixwidgetError, UnsupportedMethodError
from ..methods import get_method
from ..metrics import Choice, evidence, get_metric
from ..models import open_source
from .asks import ASKS, Known
from .examples import Example, tokens_of_spans

# What a process has opened: the model asked for last, since workers serve one at a time; and
# the models of the benchmarks that this process itself runs.
_opened: dict[str, Any] = {}
_pinned: dict[str, Any] = {}


class ModelMissing(Exception):
    """This process can neither find the model's file nor was given its bytes."""


@dataclass(frozen=True)
class ModelRef:
    """How to get a model: by name, or as bytes from a file or from the unit itself.

    Attributes:
        key: says which model it is: "name:..." or "bytes:" and their SHA-256.
    """

    key: str
    name: str | None = None
    path: str | None = None
    data: bytes | None = None

    def open(self) -> Any:
        """The model's `Source`, opened at the first call in each process."""
        if self.key in _pinned:
            return _pinned[self.key]
        if self.key not in _opened:
            source = self._load()
            _opened.clear()
            _opened[self.key] = source
        return _opened[self.key]

    def _load(self) -> Any:

        if self.name is not None:
            return open_source(self.name)
        data = self.data
        if data is None and self.path is not None and Path(self.path).is_file():
            data = Path(self.path).read_bytes()
        if data is None or hashlib.sha256(data).hexdigest() != self.key.partition(":")[2]:
            raise ModelMissing(self.key)
        return open_source(*pickle.loads(data))


@contextlib.contextmanager
def pinned(ref: ModelRef, source: Any) -> Iterator[None]:
    """Tell this process that it has a model already."""
    _pinned[ref.key] = source
    try:
        yield
    finally:
        _pinned.pop(ref.key, None)


@dataclass(frozen=True)
class Row:
    """One value, or why there is none.

    Attributes:
        error: "" or what went wrong; `undefined` if the metric does not apply to the method.
        data: what an ask found, as JSON has it; see `asks`.
    """

    example: str
    method: str
    metric: str
    value: float = float("nan")
    error: str = ""
    undefined: bool = False
    data: dict[str, Any] | None = None


@dataclass(frozen=True)
class Unit:
    """Some examples with everything that is asked about them."""

    model: ModelRef
    examples: tuple[Example, ...]
    methods: tuple[Choice, ...]
    metrics: tuple[Choice, ...]
    asks: tuple[Choice, ...] = ()
    target: str = "predicted"
    truncate: bool = False
    seed: int = 0
    threads: int | None = None
    owner: int = field(default_factory=os.getpid)

    def with_bytes(self, data: bytes) -> Unit:
        return replace(self, model=replace(self.model, data=data))


def run_unit(unit: Unit) -> list[Row] | None:
    """Measure a unit's examples; None if this process has no way to get the model."""
    import torch

    if unit.threads is not None and os.getpid() != unit.owner:
        torch.set_num_threads(unit.threads)
    try:
        source = unit.model.open()
    except ModelMissing:
        return None
    return [row for example in unit.examples for row in measure_example(source, example, unit)]


def strangers(ids: tuple[str, ...]) -> list[str]:
    """Which methods this process does not know."""
    unknown = []
    for id in ids:
        try:
            get_method(id)
        except MixwidgetError:
            unknown.append(id)
    return unknown


def measure_example(source: Any, example: Example, unit: Unit) -> list[Row]:
    """All methods and metrics on one example; what fails becomes a row that says why."""

    key = example.key()
    try:
        case = prepare(
            source,
            example.text,
            text_pair=example.text_pair,
            truncate=unit.truncate,
            answer=example.said,
        )
    except Exception as error:
        return [
            _failed(key, method, metric, error)
            for method in unit.methods
            for metric in (*unit.metrics, *unit.asks)
        ]
    known = _known(case, example)
    rows, explained = _explained(case, example, unit, known)
    _ask_together(case, explained, unit.metrics)
    for method, made in explained:
        for metric in unit.metrics:
            entry = get_metric(metric.id)
            try:
                shared = evidence(made, case) if entry.needs == "model" else None
                value = float(entry(made, shared, metric.options, known.cues, known.answer))
                # Correlations are undefined where the scores are constant: that is no failure.
                why = "" if value == value else "undefined for this text"
                rows.append(Row(key, method.label, metric.label, value, why, bool(why)))
            except Exception as error:
                rows.append(_failed(key, method, metric, error))
        for ask in unit.asks:
            try:
                data = ASKS[ask.id](made, case, known, **ask.options)
                rows.append(Row(key, method.label, ask.label, data=data))
            except Exception as error:
                rows.append(_failed(key, method, ask, error))
    return rows


def _known(case: Any, example: Example) -> Known:
    tokens, answer = case.encoding.tokens, None
    if example.answer is not None:
        segment = 0 if example.text_pair is None else 1
        answer = tokens_of_spans(tokens, [example.answer], segment)
    return Known(tokens_of_spans(tokens, example.cues), answer)


def _explained(
    case: Any, example: Example, unit: Unit, known: Known
) -> tuple[list[Row], list[tuple[Choice, Any]]]:
    """The example by all methods, and rows for those that fail."""
    target, focus = example.target, example.focus
    if case.encoding.answer is not None:  # is its own target
        focus = None
    elif target is None and unit.target == "label":
        target = example.label
        if known.answer and case.source.task == "question_answering":
            target = (known.answer[0], known.answer[-1])
    key, rows, explained = example.key(), [], []
    for method in unit.methods:
        options = dict(method.options)
        if method.id == "random":
            # Of the text and not of its place, so that neither order nor chunks matter.
            options.setdefault("seed", _seed(unit.seed, key))
        try:
            made = explain_case(case, method.id, target=target, focus=focus, **options)
            explained.append((method, made))
        except Exception as error:
            wanted = (*unit.metrics, *unit.asks)
            rows += [_failed(key, method, metric, error) for metric in wanted]
    return rows, explained


def _ask_together(
    case: Any, explained: list[tuple[Choice, Any]], metrics: tuple[Choice, ...]
) -> None:
    """Send what all metrics will ask about all methods through the model at once."""

    wanted: dict[Any, tuple[Any, list[Any]]] = {}  # by target: there may be several
    for _, made in explained:
        for metric in metrics:
            try:
                entry = get_metric(metric.id)
                if entry.needs == "model":
                    shared = evidence(made, case)
                    target = (made.target.kind, made.target.index, made.target.position)
                    asked = wanted.setdefault(target, (shared, []))[1]
                    asked.extend(entry.removals(made, shared, metric.options))
            except Exception:
                continue  # the metric itself will say so, in its own row
    for shared, asked in wanted.values():
        try:
            shared.probabilities(asked)
        except Exception:
            continue


def _seed(seed: int, key: str) -> int:
    return int(hashlib.sha256(f"{seed}:{key}".encode()).hexdigest()[:8], 16)


def _failed(key: str, method: Choice, metric: Choice, error: Exception) -> Row:
    message = f"{type(error).__name__}: {error}"
    undefined = isinstance(error, UnsupportedMethodError)
    return Row(key, method.label, metric.label, error=message, undefined=undefined)
