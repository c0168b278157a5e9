"""Faithfulness: does the prediction follow when the tokens a map points at are taken away?

Every metric here is a mean over removals. Tokens are ranked by score, largest first, ties by
position; special tokens are never removed. b percent of m removable tokens are ceil(b m / 100).
With p(S) the probability of the target in the text without the tokens S:

    comprehensiveness   mean over b of p(nothing) - p(top b%)
    sufficiency         mean over b of p(nothing) - p(all but the top b%)
    aopc                mean over k of p(nothing) - p(top k%)
    log_odds            mean over k of log p(top k%) / p(nothing)

Of an answer log p, per token, stands in the place of p, and only tokens before it are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError
from ..explanation import Explanation
from ..models import By
from .evidence import Evidence, Removal, Values, evidence, scores_of

BINS = (1, 5, 10, 20, 50)
STEPS = tuple(range(10, 101, 10))
# Below this a probability in float32 is zero and its logarithm says nothing.
_SMALLEST = float(np.finfo(np.float32).tiny)


def tokens_in(percent: int, count: int) -> int:
    """ceil(percent of count), in whole numbers: 0.7 * 10 is more than 7 in floating point."""
    if not isinstance(percent, int) or not 0 <= percent <= 100:
        raise InputError(f"{percent!r} is not a whole number of percent from 0 to 100.")
    return -(-percent * count // 100)


def top_removed(order: Sequence[int], percents: Sequence[int], by: By) -> list[Removal]:
    """The text without its top tokens, for each percentage."""
    return [(frozenset(order[: tokens_in(b, len(order))]), by) for b in percents]


def top_kept(order: Sequence[int], percents: Sequence[int], by: By) -> list[Removal]:
    """The text with nothing but its top tokens, for each percentage."""
    return [(frozenset(order[tokens_in(b, len(order)) :]), by) for b in percents]


@dataclass(frozen=True)
class RemovalMetric:
    """A metric of removals: which it asks for, and what it makes of the answers.

    Attributes:
        plan: (order, by, options) -> removals.
        value: (probability of the whole text, probabilities after the plan, options) -> value.
        by: how tokens are removed unless told otherwise.
    """

    plan: Callable[[Sequence[int], By, dict[str, Any]], list[Removal]]
    value: Callable[[float, Values, dict[str, Any]], float]
    by: By


def _comprehensiveness(whole: float, after: Values, options: dict[str, Any]) -> float:
    if not options.get("as_released"):
        return float(np.mean(whole - after))
    lowest = np.minimum.accumulate(np.concatenate([[whole], after]))[1:]
    return float(np.sum(whole - lowest) / (len(after) + 1))


def _sufficiency_plan(order: Sequence[int], by: By, options: dict[str, Any]) -> list[Removal]:
    removals = top_kept(order, options.get("bins", BINS), by)
    # As released the running maximum begins with nothing but the special tokens.
    return [(frozenset(order), by), *removals] if options.get("as_released") else removals


def _sufficiency(whole: float, after: Values, options: dict[str, Any]) -> float:
    if not options.get("as_released"):
        return float(np.mean(whole - after))
    highest = np.maximum.accumulate(after)[1:]
    return float(np.sum(whole - highest) / len(after))


def _aopc(whole: float, after: Values, options: dict[str, Any]) -> float:
    drops = whole - after
    return float(np.mean(np.abs(drops) if options.get("as_released") else drops))


def _log_odds(whole: float, after: Values, options: dict[str, Any]) -> float:
    if options.get("logs"):
        return float(np.mean(after - whole))
    return float(np.mean(np.log(np.maximum(after, _SMALLEST) / max(whole, _SMALLEST))))


def _plan(default: Sequence[int]) -> Callable[[Sequence[int], By, dict[str, Any]], list[Removal]]:
    return lambda order, by, options: top_removed(order, options.get("bins", default), by)


REMOVAL_METRICS: dict[str, RemovalMetric] = {
    "comprehensiveness": RemovalMetric(_plan(BINS), _comprehensiveness, "delete"),
    "sufficiency": RemovalMetric(_sufficiency_plan, _sufficiency, "delete"),
    "aopc": RemovalMetric(_plan(STEPS), _aopc, "delete"),
    "log_odds": RemovalMetric(_plan(STEPS), _log_odds, "pad"),
}
_WHOLE: Removal = (frozenset(), "delete")


def removals(
    name: str, explanation: Explanation, shared: Evidence, **options: Any
) -> list[Removal]:
    """All that a metric will ask, to send the questions of many metrics through together."""
    metric = REMOVAL_METRICS[name]
    scores = scores_of(explanation, options.get("how"), options.get("layer"))
    order = shared.ranking(scores)
    return [_WHOLE, *metric.plan(order, options.get("by") or metric.by, options)]


def measure(name: str, explanation: Explanation, model: Any, **options: Any) -> float:
    """One of the removal metrics by its id."""
    shared = evidence(explanation, model, options.pop("tokenizer", None))
    answers = shared.probabilities(removals(name, explanation, shared, **options))
    options["logs"] = shared.logs
    return REMOVAL_METRICS[name].value(float(answers[0]), answers[1:], options)


def comprehensiveness(
    explanation: Explanation,
    model: Any,
    *,
    by: By = "delete",
    bins: Sequence[int] = BINS,
    as_released: bool = False,
    how: str | None = None,
    layer: int | None = None,
    tokenizer: Any = None,
) -> float:
    """How far the probability falls without the top tokens; higher is better.

    Args:
        model: the model that was explained, or its `Case`.
        by: how a token is removed: "delete", "mask", "pad" or "unk".
        bins: percentages of tokens removed.
        as_released: as in ALTI's code: drops never shrink from one bin to the next, and the
            five of them are divided by six.
        how, layer: measure the focus row of another aggregate than the method's own.
    """
    options = {"by": by, "bins": bins, "as_released": as_released, "how": how, "layer": layer}
    return measure("comprehensiveness", explanation, model, tokenizer=tokenizer, **options)


def sufficiency(
    explanation: Explanation,
    model: Any,
    *,
    by: By = "delete",
    bins: Sequence[int] = BINS,
    as_released: bool = False,
    how: str | None = None,
    layer: int | None = None,
    tokenizer: Any = None,
) -> float:
    """How far the probability falls when only the top tokens are kept; lower is better.

    The arguments are those of `comprehensiveness`.
    """
    options = {"by": by, "bins": bins, "as_released": as_released, "how": how, "layer": layer}
    return measure("sufficiency", explanation, model, tokenizer=tokenizer, **options)


def aopc(
    explanation: Explanation,
    model: Any,
    *,
    by: By = "delete",
    bins: Sequence[int] = STEPS,
    as_released: bool = False,
    how: str | None = None,
    layer: int | None = None,
    tokenizer: Any = None,
) -> float:
    """Area over the perturbation curve, signed; higher is better.

    `as_released` takes absolute values of the drops, as AttCAT's and Mask-LRP's code does: a
    rise of the probability then counts as a success. Otherwise as `comprehensiveness`.
    """
    options = {"by": by, "bins": bins, "as_released": as_released, "how": how, "layer": layer}
    return measure("aopc", explanation, model, tokenizer=tokenizer, **options)


def log_odds(
    explanation: Explanation,
    model: Any,
    *,
    by: By = "pad",
    bins: Sequence[int] = STEPS,
    how: str | None = None,
    layer: int | None = None,
    tokenizer: Any = None,
) -> float:
    """Mean log ratio of the probability after and before replacing tokens; lower is better."""
    options = {"by": by, "bins": bins, "how": how, "layer": layer}
    return measure("log_odds", explanation, model, tokenizer=tokenizer, **options)


@dataclass(frozen=True)
class Curve:
    """Probability against share of tokens removed.

    Attributes:
        shares: share of the removable tokens gone at each point, from 0 to 1.
        probabilities: of the target at each point; of an answer log p, per token.
        order: the tokens' places in the order of their removal.
        counts: how many of them are gone at each point.
    """

    shares: Values
    probabilities: Values
    order: list[int]
    counts: list[int]

    def removed(self, point: int) -> list[int]:
        """Places of the tokens that are gone at a point."""
        return self.order[: self.counts[point]]

    @property
    def area(self) -> float:
        """Mean height of the curve (trapezes): the lower, the sooner the prediction fell."""
        middles = (self.probabilities[1:] + self.probabilities[:-1]) / 2
        return float(np.sum(np.diff(self.shares) * middles))


def curve_counts(count: int, points: int = 21) -> list[int]:
    """How many tokens are gone at each point of a curve: every number, or evenly spread."""
    if points < 2:
        raise InputError(f"points is {points}; a curve has at least two.")
    return sorted({-(-i * count // (points - 1)) for i in range(points)})


def curve(
    explanation: Explanation,
    model: Any,
    *,
    by: By = "delete",
    points: int = 21,
    how: str | None = None,
    layer: int | None = None,
    tokenizer: Any = None,
) -> Curve:
    """The removal curve of an explanation, at about `points` points."""
    shared = evidence(explanation, model, tokenizer)
    return curve_of(shared, shared.ranking(scores_of(explanation, how, layer)), by, points)


def curve_of(shared: Evidence, order: list[int], by: By = "delete", points: int = 21) -> Curve:
    """The removal curve of an order of tokens."""
    counts = curve_counts(len(order), points)
    values = shared.probabilities([(frozenset(order[:count]), by) for count in counts])
    return Curve(np.array(counts) / len(order), values, order, counts)
