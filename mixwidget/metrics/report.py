"""Should I believe this map? The faithfulness of some methods on one text, as it is computed.

`faithfulness` is a generator of plain dicts (JSON as they are), the data behind the widget's
faithfulness view. docs/architecture.md has the table of its parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine import explain_case
from ..errors import CancelledError, MixwidgetError
from ..explanation import Explanation
from ..methods import get_method
from ..models import By, Case, neutral_token
from .comparison import agreement_matrix
from .evidence import Evidence, Removal, evidence
from .faithfulness import REMOVAL_METRICS, curve_counts
from .judging import judge
from .table import FAITHFULNESS, get_metric

ReportPart = dict[str, Any]

SEEDS = 20  # random orders that make the floor
# Of more tokens half of the points tell as much, where time is short.
_LONG = 24


def faithfulness(
    case: Case,
    methods: Sequence[str],
    *,
    target: Any = None,
    focus: Any = None,
    params: Mapping[str, Mapping[str, Any]] | None = None,
    explanations: Mapping[str, Explanation] | None = None,
    by: By = "delete",
    points: int = 21,
    seeds: int = SEEDS,
    cancelled: Callable[[], bool] | None = None,
    budget: float | None = None,
) -> Iterator[ReportPart]:
    """Curves, metrics, a random floor, agreement and a verdict, each as soon as it is there.

    Args:
        methods: ids; the first is the one in front and is measured first.
        params, explanations: by method; explanations of those that are computed.
        by: how all but log-odds remove a token; log-odds too, if it is a way of replacing.
        points, seeds: points of each curve, at most; random orders that make the floor.
        cancelled: asked between passes; when it says True the work ends with CancelledError.
        budget: seconds; what would take longer is not begun, and a part says how long it would.
    """
    check = _checker(cancelled)
    found: dict[str, Explanation] = {}
    curves: dict[str, ReportPart] = {}
    shared: Evidence | None = None
    floor: ReportPart | None = None
    for method in methods:
        check()
        try:
            options = dict((params or {}).get(method, {}))
            made = (explanations or {}).get(method) or explain_case(
                case, method, target=target, focus=focus, cancelled=cancelled, **options
            )
            if shared is None:
                shared = evidence(made, case)
                # Not by the clock: the same text gets the same verdict on any machine.
                if budget is not None and len(shared.removable) > _LONG:
                    points = points // 2 + 1
                yield _start(shared, methods, by, points, seeds)
            if not curves and (wait := _too_long(shared, 1, seeds + 1, points, budget)):
                yield wait
                return
            curves[method] = _curve(shared, method, made.scores, by, points, check)
            found[method] = made
            yield curves[method]
        except CancelledError:
            raise
        except MixwidgetError as error:
            yield {"part": "curve", "method": method, "error": str(error)}
            continue
        if floor is None:
            rest = seeds + len(methods) - 1
            if wait := _too_long(shared, rest, rest, points, budget):
                yield wait
                return
            for floor in _floor(shared, by, points, seeds, check):
                yield floor
    if shared is not None:
        yield from _conclusion(shared, found, curves, floor)


def _conclusion(
    shared: Evidence,
    found: Mapping[str, Explanation],
    curves: Mapping[str, ReportPart],
    floor: ReportPart | None,
) -> Iterator[ReportPart]:
    if len(found) > 1:
        yield _agreement(list(found.values()))
    yield _verdict(shared, list(curves.values()), floor)


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


def _start(shared: Evidence, methods: Sequence[str], by: By, points: int, seeds: int) -> ReportPart:
    counts = curve_counts(len(shared.removable), points)
    return {
        "part": "start",
        "methods": list(methods),
        "target": shared.target.label,
        "probability": shared.probability,
        "by": by,
        "removable": list(shared.removable),
        "counts": counts,
        "shares": [count / len(shared.removable) for count in counts],
        "seeds": seeds,
        "metrics": [
            {"id": id, "title": get_metric(id).title, "better": get_metric(id).better}
            for id in FAITHFULNESS
        ],
    }


def _too_long(
    shared: Evidence, orders: int, all_: int, points: int, budget: float | None
) -> ReportPart | None:
    """Said in the place of so many orders that would not fit into a budget; of `all_` how long."""
    # The first pass of a text says little about the time of many: it is given twice the time.
    slack = 2 if orders == 1 else 1
    if budget is None or _seconds(shared, orders, points) <= slack * budget:
        return None
    return {"part": "budget", "seconds": round(_seconds(shared, all_, points), 1)}


def _seconds(shared: Evidence, orders: int, points: int) -> float:
    """About how long so many orders would take, from the time that passes took so far."""
    each = len(curve_counts(len(shared.removable), points)) + 4  # points, and what metrics ask more
    return orders * each * shared.seconds / max(1, shared.passes)


def _questions(shared: Evidence, order: list[int], by: By, points: int) -> dict[str, list[Removal]]:
    """What the curve and each metric ask of the model; nothing for a metric that replaces
    tokens by one that the tokenizer does not have."""
    asked: dict[str, list[Removal]] = {
        "curve": [(frozenset(order[:count]), by) for count in curve_counts(len(order), points)]
    }
    for id in FAITHFULNESS:
        metric = REMOVAL_METRICS[id]
        way = metric.by if by == "delete" else by
        if way == "delete" or neutral_token(shared.case.source, way)[0] is not None:
            asked[id] = metric.plan(order, way, {})
    return asked


def _answers(shared: Evidence, asked: dict[str, list[Removal]]) -> tuple[list[float], ReportPart]:
    """The curve, and the metrics' values; None for a metric that has none."""
    whole = shared.probability
    curve = shared.probabilities(asked["curve"]).tolist()
    values: ReportPart = dict.fromkeys(FAITHFULNESS)
    for id in asked.keys() & values.keys():
        value = REMOVAL_METRICS[id].value(whole, shared.probabilities(asked[id]), {})
        values[id] = value if math.isfinite(value) else None
    return curve, values


