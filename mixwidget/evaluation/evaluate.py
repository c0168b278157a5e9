"""`benchmark`: methods against metrics over a dataset, on one machine or many."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, Literal

from ..errors import InputError
from ..methods import all_methods, get_method
from ..metrics import FAITHFULNESS, choices, get_metric
from ..models import Size
from .agreements import Pairs, between
from .campaign import Campaign, entrants
from .examples import answered_by_all, read_examples
from .summary import Table
from .worker import ModelRef, Unit

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
    names: Sequence[str] | None = None,
    tokenizer: Any = None,
    per_example: bool = False,
    target: str = "predicted",
    answer: Literal[True] | None = None,
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
        model: what `explain` takes, or a list of such. A name or folder is opened by each
            worker; a model in memory is sent to each worker once.
        dataset: a list of texts or chats, of (text, label), of (text, pair), of dicts, a .tsv,
            .csv or .jsonl path, a pandas frame or a `datasets.Dataset`. Columns are found by
            their usual names; `columns={"text": "comment"}` names others. A chat may be the
            `text` of a row.
        methods: ids, ("id", {options}) or {label: either}; None means all cheap ones.
        metrics: likewise; see `mixwidget.metrics.METRICS`. "agreement" compares all pairs of
            models by each method, or of one model all pairs of methods: Spearman, Kendall and
            Jaccard of the top 25%. Its options: `special`, `percent`, `how` as in
            `metrics.agreement`; `unit="words"` adds the tokens of a word first, so that models
            of unlike tokenizers can be compared; `same_prediction=True` counts only texts on
            which both models predict the same; `other` names one method to compare with.
        executor: any `concurrent.futures.Executor` (a process pool, Dask's
            `client.get_executor()`); None runs here.
        names: what to call several models; by default they are called by their folders.
        tokenizer: one for all models, or a list with one for each.
        per_example: a row for each example too.
        target: "predicted", or "label" to explain the example's label. An example's own
            `target` goes before both.
        answer: of language models, which explain the answer of each row that has one (a column
            `answer`, or a chat that ends with the assistant): True has them write an answer to
            all others.
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
        the reason in `error`. Of a list of models a column `model` comes first; agreement names
        the pair there: "one ~ other".

    >>> from mixwidget import benchmark, demo
    >>> texts = [("never boring", "positive"), ("a dull plot", "negative")]
    >>> names = ["alti", "random"], ["comprehensiveness"]
    >>> table = benchmark(demo.load()[0], texts, *names, progress=False)
    >>> table["n"].tolist()
    [2, 2]
    """
    if target not in ("predicted", "label"):
        raise InputError(f'target is {target!r}; it can be "predicted" or "label".')
    chosen = tuple(choices(cheap_methods() if methods is None else methods, "method"))
    for choice in chosen:
        get_method(choice.id).options(choice.options)
    asked = choices(metrics, "metric")
    pairs = tuple(Pairs(choice) for choice in asked if between(choice))
    measured = tuple(choice for choice in asked if not between(choice))
    for choice in measured:
        get_metric(choice.id).check(choice.options)
    several = isinstance(model, list | tuple)
    models = entrants(model, names, tokenizer, executor)
    for one in pairs:
        one.check(chosen, len(models), several)
    first = models[0]
    examples = read_examples(dataset, columns, first.labels, first.writes)[:limit]
    if answer is not None:
        examples = answered_by_all(examples, answer)
    unit = Unit(
        ModelRef(""),
        (),
        chosen,
        measured,
        tuple(one.ask for one in pairs),
        target,
        truncate,
        seed,
        threads,
    )
    work = Campaign(models, examples, unit, executor, cache, chunk_size, progress)
    found = dict(zip((one.name for one in models), work.rows(), strict=True))
    table = Table(examples, per_example, several)
    for name, rows in found.items():
        table.of_model(name, rows, chosen, measured)
    for one in pairs:
        one.into(table, found, chosen)
    return table.frame()
