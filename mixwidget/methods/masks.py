"""Masks of attention heads, as values: found ones, random ones, corrupted ones."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Array = NDArray[np.floating]

RELATIONS = ("nsubj", "obj", "amod", "advmod")
SYNTACTIC_MARGIN = 0.1
POSITIONAL_SHARE = 0.8


@dataclass(frozen=True)
class HeadMasks:
    """Heads of a model by what they follow. L layers, H heads.

    Attributes:
        syntactic, positional: [L, H] of 0 and 1.
        syntactic_shares: [4, L, H] by relation, in the order of `relations`: share of words
            whose most attended token is in the word they depend on.
        offset_shares: [4] share of these words whose head is at the relation's commonest
            distance: what a head gains by looking there and knowing no syntax.
        positional_shares: [L, H] share of tokens whose most attended token is at the head's
            commonest distance, which is `offsets` [L, H].
        words: [4] how many words each relation was counted on; `tokens` likewise.
        distances: {relation: {how many words on the word lies that this one depends on: how
            often}}; empty in masks that were kept without.
        margin, share: what a head had to exceed to be syntactic, positional.
        made_of: a fingerprint of model, texts and settings.
    """

    syntactic: NDArray[np.int8]
    positional: NDArray[np.int8]
    syntactic_shares: Array
    offset_shares: Array
    positional_shares: Array
    offsets: NDArray[np.int64]
    words: NDArray[np.int64]
    tokens: int
    relations: tuple[str, ...] = RELATIONS
    distances: dict[str, dict[int, int]] = field(default_factory=dict)
    margin: float = SYNTACTIC_MARGIN
    share: float = POSITIONAL_SHARE
    made_of: str = ""

    @property
    def mask(self) -> NDArray[np.int8]:
        """Heads that are either, [L, H]: what `mask_lrp(mask=...)` takes."""
        return np.maximum(self.syntactic, self.positional)

    def random(self, seed: int = 0) -> NDArray[np.int8]:
        """A mask of as many heads, drawn at random: the control."""
        return random_mask(self.mask, seed)

    def corrupted(self, rate: float, seed: int = 0) -> NDArray[np.int8]:
        """The mask with a share of the heads that it leaves out let in, drawn at random; 1 lets all
        heads in, which is `transatt`."""
        return corrupted_mask(self.mask, rate, seed)

    def distance_shares(self) -> pd.DataFrame:
        """How far on the word lies that a word depends on, by relation: a row for each distance,
        with how often and its share."""
        import pandas as pd

        rows = [
            {"relation": relation, "distance": distance, "count": count}
            for relation, counts in self.distances.items()
            for distance, count in sorted(counts.items())
        ]
        frame = pd.DataFrame(rows, columns=["relation", "distance", "count"])
        return frame.assign(
            share=frame["count"] / frame.groupby("relation")["count"].transform("sum")
        )

    def plot(self) -> Figure:
        """The layer-by-head grid: share of fixed offset, best gain over it by syntax, mask."""
        from ..plots import plot_head_masks

        return plot_head_masks(self)

    def save(self, path: str | Path) -> None:
        """Write as JSON."""
        plain = {name: _listed(value) for name, value in vars(self).items()}
        Path(path).write_text(json.dumps(plain, indent=1) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> HeadMasks:
        """Read what `save` wrote."""
        plain = json.loads(Path(path).read_text())
        kinds = {
            "syntactic": np.int8,
            "positional": np.int8,
            "offsets": np.int64,
            "words": np.int64,
        }
        arrays: dict[str, Any] = {
            name: np.asarray(value, dtype=kinds.get(name, np.float64))
            for name, value in plain.items()
            if isinstance(value, list) and name != "relations"
        }
        rest = {name: value for name, value in plain.items() if name not in arrays}
        told = rest.pop("distances", {}).items()
        rest["distances"] = {of: {int(k): n for k, n in counts.items()} for of, counts in told}
        return cls(**arrays, **{**rest, "relations": tuple(plain["relations"])})


def _listed(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        rounded = value if value.dtype.kind == "i" else value.round(4)
        return rounded.tolist()
    return list(value) if isinstance(value, tuple) else value


def random_mask(like: Any, seed: int = 0) -> NDArray[np.int8]:
    """A mask [L, H] with as many heads as another one, drawn at random."""
    like = np.asarray(like)
    mask = np.zeros(like.size, dtype=np.int8)
    mask[: int((like > 0).sum())] = 1
    return np.random.default_rng(seed).permutation(mask).reshape(like.shape)


def corrupted_mask(mask: Any, rate: float, seed: int = 0) -> NDArray[np.int8]:
    """A mask [L, H] with a share of its zeros turned to ones, drawn at random."""
    if not 0 <= rate <= 1:
        raise InputError(f"rate is {rate!r}; it is a share from 0 to 1.")
    made = (np.asarray(mask) > 0).astype(np.int8)
    out = np.flatnonzero(made.ravel() == 0)
    drawn = np.random.default_rng(seed).permutation(out)[: round(rate * len(out))]
    made.ravel()[drawn] = 1
    return made
