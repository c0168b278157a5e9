"""Metrics of answers: does the answer follow when the units that a method points at are taken away?

With log p(S) the log probability of the answer (of any other target: of that) without the units S:

    top_k_drop   log p(nothing) - log p(top k units), mean over k
    lds          Spearman's correlation, over random removals, of what the scores of the units that
                 stay add up to with log p - log(1 - p)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..explanation import Explanation, Unit
from ..methods import logits_of, removals
from ..models import By, prompt_units
from .comparison import spearman
from .evidence import Evidence, Removal, Values, evidence

TOP = (1, 3, 5)
_SMALLEST = float(np.finfo(np.float32).tiny)


def top_k_drop(
    explanation: Explanation,
    model: Any,
    *,
    k: int | Sequence[int] = TOP,
    units: Any = "sentences",
    by: By = "delete",
    tokenizer: Any = None,
) -> float:
    """How far the answer's log probability falls without the top k units; higher is better.

    Args:
        model: the model that was explained, or its `Case`.
        k: how many units are taken away; of several the mean.
        units: as in `Explanation.by`; they are ranked by the sum of their tokens' scores.
        by: how they are removed: "delete", "mask", "pad" or "unk".
    """
    shared = evidence(explanation, model, tokenizer)
    asked = top_removals(explanation, shared, k=k, units=units, by=by)
    whole, *after = _log_p(shared, asked)
    return float(np.mean([whole - one for one in after]))


def top_removals(
    explanation: Explanation,
    shared: Evidence,
    *,
    k: int | Sequence[int] = TOP,
    units: Any = "sentences",
    by: By = "delete",
) -> list[Removal]:
    """The whole text, and the text without its top k units for each k."""
    found, scores = scored_units(explanation, shared, units)
    order = np.argsort(-scores, kind="stable")
    counts = [k] if isinstance(k, int) else list(k)
    if not counts or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in counts):
        raise InputError(f"k is {k!r}; it is how many units are taken away, from 1.")
    tops = [[found[i] for i in order[:n]] for n in counts]
    return [_without([], by), *(_without(top, by) for top in tops)]


def lds(
    explanation: Explanation,
    model: Any,
    *,
    units: Any = "sentences",
    samples: int = 32,
    keep: float = 0.5,
    seed: int = 1000,
    by: By = "delete",
    tokenizer: Any = None,
) -> float:
    """Linear datamodeling score: how well the units' scores, added up, foretell the answer when
    units are missing; higher is better.

    Removals are drawn as `context_cite` draws them, from other seeds, so that it is not asked
    about what it was fitted to. Undefined (NaN) where there is one unit only.

    Args:
        samples, keep: how many removals, and how likely a unit stays.
        units, by: as in `top_k_drop`.
    """
    shared = evidence(explanation, model, tokenizer)
    given = {"units": units, "samples": samples, "keep": keep, "seed": seed, "by": by}
    _, scores = scored_units(explanation, shared, units)
    masks = _masks(len(scores), samples, keep, seed)
    values = _log_p(shared, lds_removals(explanation, shared, **given))
    return spearman(masks @ scores, logits_of(values))


def lds_removals(
    explanation: Explanation,
    shared: Evidence,
    *,
    units: Any = "sentences",
    samples: int = 32,
    keep: float = 0.5,
    seed: int = 1000,
    by: By = "delete",
) -> list[Removal]:
    """The text without the units of each random removal."""
    found, _ = scored_units(explanation, shared, units)
    return [
        _without([unit for unit, stays in zip(found, mask, strict=True) if not stays], by)
        for mask in _masks(len(found), samples, keep, seed)
    ]


def _masks(units: int, samples: int, keep: float, seed: int) -> NDArray[np.bool_]:
    """Which units stay, [samples, units]."""
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 2:
        raise InputError(f"samples is {samples!r}; it is how many removals to try, from 2.")
    if not 0 < keep < 1:
        raise InputError(f"keep is {keep!r}; it is a probability between 0 and 1.")
    return removals(units, samples, keep, seed)


def scored_units(
    explanation: Explanation, shared: Evidence, units: Any
) -> tuple[list[Unit], NDArray[np.float64]]:
    """The units of the prompt that can be removed, and the sum of each one's scores."""
    may = set(shared.removable)
    found = [
        unit for unit in prompt_units(shared.case.encoding, units) if may.issuperset(unit.tokens)
    ]
    if not found:
        raise InputError(f"The prompt holds no units of the kind {units!r}.")
    scores = np.asarray(explanation.scores, dtype=np.float64)
    return found, np.array([float(scores[list(unit.tokens)].sum()) for unit in found])


def _without(units: Sequence[Unit], by: By) -> Removal:
    return frozenset(token for unit in units for token in unit.tokens), by


def _log_p(shared: Evidence, asked: Sequence[Removal]) -> Values:
    """Log probability of the whole answer after each removal."""
    values = shared.probabilities(asked)
    if shared.logs:
        return values * len(shared.target.index)  # type: ignore[arg-type]
    return np.asarray(np.log(np.maximum(values, _SMALLEST)))
