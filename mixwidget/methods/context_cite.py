"""ContextCite: a sparse linear surrogate of the answer's probability."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..errors import InputError
from ..explanation import Part
from ..models import edits_without, predict, prompt_units
from .registry import method

if TYPE_CHECKING:
    from .run import Run


def removals(count: int, samples: int, keep: float, seed: int) -> NDArray[np.bool_]:
    """Which units stay, [samples, units]: each by itself with probability `keep`."""
    return np.stack(
        [
            np.random.RandomState(seed + k).choice([False, True], size=count, p=[1 - keep, keep])
            for k in range(samples)
        ]
    )


def logits_of(log_shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """log p - log(1 - p) of log p."""
    sure = np.minimum(log_shares, -np.finfo(np.float64).tiny)
    return np.asarray(log_shares - np.log(-np.expm1(sure)))


def surrogate(
    masks: NDArray[np.bool_], values: NDArray[np.float64], tokens: int, alpha: float
) -> tuple[NDArray[np.float64], float]:
    """Weights of the units and the constant of a LASSO on standardised masks, of values per
    token; back in the scale of masks and whole answers."""
    from sklearn.linear_model import Lasso
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(masks.astype(np.float32))
    fitted = Lasso(alpha=alpha, random_state=0).fit(
        scaler.transform(masks.astype(np.float32)), values / tokens
    )
    weights = fitted.coef_ / scaler.scale_
    constant = fitted.intercept_ - float(weights @ scaler.mean_)
    return np.asarray(weights * tokens, dtype=np.float64), float(constant * tokens)


@method(
    "context_cite",
    title="ContextCite",
    family="perturbation",
    yields="scores",
    paper="Cohen-Wang et al.: ContextCite: Attributing Model Generation to Context",
    year=2024,
    link="https://arxiv.org/abs/2409.00729",
    needs=("passes", "target", "answer"),
    signed=True,
    any_focus=True,
    measures="What each unit of the prompt adds to the answer's log odds, by a sparse linear fit "
    "to random removals.",
    formula=r"\hat w = \mathrm{argmin}_w \tfrac{1}{2K} "
    r"\sum_k \bigl(y_k / T - w^\top m_k - b\bigr)^2 + "
    r"\alpha \lVert w \rVert_1, \quad y = \log p - \log(1 - p)",
    ignores="Units that matter only together; units of little weight are put to 0. Texts with "
    "half of their units taken out may be unlike anything the model has seen.",
    cost=lambda size: 65.0,
    options={
        "units": (None, "What is taken out together: 'sentences', 'words', 'lines', 'messages', or "
        "spans of characters."),
        "samples": (None, "Random removals."),
        "keep": (None, "How likely a unit stays."),
        "alpha": (None, "Weight of the penalty: more puts more units to 0."),
        "seed": (None, "Seed of the removals."),
    },
)  # fmt: skip
def context_cite(
    run: Run,
    *,
    units: Any = "sentences",
    samples: int = 64,
    keep: float = 0.5,
    alpha: float = 0.01,
    seed: int = 0,
) -> Iterator[Part]:
    """Weights of a LASSO of log p - log(1 - p) of the whole answer on which units stay, [n].

    Removal k keeps unit u where RandomState(seed + k).choice says so; units are cut from the text
    before the chat template is applied. Masks are standardised, values taken per token of the
    answer; weights are given in the original scale, times the number of tokens. A unit's value is
    spread evenly over its tokens; `info["values"]` holds the units' own. Cohen-Wang et al. 2024.
    """
    _check(samples, keep, alpha)
    source, encoding, target = run.source, run.encoding, run.target
    found = prompt_units(encoding, units)
    if not found:
        raise InputError(f"The prompt holds no units of the kind {units!r}.")
    masks = removals(len(found), samples, keep, seed)
    gone = [[unit for unit, stays in zip(found, mask, strict=True) if not stays] for mask in masks]
    edits = edits_without(source, encoding, target, [[], *gone], units)
    shares = predict(source, encoding, edits, check=run.check, report=run.report).numpy()
    shares = shares if target.kind == "answer" else np.log(shares)
    tokens = len(target.index) if isinstance(target.index, tuple) else 1
    values = logits_of(shares)
    weights, constant = surrogate(masks, values[1:], tokens, alpha)
    scores = torch.zeros(len(encoding.tokens), dtype=torch.float64)
    for unit, weight in zip(found, weights, strict=True):
        scores[list(unit.tokens)] = float(weight) / len(unit.tokens)
    yield run.final(
        scores,
        units=[list(unit.tokens) for unit in found],
        names=[unit.name for unit in found],
        values=weights.tolist(),
        constant=constant,
        fitted=float(weights.sum() + constant),
        found=float(values[0]),
    )


def _check(samples: Any, keep: Any, alpha: Any) -> None:
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 2:
        raise InputError(f"samples is {samples!r}; it is how many removals to try, from 2.")
    if not isinstance(keep, float) or not 0 < keep < 1:
        raise InputError(f"keep is {keep!r}; it is a probability between 0 and 1.")
    if not isinstance(alpha, int | float) or not alpha >= 0 or not math.isfinite(alpha):
        raise InputError(f"alpha is {alpha!r}; it is the weight of the penalty, from 0.")
