"""What the table scripts share: arguments, a sample of the data, workers, printing."""

from __future__ import annotations

import argparse
import contextlib
import math
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from scipy import stats

import mixwidget
from mixwidget.evaluation.examples import Example, read_examples
from mixwidget.models import open_source


@dataclass
class Setup:
    """What is measured, on what, and by how many."""

    model: str
    data: str
    limit: int
    longest: int | None
    seed: int
    workers: int
    cache: str | None

    def examples(self) -> list[Example]:
        """A random sample of the dataset, the same for the same seed."""
        found = read_examples(self.data)
        order = list(range(len(found)))
        random.Random(self.seed).shuffle(order)
        if self.longest is not None:
            tokenizer = open_source(self.model).tokenizer
            order = [i for i in order if len(tokenizer(found[i].text).input_ids) <= self.longest]
        return [found[i] for i in sorted(order[: self.limit])]

    def run(self, examples: Sequence[Example], methods: Any, metrics: Any, **options: Any) -> Any:
        """`benchmark` with this setup; a frame of summaries."""
        with self.executor() as executor:
            frame = mixwidget.benchmark(
                self.model, list(examples), methods, metrics, executor, **self.usual(), **options
            )
        failed = frame[frame.example.notna()]
        for error in failed.error.dropna().unique():
            print(f"  failed: {error}", file=sys.stderr)
        return frame[frame.example.isna()].reset_index(drop=True)

    def study(self, examples: Sequence[Example], methods: Any, metrics: Any, **options: Any) -> Any:
        """`study` with this setup."""
        with self.executor() as executor:
            options = {"executor": executor, **self.usual(), **options}
            return mixwidget.study(self.model, list(examples), methods, metrics, **options)

    def usual(self) -> dict[str, Any]:
        return {"seed": self.seed, "cache": self.cache, "progress": sys.stderr.isatty()}

    @contextlib.contextmanager
    def executor(self) -> Iterator[Executor | None]:
        if self.workers == 1:
            yield None
            return
        with ProcessPoolExecutor(self.workers, mp_context=get_context("spawn")) as pool:
            yield pool


def setup(description: str, limit: int = 120) -> tuple[Setup, argparse.Namespace]:
    """The command line's arguments."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("model", help="name or folder of a model")
    parser.add_argument("data", help="a .tsv, .csv or .jsonl file")
    parser.add_argument("--limit", type=int, default=limit, help="examples, sampled at random")
    parser.add_argument("--longest", type=int, help="leave out texts of more tokens")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--cache", help="a folder that keeps what is finished")
    parser.add_argument("--masks", help="for Mask-LRP: sentences to find heads in, or a .json")
    parser.add_argument("--paper", help="the column of the paper's table, if there are several")
    given = parser.parse_args()
    if given.workers == 1:
        torch.set_num_threads(1)  # small models are no faster with more
    chosen = Setup(
        given.model,
        given.data,
        given.limit,
        given.longest,
        given.seed,
        given.workers,
        given.cache,
    )
    return chosen, given


def column_of(chosen: Setup, asked: str | None, known: Mapping[str, Any]) -> str:
    """Which column of the paper's table: the one that is asked for, else that of data and build
    where the paper has it, else that of the data."""
    if asked is not None:
        return asked
    name = Path(chosen.data).name
    data = next((one for one in ("imdb", "blimp") if one in name), "sst2").replace("blimp", "sva")
    build = str(open_source(chosen.model).model.config.model_type)
    both = f"{data} {build}"
    return both if both in known else data


def heading(title: str, setup: Setup, count: int, seconds: float) -> None:
    print(f"\n### {title}\n")
    print(
        f"`{Path(setup.model).name}` on {count} texts of `{Path(setup.data).name}` "
        f"(seed {setup.seed}), {seconds:.0f} s. Measured: mean ± standard error.\n"
    )


def table(
    frame: pd.DataFrame,
    columns: Mapping[str, str],
    paper: Mapping[str, Sequence[float | None]],
    names: Mapping[str, str] | None = None,
) -> None:
    """Print a Markdown table: for each metric the paper's value and the measured one.

    Args:
        columns: {metric label: its heading}.
        paper: {method label: the paper's values, in the order of the columns}.
        names: {method label: what the paper calls it}.
    """
    told = [any(values[i] is not None for values in paper.values()) for i in range(len(columns))]
    heads = []
    for title, known in zip(columns.values(), told):
        heads += [f"{title}, paper", f"{title}, here"] if known else [title]
    print("| method | " + " | ".join(heads) + " |")
    print("|---|" + "---|" * len(heads))
    for method in dict.fromkeys(frame.method):
        cells = []
        for number, metric in enumerate(columns):
            row = frame[(frame.method == method) & (frame.metric == metric)].iloc[0]
            if told[number]:
                theirs = paper[method][number] if method in paper else None
                cells.append("" if theirs is None else f"{theirs:.3f}")
            cells.append(_measured(row))
        name = (names or {}).get(method, method)
        print(f"| {name} | " + " | ".join(cells) + " |")
    print()
    for number, (metric, title) in enumerate(columns.items()):
        compare_order(frame, metric, title, {m: v[number] for m, v in paper.items()})


def _measured(row: Any) -> str:
    if not row["n"]:
        return "not defined"
    error = row["stderr"]
    return f"{row['mean']:.3f}" + ("" if math.isnan(error) else f" ± {error:.3f}")


def compare_order(
    frame: pd.DataFrame, metric: str, title: str, paper: Mapping[str, float | None]
) -> None:
    """Say how far the order of the methods is the paper's, and which is best in both."""
    rows = frame[(frame.metric == metric) & (frame.n > 0)].set_index("method")
    both = [m for m, value in paper.items() if value is not None and m in rows.index]
    if len(both) < 3:
        return
    theirs, ours = [paper[m] for m in both], [rows.loc[m, "mean"] for m in both]
    rho = stats.spearmanr(theirs, ours).statistic
    sign = 1 if rows.loc[both[0], "better"] == "higher" else -1
    best = [max(zip(values, both), key=lambda one: sign * one[0])[1] for values in (theirs, ours)]
    print(
        f"{title}: rank correlation with the paper's order {rho:+.2f} over {len(both)} methods; "
        f"best in the paper {best[0]}, here {best[1]}."
    )


class Clock:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self.start = time.perf_counter()

    def __call__(self) -> float:
        return time.perf_counter() - self.start
