"""The frame of a benchmark: a row for each method and metric, and for single examples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..metrics import Choice, get_metric
from .examples import Example
from .worker import Row

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ["method", "metric", "mean", "stderr", "n", "errors", "better", "example", "text"]
COLUMNS += ["value", "error"]


def summary_frame(
    examples: Sequence[Example],
    done: dict[str, list[Row]],
    methods: Iterable[Choice],
    metrics: Iterable[Choice],
    per_example: bool,
) -> pd.DataFrame:
    import pandas as pd

    by_pair: dict[tuple[str, str], list[tuple[int, Row]]] = {}
    for number, example in enumerate(examples):
        for row in done.get(example.key(), ()):
            by_pair.setdefault((row.method, row.metric), []).append((number, row))
    table: list[dict[str, Any]] = []
    single: list[dict[str, Any]] = []
    for method in methods:
        for metric in metrics:
            rows = by_pair.get((method.label, metric.label), [])
            table.append(_summary(method, metric, [row for _, row in rows]))
            for number, row in rows:
                failed = bool(row.error) and not row.undefined
                if per_example or failed:
                    single.append(_single(number, examples[number], row, metric))
    frame = pd.DataFrame(table + single, columns=COLUMNS)
    frame["example"] = frame["example"].astype("Int64")
    return frame


def _summary(method: Choice, metric: Choice, rows: list[Row]) -> dict[str, Any]:
    values = [row.value for row in rows if not row.error]
    reasons = {row.error for row in rows if row.undefined}
    # fsum: the same whatever the order
    mean = math.fsum(values) / len(values) if values else float("nan")
    spread = math.fsum((value - mean) ** 2 for value in values)
    several = len(values) > 1
    return {
        "method": method.label,
        "metric": metric.label,
        "mean": mean,
        "stderr": math.sqrt(spread / (len(values) - 1) / len(values)) if several else float("nan"),
        "n": len(values),
        "errors": sum(bool(row.error) and not row.undefined for row in rows),
        "better": get_metric(metric.id).better,
        "error": min(reasons) if reasons and not values else None,
    }


def _single(number: int, example: Example, row: Row, metric: Choice) -> dict[str, Any]:
    return {
        "method": row.method,
        "metric": row.metric,
        "mean": row.value,
        "n": 0 if row.error else 1,
        "errors": int(bool(row.error) and not row.undefined),
        "better": get_metric(metric.id).better,
        "example": number,
        "text": example.text,
        "value": row.value,
        "error": row.error or None,
    }