def _curve(
    shared: Evidence,
    method: str,
    scores: NDArray[Any],
    by: By,
    points: int,
    check: Callable[[], None],
) -> ReportPart:
    order = shared.ranking(scores)
    asked = _questions(shared, order, by, points)
    shared.probabilities([one for questions in asked.values() for one in questions], check)
    curve, values = _answers(shared, asked)
    return {
        "part": "curve",
        "method": method,
        "order": order,
        "probabilities": curve,
        "metrics": values,
    }


def _floor(
    shared: Evidence, by: By, points: int, seeds: int, check: Callable[[], None]
) -> Iterator[ReportPart]:
    """The band of eight in ten random orders, surer with every few seeds."""
    curves, values = [], []
    for seed in range(seeds):
        scores = np.random.default_rng(seed).random(len(shared.case.encoding.tokens))
        part = _curve(shared, "random", scores, by, points, check)
        curves.append(part["probabilities"])
        values.append(part["metrics"])
        if seed + 1 == seeds or (seed + 1) % 5 == 0:
            band = np.array(curves)
            yield {
                "part": "random",
                "seeds": seed + 1,
                "mean": band.mean(0).tolist(),
                "low": np.quantile(band, 0.1, axis=0).tolist(),
                "high": np.quantile(band, 0.9, axis=0).tolist(),
                "metrics": {id: _spread([one[id] for one in values]) for id in FAITHFULNESS},
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


def _verdict(shared: Evidence, curves: list[ReportPart], floor: ReportPart | None) -> ReportPart:
    random = [] if floor is None else floor["metrics"]["comprehensiveness"]["values"]
    moves = max((_moves(part["probabilities"]) for part in curves), default=0.0)
    moves = max([moves, *map(abs, random)])
    counts = curve_counts(len(shared.removable), len(curves[0]["probabilities"])) if curves else []
    judged = {
        part["method"]: judge(
            shared, get_method(part["method"]).title, {**part, "counts": counts}, floor, moves
        )
        for part in curves
    }
    lines = {method: f"{one['headline']} {one['text']}" for method, one in judged.items()}
    front = next(iter(lines.values()), "")
    return {"part": "verdict", "text": front, "methods": lines, "judged": judged}


def _moves(curve: Sequence[float]) -> float:
    """The furthest that a probability goes from where it began."""
    return max(abs(probability - curve[0]) for probability in curve)
