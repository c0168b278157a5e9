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


class Table:
    """Rows as they are added: one for each model, method and metric, then those of examples.

    Attributes:
        several: whether models are named in a column.
    """

    def __init__(self, examples: Sequence[Example], per_example: bool, several: bool) -> None:
        self.examples, self.per_example, self.several = examples, per_example, several
        self._means: list[dict[str, Any]] = []
        self._single: list[dict[str, Any]] = []

    def of_model(
        self,
        name: str,
        found: dict[str, list[Row]],
        methods: Iterable[Choice],
        metrics: Iterable[Choice],
    ) -> None:
        """Add what was measured of one model."""
        by_pair: dict[tuple[str, str], list[Row]] = {}
        for key in dict.fromkeys(example.key() for example in self.examples):
            for row in found.get(key, ()):
                by_pair.setdefault((row.method, row.metric), []).append(row)
        metrics = list(metrics)
        for method in methods:
            for metric in metrics:
                rows = by_pair.get((method.label, metric.label), [])
                better = get_metric(metric.id).better
                self.add(name, method.label, metric.label, better, rows)

    def add(
        self, model: str, method: str, metric: str, better: str | None, rows: list[Row]
    ) -> None:
        """Add the mean of rows, one for each text, and the rows of examples that are wanted."""
        by_key = {row.example: row for row in rows}
        placed = [
            (number, by_key[example.key()])
            for number, example in enumerate(self.examples)
            if example.key() in by_key
        ]
        head = {"model": model, "method": method, "metric": metric, "better": better}
        self._means.append({**head, **_summary([row for _, row in placed])})
        for number, row in placed:
            failed = bool(row.error) and not row.undefined
            if self.per_example or failed:
                self._single.append({**head, **_single(number, self.examples[number], row)})

    def frame(self) -> pd.DataFrame:
        import pandas as pd

        columns = ["model", *COLUMNS] if self.several else COLUMNS
        frame = pd.DataFrame(self._means + self._single, columns=columns)
        frame["example"] = frame["example"].astype("Int64")
        return frame


def _summary(rows: list[Row]) -> dict[str, Any]:
    values = [row.value for row in rows if not row.error]
    reasons = {row.error for row in rows if row.undefined}
    mean, stderr = mean_of(values)
    return {
        "mean": mean,
        "stderr": stderr,
        "n": len(values),
        "errors": sum(bool(row.error) and not row.undefined for row in rows),
        "error": min(reasons) if reasons and not values else None,
    }


def mean_of(values: Sequence[float]) -> tuple[float, float]:
    """Mean and its standard error: the same whatever the order."""
    mean = math.fsum(values) / len(values) if values else float("nan")
    if len(values) < 2:
        return mean, float("nan")
    spread = math.fsum((value - mean) ** 2 for value in values)
    return mean, math.sqrt(spread / (len(values) - 1) / len(values))


def _single(number: int, example: Example, row: Row) -> dict[str, Any]:
    return {
        "mean": row.value,
        "n": 0 if row.error else 1,
        "errors": int(bool(row.error) and not row.undefined),
        "example": number,
        "text": example.shown,
        "value": row.value,
        "error": row.error or None,
    }
