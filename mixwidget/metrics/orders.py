"""Orders in which tokens are removed: what each asks of the model, and what its measures are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..models import By, neutral_token
from .cost import Cost
from .evidence import Evidence, Removal
from .faithfulness import BINS, REMOVAL_METRICS, curve_counts, tokens_in
from .judging import settled
from .table import FAITHFULNESS

ReportPart = dict[str, Any]

_POINTS = 21
# Of more tokens half of the points tell as much, and are those that AOPC asks for.
_LONG = 24
# Removing so many tokens is asked one by one: a word that turns the answer over is named.
_FIRST = (0, 1, 2, 3)


class Orders:
    """Of one text, by one way of removing.

    Attributes:
        counts: how many tokens are gone at each point of a curve.
        cost: what tokens of this text cost.
    """

    def __init__(
        self,
        shared: Evidence,
        by: By = "delete",
        points: int | None = None,
        check: Callable[[], None] | None = None,
    ) -> None:
        self.shared, self.by, self._check = shared, by, check
        self.cost = Cost(shared)
        count = len(shared.removable)
        if points is None:
            points = _POINTS if count <= _LONG else _POINTS // 2 + 1
        self.counts = curve_counts(count, points)
        ways = {id: REMOVAL_METRICS[id].by if by == "delete" else by for id in FAITHFULNESS}
        # Nothing is asked for a metric that replaces tokens by one that the tokenizer lacks.
        self._ways: dict[str, By] = {
            id: way
            for id, way in ways.items()
            if way == "delete" or neutral_token(shared.case.source, way)[0] is not None
        }
        self._early = sorted(
            {n for n in _FIRST if n <= count} | {tokens_in(b, count) for b in BINS} | {*self.counts}
        )

    def size(self) -> int:
        """Tokens of all texts that one order asks for: of any order the same."""
        asked = self._questions(list(self.shared.removable))
        whole = len(self.shared.case.encoding.tokens)
        return sum(
            whole - len(gone) * (by == "delete")
            for gone, by in {one for questions in asked.values() for one in questions}
        )

    def curve(self, method: str, scores: NDArray[Any]) -> ReportPart:
        """The part of the report that tells of a method's order."""
        order = self.shared.ranking(scores)
        asked = self._questions(order)
        self._ask([*(one for some in asked.values() for one in some), *self._first(order)])
        curve, values = self._answers(asked)
        part = {"part": "curve", "method": method, "order": order}
        return {**part, "probabilities": curve, "metrics": values}

    def beginning(self, order: list[int]) -> ReportPart:
        """Where an answer first turns over is looked for at more points than a curve has."""
        values = self.shared.shown(self.shared.probabilities(self._first(order)))
        return {"counts": self._early, "probabilities": values.tolist()}

    def random(self, seeds: Sequence[int]) -> Iterator[tuple[list[float], ReportPart]]:
        """Curve and measures of some random orders, which go through the model together."""
        asked = [self._questions(self._order(seed)) for seed in seeds]
        self._ask([one for each in asked for some in each.values() for one in some])
        for each in asked:
            yield self._answers(each)

    def until_settled(
        self, curves: Sequence[ReportPart], seeds: int, tokens: float
    ) -> ReportPart | None:
        """Measures of random orders, each for as long as it is open whether a method is clear of
        chance by it; None if that takes more tokens than there are."""
        values: dict[str, list[float]] = {id: [] for id in FAITHFULNESS}
        open_ = [id for id in self._ways if any(part["metrics"][id] is not None for part in curves)]
        for seed in range(seeds):
            asked = self._questions(self._order(seed), open_, curve=False)
            whole = len(self.shared.case.encoding.tokens)
            new = {one for some in asked.values() for one in some}
            tokens -= sum(whole - len(gone) * (by == "delete") for gone, by in new)
            if tokens < 0:
                return None
            self._ask(list(new))
            for id, value in self._answers(asked)[1].items():
                if value is not None:
                    values[id].append(value)
            open_ = [id for id in open_ if not settled(id, curves, values[id], seeds)]
            if not open_:
                break
        return {"early": True, "metrics": {id: {"values": found} for id, found in values.items()}}

    def _order(self, seed: int) -> list[int]:
        scores = np.random.default_rng(seed).random(len(self.shared.case.encoding.tokens))
        return self.shared.ranking(scores)

    def _first(self, order: list[int]) -> list[Removal]:
        return [(frozenset(order[:count]), self.by) for count in self._early]

    def _ask(self, removals: Sequence[Removal]) -> None:
        self.shared.probabilities(removals, self._check)

    def _questions(
        self, order: list[int], ids: Sequence[str] | None = None, curve: bool = True
    ) -> dict[str, list[Removal]]:
        """What the curve and each metric ask of the model."""
        asked: dict[str, list[Removal]] = {
            id: REMOVAL_METRICS[id].plan(order, self._ways[id], {})
            for id in (self._ways if ids is None else ids)
        }
        if curve:
            asked["curve"] = [(frozenset(order[:count]), self.by) for count in self.counts]
        return asked

    def _answers(self, asked: dict[str, list[Removal]]) -> tuple[list[float], ReportPart]:
        """The curve, and the metrics' values; None for a metric that has none."""
        whole = self.shared.probability
        shown = self.shared.shown(self.shared.probabilities(asked.get("curve", ())))
        options, curve = {"logs": self.shared.logs}, shown.tolist()
        values: ReportPart = dict.fromkeys(FAITHFULNESS)
        for id in asked.keys() & values.keys():
            after = self.shared.probabilities(asked[id])
            value = REMOVAL_METRICS[id].value(whole, after, options)
            values[id] = value if math.isfinite(value) else None
        return curve, values
