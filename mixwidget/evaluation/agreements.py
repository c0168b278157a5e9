"""Agreement over a dataset: between all models by each method, or between a model's methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ..errors import InputError
from ..metrics import MEASURES, Choice, jaccard, kendall_tau, spearman
from .campaign import Found
from .summary import Table
from .worker import Row

OPTIONS = ("special", "percent", "how", "unit", "same_prediction")


def between(choice: Choice) -> bool:
    """Whether a metric compares all pairs: "agreement" where no method to compare with is named."""
    return choice.id == "agreement" and not {"other", "measure"} & set(choice.options)


@dataclass(frozen=True)
class Pairs:
    """Agreement of all pairs."""

    choice: Choice

    @property
    def ask(self) -> Choice:
        """What workers are asked for: the scores that are compared."""
        options = {k: v for k, v in self.choice.options.items() if k != "percent"}
        return Choice(f"scores of {self.choice.label}", "scores", options)

    def check(self, methods: tuple[Choice, ...], models: int, several: bool) -> None:
        """Refuse what cannot be compared, before anything is computed."""
        given = self.choice.options
        for name in given:
            if name not in OPTIONS:
                raise InputError(
                    f"agreement has no option {name!r}. Its options: {', '.join(OPTIONS)}; or "
                    "other, measure to compare with one method."
                )
        if given.get("unit", "tokens") not in ("tokens", "words"):
            raise InputError(f'unit is {given["unit"]!r}; it can be "tokens" or "words".')
        if several and models < 2:
            raise InputError("Agreement between models needs at least two of them.")
        if not several and len(methods) < 2:
            raise InputError("Agreement needs at least two methods, or a list of models.")
        if not several and given.get("same_prediction"):
            raise InputError("same_prediction is about several models; there is one.")

    def into(self, table: Table, found: Mapping[str, Found], methods: tuple[Choice, ...]) -> None:
        """Add a row for each pair and measure."""
        if table.several:
            for method in methods:
                for one, other in combinations(found, 2):
                    first, second = self._rows(found[one], method), self._rows(found[other], method)
                    self._compare(table, f"{one} ~ {other}", method.label, first, second)
            return
        ((name, rows),) = found.items()
        for own, its in combinations(methods, 2):
            first, second = self._rows(rows, own), self._rows(rows, its)
            self._compare(table, name, f"{own.label} ~ {its.label}", first, second)

    def _rows(self, found: Found, method: Choice) -> dict[str, Row]:
        label = self.ask.label
        return {
            key: row
            for key, rows in found.items()
            for row in rows
            if row.method == method.label and row.metric == label
        }

    def _compare(
        self,
        table: Table,
        model: str,
        method: str,
        first: dict[str, Row],
        second: dict[str, Row],
    ) -> None:
        rows = [
            row
            for key in dict.fromkeys(example.key() for example in table.examples)
            if key in first and key in second
            for row in self._values(key, method, first[key], second[key])
        ]
        for measure in MEASURES:
            label = self._label(measure)
            table.add(model, method, label, None, [row for row in rows if row.metric == label])

    def _label(self, measure: str) -> str:
        label = self.choice.label
        rest = label.removeprefix("agreement")
        return f"{label}_{measure}" if rest == label else f"agreement_{measure}{rest}"

    def _values(self, key: str, method: str, one: Row, other: Row) -> Iterator[Row]:
        """The measures on one example."""
        failed = next((row for row in (one, other) if row.error), None)
        why, undefined, values = "", False, dict.fromkeys(MEASURES, float("nan"))
        if failed is not None:
            why, undefined = failed.error, failed.undefined
        else:
            assert one.data is not None
            assert other.data is not None
            if one.data["of"] != other.data["of"]:
                why = "InputError: the models read this text as different tokens"
                why += "" if self.choice.options.get("unit") else '; unit="words" may compare them'
            elif one.data["predicted"] != other.data["predicted"]:
                why, undefined = "the models predict different things", True
            else:
                values = _measures(one.data, other.data, self.choice.options.get("percent", 25))
        for measure, value in values.items():
            unknown = not why and value != value
            reason = "undefined for this text" if unknown else why
            yield Row(key, method, self._label(measure), value, reason, undefined or unknown)


def _measures(one: dict[str, Any], other: dict[str, Any], percent: int) -> dict[str, float]:
    a, b = np.asarray(one["scores"]), np.asarray(other["scores"])
    known = {"spearman": spearman(a, b), "kendall": kendall_tau(a, b)}
    return {**known, "jaccard": jaccard(a, b, percent)}
