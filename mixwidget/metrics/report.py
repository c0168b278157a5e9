"""Should I believe this map? The faithfulness of some methods on one text, as it is computed.

`faithfulness` is a generator of plain dicts (JSON as they are), the data behind the widget's
faithfulness view. docs/architecture.md has the table of its parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..engine import explain_case
from ..errors import CancelledError, MixwidgetError
from ..explanation import Explanation
from ..methods import get_method
from ..models import By, Case
from .comparison import agreement_matrix
from .evidence import Evidence, evidence
from .judging import judge
from .orders import Orders, ReportPart
from .table import FAITHFULNESS, get_metric

SEEDS = 20  # random orders that make the floor
# Random orders that go through the model together, and are told together.
_TOGETHER = 5


def faithfulness(
    case: Case,
    methods: Sequence[str],
    *,
    target: Any = None,
    focus: Any = None,
    params: Mapping[str, Mapping[str, Any]] | None = None,
    explanations: Mapping[str, Explanation] | None = None,
    by: By = "delete",
    points: int | None = None,
    seeds: int = SEEDS,
    cancelled: Callable[[], bool] | None = None,
    budget: float | None = None,
) -> Iterator[ReportPart]:
    """Curves, metrics, a random floor, agreement and a verdict, each as soon as it is there.

    Args:
        methods: ids; the first is the one in front and is measured first.
        params, explanations: by method; explanations of those that are computed.
        by: how all but log-odds remove a token; log-odds too, if it is a way of replacing.
        points, seeds: points of each curve, at most (None: as many as its text needs); random
            orders that make the floor.
        cancelled: asked between passes; when it says True the work ends with CancelledError.
        budget: seconds, as `Cost` counts them: what would take longer is not begun, and a part
            says how long it would. The count is of tokens and parameters, never of time gone by:
            the same text gets the same verdict on any machine.
    """
    run = _Run(methods, by, points, seeds, _checker(cancelled))
    made = explanations or {}
    for method in methods:
        run.check()
        try:
            options = dict((params or {}).get(method, {}))
            one = made.get(method) or explain_case(
                case, method, target=target, focus=focus, cancelled=cancelled, **options
            )
            if run.orders is None:
                run.begin(evidence(one, case))
                yield run.start()
            if wait := run.too_long(budget):
                yield wait
                return
            yield run.curve(method, one)
        except CancelledError:
            raise
        except MixwidgetError as error:
            yield {"part": "curve", "method": method, "error": str(error)}
            continue
        if not run.spares(budget):
            yield from run.floor()
    yield from run.conclusion(budget)


class _Run:
    """One measurement: what has been told so far, and what its end is made of."""

    def __init__(
        self,
        methods: Sequence[str],
        by: By,
        points: int | None,
        seeds: int,
        check: Callable[[], None],
    ) -> None:
        self.methods, self.by, self.points, self.seeds = methods, by, points, seeds
        self.check = check
        self.orders: Orders | None = None
        self.explained: dict[str, Explanation] = {}
        self.curves: dict[str, ReportPart] = {}
        self.random: ReportPart | None = None

    def begin(self, shared: Evidence) -> None:
        self.orders = Orders(shared, self.by, self.points, self.check)
        self.cost = self.orders.cost
        self.each = self.orders.size()

    def start(self) -> ReportPart:
        return _start(self._known(), self.methods, self.seeds)

    def _known(self) -> Orders:
        assert self.orders is not None
        return self.orders

    def spares(self, budget: float | None) -> bool:
        """Whether all of it is more than the budget: then no order more is asked than settles
        the verdict."""
        rounds = self.seeds + len(self.methods)
        return budget is not None and self.cost.seconds(rounds * self.each) > budget

    def too_long(self, budget: float | None) -> ReportPart | None:
        """Said where not even the methods' own orders fit."""
        if budget is None or self.cost.seconds(len(self.methods) * self.each) <= budget:
            return None
        return self.rest(self.seeds + len(self.methods))

    def rest(self, orders: int) -> ReportPart:
        return {"part": "budget", "seconds": self.cost.told(orders * self.each)}

    def curve(self, method: str, one: Explanation) -> ReportPart:
        part = self._known().curve(method, one.scores)
        self.curves[method], self.explained[method] = part, one
        return part

    def floor(self) -> Iterator[ReportPart]:
        """The band of eight in ten random orders, surer with every few seeds; made once."""
        if self.random is not None:
            return
        curves: list[list[float]] = []
        values: list[ReportPart] = []
        for first in range(0, self.seeds, _TOGETHER):
            some = range(first, min(first + _TOGETHER, self.seeds))
            for curve, found in self._known().random(some):
                curves.append(curve)
                values.append(found)
            band = np.array(curves)
            self.random = {
                "part": "random",
                "seeds": len(curves),
                "mean": band.mean(0).tolist(),
                "low": np.quantile(band, 0.1, axis=0).tolist(),
                "high": np.quantile(band, 0.9, axis=0).tolist(),
                "metrics": {id: _spread([one[id] for one in values]) for id in FAITHFULNESS},
            }
            yield self.random

    def conclusion(self, budget: float | None) -> Iterator[ReportPart]:
        if self.orders is None:
            return
        shared, curves = self.orders.shared, list(self.curves.values())
        if self.random is None and curves:
            left = self.cost.count(budget or 0.0) - len(curves) * self.each
            found = self.orders.until_settled(curves, self.seeds, left)
            if found is None:
                yield self.rest(self.seeds)
                return
            yield _verdict(shared, curves, found, self.by)
            yield self.rest(self.seeds)
            return
        if len(self.explained) > 1:
            yield _agreement(list(self.explained.values()))
        yield _verdict(shared, curves, self.random, self.by)


