"""How long metrics take: for one text against a forward pass, and for a dataset.

python -m benchmarks.metrics                    a sample of SST-2, if it is found
python -m benchmarks.metrics --texts 872        all of it
python -m benchmarks.metrics --data FILE

SST-2 is looked for in the folder named by MIXWIDGET_SHARED, then in ../shared.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from mixwidget import benchmark, demo, explain
from mixwidget.engine import prepare
from mixwidget.evaluation import cheap_methods
from mixwidget.evaluation.examples import Example, read_examples
from mixwidget.metrics import evidence, explain_case, faithfulness
from mixwidget.metrics.table import FAITHFULNESS
from mixwidget.models.case import Case

ROOT = Path(__file__).parent.parent
TEXT = (
    "the plot is thin and the jokes are old , but the acting is never boring and the last hour "
    "of this long film is , against all odds , good ."
)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="a .tsv, .csv or .jsonl file")
    parser.add_argument("--texts", type=int, default=48, help="how many of its texts")
    given = parser.parse_args(arguments)
    one_text()
    data = Path(given.data) if given.data else _sst2()
    if data is None:
        print("no dataset: SST-2 was not found, and --data names none")
        return
    dataset(read_examples(data)[: given.texts], data.name)


def _sst2() -> Path | None:
    named = os.environ.get("MIXWIDGET_SHARED")
    folders = [Path(named)] if named else []
    found = [f / "data" / "sst2_dev.tsv" for f in [*folders, ROOT.parent / "shared"]]
    return next((path for path in found if path.is_file()), None)


def one_text(repeats: int = 15) -> None:
    """The four metrics and the curve of one method, in forward passes of the text."""
    model, _ = demo.load()
    case = prepare(model, TEXT)
    made = explain_case(case, "alti")
    inputs = case.encoding.inputs

    def forward() -> None:
        with torch.no_grad():
            model(**inputs)

    def metrics() -> Case:
        """As the widget does; a new case knows no answers yet."""
        fresh = Case(case.source, case.encoding)
        list(faithfulness(fresh, ["alti"], explanations={"alti": made}, seeds=0))
        return fresh

    asked = evidence(made, metrics())
    ratios = []
    for _ in range(repeats):
        plain = statistics.median(_seconds(forward) for _ in range(5))
        ratios.append(_seconds(metrics) / plain)
    method = _seconds(lambda: explain(model, TEXT, "alti").scores) / plain
    tokens = len(made.tokens)
    print(
        f"one text of {tokens} tokens, demo model, four metrics and the curve of one method: "
        f"{asked.passes} edited texts with {asked.tokens / tokens:.0f} times its tokens, in the "
        f"time of {statistics.median(ratios):.1f} forward passes (the method itself: {method:.1f})"
    )


def dataset(examples: list[Example], name: str) -> None:
    """All cheap methods and the four metrics over a dataset, with one and two processes."""
    methods = cheap_methods()
    model, _ = demo.load()
    times, work = {}, {}
    for workers in (1, 2):
        before = _children()
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            warm = [Example(f"a film , {i}") for i in range(2 * workers)]
            _run(model, warm, methods, pool, 1)
            times[workers] = _seconds(lambda pool=pool: _run(model, examples, methods, pool, 4))
        # Of the workers, now that they have ended; opening Python and torch is part of it.
        work[workers] = _children() - before
        whole = times[workers] / len(examples) * 872 / 60
        print(
            f"{len(methods)} methods x {len(FAITHFULNESS)} metrics x {len(examples)} texts of "
            f"{name}, {workers} process{'es' * (workers > 1)}: {times[workers]:.1f} s "
            f"({whole:.1f} minutes for 872), {work[workers]:.1f} s of CPU with the start"
        )
    print(f"two processes are {times[1] / times[2]:.2f} times as fast as one")


def _run(model: Any, examples: list[Example], methods: list[str], pool: Any, chunk: int) -> None:
    frame = benchmark(model, examples, methods, executor=pool, chunk_size=chunk, progress=False)
    assert not frame.errors.any(), frame[frame.errors > 0]


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
