"""`benchmark`: methods against metrics over a dataset, on one machine or many."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..methods import all_methods, get_method
from ..metrics import FAITHFULNESS, choices, get_metric
from ..models import Size, Source, open_source
from .examples import Example, read_examples
from .reference import reference
from .running import results
from .store import Store, run_key
from .summary import summary_frame
from .worker import Unit

if TYPE_CHECKING:
    import pandas as pd

# Methods that take at most this many times a forward pass are run unless others are named.
CHEAP = 20.0


def cheap_methods(size: Size | None = None) -> list[str]:
    """Ids of the methods that cost at most `CHEAP` forward passes on a 30-token text."""
    size = size or Size(tokens=30, layers=6, heads=12, width=384, inner=1536)
    return [entry.id for entry in all_methods() if entry.cost(size) <= CHEAP]


def benchmark(
    model: Any,
    dataset: Any,
    methods: Any = None,
    metrics: Any = FAITHFULNESS,
    executor: Executor | None = None,
    *,
    tokenizer: Any = None,
    per_example: bool = False,
    target: str = "predicted",
    truncate: bool = False,
    columns: Mapping[str, str] | None = None,
    limit: int | None = None,
    seed: int = 0,
    cache: str | os.PathLike[str] | None = None,
    chunk_size: int = 8,
    threads: int | None = 1,
    progress: bool = True,
) -> pd.DataFrame:
    """Measure methods on a dataset: one row for each method and metric.

    Args:
        model: what `explain` takes. A name or folder is opened by each worker; a model in
            memory is sent to each worker once.
        dataset: a list of texts, of (text, label), of (text, pair), of dicts, a .tsv, .csv or
            .jsonl path, a pandas frame or a `datasets.Dataset`. Columns are found by their
            usual names; `columns={"text": "comment"}` names others.
        methods: ids, ("id", {options}) or {label: either}; None means all cheap ones.
        metrics: likewise; see `mixwidget.metrics.METRICS`.
        executor: any `concurrent.futures.Executor` (a process pool, Dask's
            `client.get_executor()`); None runs here.
        per_example: a row for each example too.
        target: "predicted", or "label" to explain the example's label. An example's own
            `target` goes before both.
        truncate: cut texts that are too long; otherwise they are rows with an error.
        limit: only the first examples.
        seed: of the `random` method; each text has its own random scores.
        cache: a folder. What is finished is kept there, and not computed again by the next
            call with the same model, methods, metrics and texts.
        chunk_size: examples sent to a worker at a time.
        threads: of torch in each worker process; None leaves it alone.
        progress: show a progress bar.

    Returns:
        Columns method, metric, mean, stderr (of the mean), n (examples with a value), errors
        (examples that failed), better ("higher" or "lower"); `example`, `text`, `value` and
        `error` are filled in rows of single examples. An example that fails is such a row
        whatever `per_example` says. A metric that does not apply to a method has n = 0 and
        the reason in `error`.

    >>> from mixwidget import benchmark, demo
    >>> texts = [("never boring", "positive"), ("a dull plot", "negative")]
    >>> names = ["alti", "random"], ["comprehensiveness"]
    >>> table = benchmark(demo.load()[0], texts, *names, progress=False)
    >>> table["n"].tolist()
    [2, 2]
    """
    if target not in ("predicted", "label"):
        raise InputError(f'target is {target!r}; it can be "predicted" or "label".')
    if chunk_size < 1:
        raise InputError(f"chunk_size is {chunk_size}; it must be at least 1.")
    chosen = tuple(choices(cheap_methods() if methods is None else methods, "method"))
    measured = tuple(choices(metrics, "metric"))
    for choice in chosen:
        get_method(choice.id).options(choice.options)
    for choice in measured:
        get_metric(choice.id).check(choice.options)
    source = None if _by_name(model, tokenizer, executor) else open_source(model, tokenizer)
    examples = read_examples(dataset, columns, lambda: _labels(model, source))[:limit]
    with contextlib.ExitStack() as stack:
        ref, data = reference(model, source, executor, stack)
        unit = Unit(ref, (), chosen, measured, target, truncate, seed, threads)
        key = run_key(unit, source, model) if cache is not None else ""
        store = Store(cache, key)
        done = store.load()
        todo = [e for key, e in {e.key(): e for e in examples}.items() if key not in done]
        units = _units(unit, todo, chunk_size)
        bar = stack.enter_context(_progress(len(todo), progress))
        for finished, rows in results(units, executor, data):
            store.save(rows)
            for row in rows:
                done.setdefault(row.example, []).append(row)
            bar.update(len(finished.examples))
    return summary_frame(examples, done, chosen, measured, per_example)


def _by_name(model: Any, tokenizer: Any, executor: Executor | None) -> bool:
    """Whether workers can open the model by themselves, so that it need not be opened here."""
    elsewhere = executor is not None and not isinstance(executor, ThreadPoolExecutor)
    return elsewhere and tokenizer is None and isinstance(model, str | os.PathLike)


def _labels(model: Any, source: Source | None) -> list[str]:
    if source is not None:
        return source.labels
    from transformers import AutoConfig

    names = getattr(AutoConfig.from_pretrained(os.fspath(model)), "id2label", None) or {}
    return [str(name) for name in names.values()]


def _units(unit: Unit, examples: Sequence[Example], size: int) -> list[Unit]:
    chunks = [tuple(examples[i : i + size]) for i in range(0, len(examples), size)]
    return [replace(unit, examples=chunk) for chunk in chunks]


@contextlib.contextmanager
def _progress(total: int, wanted: bool) -> Iterator[Any]:
    from tqdm.auto import tqdm

    with tqdm(total=total, unit="text", disable=not wanted) as bar:
        yield bar
