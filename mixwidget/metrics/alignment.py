"""Alignment: does a map point at the tokens that are known, or measured, to matter?"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..explanation import Explanation
from ..models import By
from .comparison import kept_places, spearman
from .evidence import evidence, scores_of


def _cues(explanation: Explanation, cues: Collection[int]) -> NDArray[np.bool_]:
    n = len(explanation.tokens)
    if not cues:
        raise InputError("There are no cue tokens to compare with.")
    marked = np.zeros(n, dtype=bool)
    for place in cues:
        if not 0 <= place < n:
            raise InputError(f"Cue token {place} is not in the text: tokens are 0 to {n - 1}.")
        marked[place] = True
    return marked


def cue_dot(
    explanation: Explanation,
    cues: Collection[int],
    *,
    how: str | None = None,
    layer: int | None = None,
) -> float:
    """Share of the focus row's mass that lies on the cue tokens; higher is better.

    The row is scaled to sum to 1; signed scores count by their size.
    """
    row = np.abs(scores_of(explanation, how, layer))
    total = row.sum()
    return float(row[_cues(explanation, cues)].sum() / total) if total > 0 else float("nan")


def cue_ap(
    explanation: Explanation,
    cues: Collection[int],
    *,
    how: str | None = None,
    layer: int | None = None,
) -> float:
    """Average precision of the scores as a search for the cue tokens; higher is better.

    Ties are ranked by position, as everywhere; scikit-learn alone would take them as one.
    """
    from sklearn.metrics import average_precision_score

    row = scores_of(explanation, how, layer)
    places = np.empty(len(row))
    places[np.argsort(-row, kind="stable")] = np.arange(len(row))
    return float(average_precision_score(_cues(explanation, cues), -places))


def probes_needed(
    explanation: Explanation,
    cues: Collection[int],
    *,
    how: str | None = None,
    layer: int | None = None,
) -> float:
    """How many other tokens are ranked before the first cue token; lower is better."""
    order = np.argsort(-scores_of(explanation, how, layer), kind="stable")
    return float(np.argmax(_cues(explanation, cues)[order]))


def precision_at_k(
    explanation: Explanation, answer: Collection[int] | None = None, *, k: int = 20
) -> float:
    """Share of the answer's tokens that are among the k top-scored ordinary tokens.

    Args:
        answer: places of the answer's tokens; None means the explained span.
    """
    if answer is None:
        if explanation.target.kind != "span":
            raise InputError("There is no answer span: pass the places of its tokens.")
        first, last = explanation.target.index  # type: ignore[misc]
        answer = range(first, last + 1)
    marked = _cues(explanation, answer)
    places = kept_places(explanation, special=False)
    order = places[np.argsort(-scores_of(explanation)[places], kind="stable")]
    return float(marked[order[:k]].sum() / marked.sum())


def blank_out_rho(
    explanation: Explanation,
    model: Any,
    *,
    by: By = "mask",
    special: bool = False,
    how: str | None = None,
    layer: int | None = None,
    tokenizer: Any = None,
) -> float:
    """Spearman's rank correlation of the scores with `blank_out`; higher is better.

    Args:
        by: how blank-out removes a token.
        special: also count the tokens that the removal metrics never remove: special ones,
            and the mask that a masked language model is asked about.
        how, layer: compare the focus row of another aggregate than the method's own.
    """
    shared = evidence(explanation, model, tokenizer)
    truth = shared.explanation("blank_out", by=by).scores
    keep = np.arange(len(truth)) if special else np.asarray(shared.removable)
    return spearman(scores_of(explanation, how, layer)[keep], truth[keep])


def saliency_rho(
    explanation: Explanation,
    model: Any,
    *,
    special: bool = True,
    how: str | None = None,
    layer: int | None = None,
    tokenizer: Any = None,
) -> float:
    """Spearman's rank correlation of the scores with gradient x input of the logit.

    Args:
        special: whether special tokens count, as they do in GlobEnc's tables.
        how, layer: compare the focus row of another aggregate than the method's own.
    """
    shared = evidence(explanation, model, tokenizer)
    truth = shared.explanation("gradient_x_input", of="logit").scores
    keep = kept_places(explanation, special)
    return spearman(scores_of(explanation, how, layer)[keep], truth[keep])
