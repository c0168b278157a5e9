"""What a worker finds about one explanation besides numbers: put together afterwards, over texts,
methods and models. Everything is as JSON has it, so that it pickles and can be kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import UnsupportedMethodError
from ..explanation import Explanation, normalise_rows, word_scores
from ..metrics import curve, evidence, get_metric, kept_places, pearson, scores_of
from ..models import By, Case, resolve_target


@dataclass(frozen=True)
class Known:
    """What is known about an example besides its text."""

    cues: list[int]
    answer: list[int] | None


def scores(
    made: Explanation,
    case: Case,
    known: Known,
    *,
    special: bool = True,
    how: str | None = None,
    unit: str = "tokens",
    same_prediction: bool = False,
) -> dict[str, Any]:
    """The scores that are compared, of what, and what the model predicts."""
    values = scores_of(made, how)
    kept = set(kept_places(made, special).tolist())
    if unit == "words":
        places = [i for i in range(len(values)) if i in kept]
        words = word_scores([made.tokens[i] for i in places], values[places].astype(np.float32))
        texts, found = [one.word for one in words], [one.score for one in words]
    else:
        texts = [str(token) for token in made.tokens if token.position in kept]
        found = [float(values[i]) for i in sorted(kept)]
    predicted = None
    if same_prediction:
        output = case.trace().output
        own = resolve_target(None, case.source, case.encoding, output, made.focus)
        predicted = own.label
    of = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:20]
    return {"scores": found, "of": of, "predicted": predicted}


def layers(
    made: Explanation,
    case: Case,
    known: Known,
    *,
    metrics: Sequence[tuple[str, str, dict[str, Any]]],
) -> dict[str, Any]:
    """Every metric at every layer, of the layer alone and of the rollout up to it.

    Args:
        metrics: (label, id, options) of each.
    """
    layered = made.maps if made.maps is not None else made.layer_scores
    if layered is None:
        raise UnsupportedMethodError(f"{made.method} has no layers: it scores tokens only.")
    ways = ("layer", "rollout") if made.maps is not None else ("layer",)
    found: dict[str, Any] = {}
    for label, id, options in metrics:
        entry = get_metric(id)
        shared = evidence(made, case) if entry.needs == "model" else None
        found[label] = {
            how: [
                entry(made, shared, {**options, "how": how, "layer": k}, known.cues, known.answer)
                for k in range(len(layered))
            ]
            for how in ways
        }
    return found


def curves(made: Explanation, case: Case, known: Known, *, by: By = "delete") -> dict[str, Any]:
    """Probability of the target against the share of tokens removed."""
    found = curve(made, case, by=by)
    return {"shares": found.shares.tolist(), "probabilities": found.probabilities.tolist()}


def words(made: Explanation, case: Case, known: Known) -> dict[str, Any]:
    """(word, score) of every word, and what they speak for."""
    places = [token.position for token in made.tokens if not token.special]
    found = word_scores([made.tokens[i] for i in places], made.scores[places])
    return {"for": made.target.label, "words": [(one.word, one.score) for one in found]}


def hta(
    made: Explanation, case: Case, known: Known, *, samples: int | None = None
) -> dict[str, Any]:
    """Pearson's correlation of each layer's map with that of `hta`: "hta" with rows normalised,
    "hta_raw" of the maps as they are."""
    if made.maps is None:
        raise UnsupportedMethodError(f"{made.method} has no maps to compare with those of hta.")
    truth = evidence(made, case).explanation("hta", samples=samples).maps
    assert truth is not None
    shares = normalise_rows(made.maps), normalise_rows(truth)
    return {
        name: [pearson(one.ravel(), other.ravel()) for one, other in zip(*maps, strict=True)]
        for name, maps in (("hta", shares), ("hta_raw", (made.maps, truth)))
    }


ASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "scores": scores,
    "layers": layers,
    "curves": curves,
    "words": words,
    "hta": hta,
}