def _checker(cancelled: Callable[[], bool] | None) -> Callable[[], None]:
    def check() -> None:
        if cancelled is not None and cancelled():
            raise CancelledError("cancelled")

    return check


def faithfulness_report(case: Case, methods: Sequence[str], **options: Any) -> ReportPart:
    """All parts of `faithfulness` in one dict: start, curves, random, agreement, verdict."""
    report: ReportPart = {"curves": {}}
    for part in faithfulness(case, methods, **options):
        if part["part"] == "curve":
            report["curves"][part["method"]] = part
        else:
            report[part["part"]] = part
    return report


def _start(orders: Orders, methods: Sequence[str], seeds: int) -> ReportPart:
    shared, counts = orders.shared, orders.counts
    return {
        "part": "start",
        "methods": list(methods),
        "target": shared.target.label,
        "probability": float(shared.shown(np.array(shared.probability))),
        "per_token": shared.logs,
        "by": orders.by,
        "removable": list(shared.removable),
        "counts": counts,
        "shares": [count / len(shared.removable) for count in counts],
        "seeds": seeds,
        "metrics": [
            {"id": id, "title": get_metric(id).title, "better": get_metric(id).better}
            for id in FAITHFULNESS
        ],
    }


def _spread(values: list[float | None]) -> ReportPart:
    known = [value for value in values if value is not None]
    if not known:
        return {"mean": None, "low": None, "high": None, "values": []}
    low, high = np.quantile(known, (0.1, 0.9)).tolist()
    return {"mean": math.fsum(known) / len(known), "low": low, "high": high, "values": known}


def _agreement(explanations: list[Explanation]) -> ReportPart:
    """Between all methods, on ordinary tokens: nearly all agree on the special ones."""
    part: ReportPart = {"part": "agreement", "methods": [e.method for e in explanations]}
    for measure in ("spearman", "jaccard"):
        matrix = agreement_matrix(explanations, measure, special=False)
        part[measure] = [
            [None if math.isnan(value) else value for value in row] for row in matrix.tolist()
        ]
    return part


def _verdict(
    shared: Evidence, curves: list[ReportPart], floor: ReportPart | None, by: By = "delete"
) -> ReportPart:
    random = [] if floor is None else floor["metrics"]["comprehensiveness"]["values"]
    moves = max((_moves(part["probabilities"]) for part in curves), default=0.0)
    moves = max([moves, *map(abs, [] if shared.logs else random)])
    orders = Orders(shared, by)
    judged = {}
    for part in curves:
        known = {**part, **orders.beginning(part["order"])}
        judged[part["method"]] = judge(
            shared, get_method(part["method"]).title, known, floor, moves
        )
    lines = {method: f"{one['headline']} {one['text']}" for method, one in judged.items()}
    front = next(iter(lines.values()), "")
    return {"part": "verdict", "text": front, "methods": lines, "judged": judged}


def _moves(curve: Sequence[float]) -> float:
    """The furthest that a probability goes from where it began."""
    return max(abs(probability - curve[0]) for probability in curve)
