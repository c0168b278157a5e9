"""Agreement: do two explanations of the same text point at the same tokens?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ..engine import explain_case
from ..errors import InputError, UnsupportedMethodError
from ..explanation import Explanation
from ..methods import get_method
from .evidence import Values, evidence, scores_of
from .faithfulness import tokens_in

MEASURES = ("spearman", "kendall", "jaccard")


def spearman(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Spearman's rank correlation; NaN where one of the two is constant."""
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(stats.spearmanr(first, second).statistic)


def pearson(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Pearson's correlation; NaN where one of the two is constant."""
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])


def kendall_tau(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Kendall's tau-b; NaN where one of the two is constant."""
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(stats.kendalltau(first, second).statistic)


def jaccard(first: NDArray[Any], second: NDArray[Any], percent: int = 25) -> float:
    """Overlap of the top tokens: how many are in both, of those that are in either."""
    count = tokens_in(percent, len(first))
    top = [set(np.argsort(-scores, kind="stable")[:count].tolist()) for scores in (first, second)]
    return len(top[0] & top[1]) / len(top[0] | top[1])


def agreement(
    first: Explanation,
    second: Explanation,
    *,
    special: bool = True,
    percent: int = 25,
    how: str | None = None,
) -> dict[str, float]:
    """Spearman, Kendall and Jaccard of the top 25% between two explanations of one text.

    They may be by two methods, or of two models with the same tokens.

    Args:
        special: whether special tokens count. They often hold most of the mass, and methods
            that agree on nothing else agree on them.
        percent: what is the top, for Jaccard.
        how: compare this aggregate ("rollout", "sum", "layer") of methods that have maps.
    """
    if [str(token) for token in first.tokens] != [str(token) for token in second.tokens]:
        raise InputError("Explanations of different texts cannot be compared.")
    keep = kept_places(first, special)
    a, b = scores_of(first, how)[keep], scores_of(second, how)[keep]
    return {
        "spearman": spearman(a, b),
        "kendall": kendall_tau(a, b),
        "jaccard": jaccard(a, b, percent),
    }


def kept_places(explanation: Explanation, special: bool) -> NDArray[np.intp]:
    """Places of the tokens that a comparison looks at."""
    places = [t.position for t in explanation.tokens if special or not t.special]
    return np.asarray(places, dtype=np.intp)


def agreement_matrix(
    explanations: Sequence[Explanation],
    measure: str = "spearman",
    *,
    special: bool = True,
    percent: int = 25,
    how: str | None = None,
) -> Values:
    """Agreement of every explanation with every other, [k, k], symmetric with ones."""
    if measure not in MEASURES:
        raise InputError(f"measure is {measure!r}; it can be {', '.join(MEASURES)}.")
    count = len(explanations)
    matrix = np.eye(count)
    options: dict[str, Any] = {"special": special, "percent": percent, "how": how}
    for i in range(count):
        for j in range(i):
            value = agreement(explanations[i], explanations[j], **options)[measure]
            matrix[i, j] = matrix[j, i] = value
    return matrix


def agreement_with(
    explanation: Explanation,
    model: Any,
    *,
    other: str = "gradient_x_input",
    measure: str = "spearman",
    special: bool = True,
    percent: int = 25,
    how: str | None = None,
    tokenizer: Any = None,
) -> float:
    """One number of `agreement` with another method on the same text and target."""
    if measure not in MEASURES:
        raise InputError(f"measure is {measure!r}; it can be {', '.join(MEASURES)}.")
    theirs = evidence(explanation, model, tokenizer).explanation(other)
    return agreement(explanation, theirs, special=special, percent=percent, how=how)[measure]


def kendall(
    explanation: Explanation,
    model: Any,
    *,
    special: bool = True,
    as_released: bool = False,
    tokenizer: Any = None,
) -> float:
    """Mean Kendall tau between the scores for the target and for each other class.

    Lower is better: a method that explains a class should say something else for another.
    For methods that explain a target, on classifiers.

    Args:
        special: whether special tokens count.
        as_released: compare the lists of token indices sorted by score instead of the
            scores, as AttCAT's code does. These are not ranks: the number says little, but it
            is the paper's.
    """
    entry = get_method(explanation.method)
    if not entry.class_specific:
        raise UnsupportedMethodError(
            f"{entry.id} gives the same scores whatever the class, so there is nothing to compare."
        )
    shared = evidence(explanation, model, tokenizer)
    source, target = shared.case.source, explanation.target
    if target.kind != "class":
        raise UnsupportedMethodError("kendall compares classes; this model's target is no class.")
    keep = kept_places(explanation, special)
    own = np.asarray(explanation.scores, dtype=np.float64)[keep]
    taus = []
    for other in range(len(source.labels)):
        if other == target.index:
            continue
        against = explain_case(
            shared.case,
            explanation.method,
            target=other,
            focus=explanation.focus,
            **explanation.params,
        )
        theirs = np.asarray(against.scores, dtype=np.float64)[keep]
        if as_released:
            orders = (np.argsort(-own, kind="stable"), np.argsort(-theirs, kind="stable"))
            taus.append(kendall_tau(*orders))
        else:
            taus.append(kendall_tau(own, theirs))
    return float(np.mean(taus)) if taus else float("nan")
