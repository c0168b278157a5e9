"""`study`: a dataset asked about layers, curves and words in one call."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np

from ..errors import InputError
from ..methods import get_method
from ..metrics import Choice, choices, get_metric
from .campaign import Campaign, Found, entrants
from .examples import Example, read_examples
from .studied import Key, Study, frame_of
from .worker import ModelRef, Row, Unit

ASKED = ("layers", "curves", "words", "hta")


def study(
    model: Any,
    dataset: Any,
    methods: Any = ("raw_attention", "attn_norm", "attn_norm_res", "attn_norm_res_ln", "globenc"),
    metrics: Any = "saliency_rho",
    ask: str | Sequence[str] = "layers",
    executor: Executor | None = None,
    *,
    names: Sequence[str] | None = None,
    tokenizer: Any = None,
    target: str = "predicted",
    truncate: bool = False,
    columns: Mapping[str, str] | None = None,
    limit: int | None = None,
    samples: int | None = None,
    by: str = "delete",
    seed: int = 0,
    cache: str | os.PathLike[str] | None = None,
    chunk_size: int = 8,
    threads: int | None = 1,
    progress: bool = True,
) -> Study:
    """Ask a dataset which layer, whether rolling out helps, what each part of a block adds, how
    the prediction falls, and which words count.

    Args:
        metrics: measured at every layer, of the layer alone and of the rollout up to it; those
            that take a `layer`: "saliency_rho", "blank_out_rho", "cue_dot", "cue_ap",
            "probes_needed", and the faithfulness metrics.
        ask: one or several of "layers" (the metrics by layer), "curves" (removal curves),
            "words" (word scores), "hta" (Pearson of each layer's map with `hta`'s, rows
            normalised; "hta_raw": as they are).
        samples: of `hta`; None is exact, and slow.
        by: how curves remove a token.

    The others are those of `benchmark`: several models, executors, caches and failing texts too.

    >>> from mixwidget import demo, study
    >>> found = study(demo.load()[0], ["not bad", "a thin plot"], ["alti"], progress=False)
    >>> found.layers["how"].value_counts().to_dict()
    {'layer': 4, 'rollout': 4}
    """
    wanted = [ask] if isinstance(ask, str) else list(ask)
    if not wanted or not set(wanted) <= set(ASKED):
        raise InputError(f"ask is {ask!r}; it can be some of {', '.join(ASKED)}.")
    if target not in ("predicted", "label"):
        raise InputError(f'target is {target!r}; it can be "predicted" or "label".')
    chosen = tuple(choices(methods, "method"))
    for choice in chosen:
        get_method(choice.id).options(choice.options)
    measured = _layered(metrics) if "layers" in wanted else []
    options: dict[str, dict[str, Any]] = {
        "layers": {"metrics": [(one.label, one.id, one.options) for one in measured]},
        "curves": {"by": by},
        "hta": {"samples": samples},
    }
    asks = tuple(Choice(one, one, options.get(one, {})) for one in wanted)
    models = entrants(model, names, tokenizer, executor)
    examples = read_examples(dataset, columns, models[0].labels)[:limit]
    unit = Unit(ModelRef(""), (), chosen, (), asks, target, truncate, seed, threads)
    work = Campaign(models, examples, unit, executor, cache, chunk_size, progress)
    found = dict(zip((one.name for one in models), work.rows(), strict=True))
    better = {one.label: get_metric(one.id).better for one in measured}
    return _collected(found, examples, {**better, "hta": "higher", "hta_raw": "higher"})


def _layered(metrics: Any) -> list[Choice]:
    found = choices(metrics, "metric")
    for one in found:
        entry = get_metric(one.id)
        known = inspect.signature(entry.function).parameters
        if not {"how", "layer"} <= set(known):
            raise InputError(f"{one.id} does not look at layers, so it has no place in a study.")
        if {"how", "layer"} & set(one.options):
            raise InputError(
                "A study takes every layer, alone and rolled out: leave out how, layer."
            )
        entry.check(one.options)
    return found


def _collected(
    found: Mapping[str, Found], examples: list[Example], better: dict[str, str]
) -> Study:
    values: dict[Key, dict[int, Any]] = {}
    drawn: dict[tuple[str, str], list[Any]] = {}
    spoken: dict[tuple[str, str], list[tuple[int, dict[str, Any]]]] = {}
    failures = []
    for model, rows in found.items():
        for number, example in enumerate(examples):
            for row in rows.get(example.key(), ()):
                if row.data is None:
                    failures.append(_failure(model, number, example, row))
                elif row.metric == "curves":
                    drawn.setdefault((model, row.method), []).append(row.data)
                elif row.metric == "words":
                    spoken.setdefault((model, row.method), []).append((number, row.data))
                elif row.metric == "hta":
                    for name, by_layer in row.data.items():
                        key = (model, row.method, name, "layer")
                        values.setdefault(key, {})[number] = np.array(by_layer)
                else:
                    for metric, ways in row.data.items():
                        for how, by_layer in ways.items():
                            key = (model, row.method, metric, how)
                            values.setdefault(key, {})[number] = np.array(by_layer)
    failed = frame_of(failures, ["model", "method", "asked", "example", "text", "error"])
    return Study(values, drawn, spoken, failed, [one.shown for one in examples], better)


def _failure(model: str, number: int, example: Example, row: Row) -> dict[str, Any]:
    head = {"model": model, "method": row.method, "asked": row.metric, "example": number}
    return {**head, "text": example.shown, "error": row.error}
