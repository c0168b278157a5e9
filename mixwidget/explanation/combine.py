"""Ways of combining layers. Each takes maps [layers, n, n] or scores [layers, n]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .flow import maximum_flow, normalise_rows

Array = NDArray[np.floating]

# How a method's layers make one map:
#   product        R^l = M^l R^(l-1)                     rollout
#   normalised     the same, with the rows of every M^l normalised first
#   with_identity  R^l = R^(l-1) + M^l R^(l-1)           relevance maps that leave out the residual
#   flow           maximum flow through the layers
#   whole          nothing to combine: a layer's map begins at the input
Combine = Literal["product", "normalised", "with_identity", "flow", "whole"]


def rollout(maps: Array, combine: Combine = "product") -> Array:
    """[layers, n, n] -> [layers, n, n]: how input tokens reach each token, up to each layer.

    Products of unnormalised maps reach 1e19 within twelve layers: each is rescaled by one
    number, which changes nothing relative. Normalise the rows to read them as shares.
    """
    if combine == "flow":
        return maximum_flow(maps)
    rolling = Rolling(combine)
    for map in maps:
        rolling.add(map)
    return np.stack(rolling.maps) if rolling.maps else np.empty(maps.shape)


class Rolling:
    """A rollout as its layers come in, from the lowest up; `maps` are those so far, [n, n] each."""

    def __init__(self, combine: Combine) -> None:
        self.combine = combine
        self.maps: list[Array] = []

    def __len__(self) -> int:
        return len(self.maps)

    def add(self, map: Array) -> None:
        """One more layer on top."""
        step: Array = map.astype(np.float64)
        if self.combine == "normalised":
            step = normalise_rows(step)
        elif self.combine == "with_identity":
            step = step + np.eye(len(step))
        multiplies = self.maps and self.combine != "whole"
        product: Array = step @ self.maps[-1] if multiplies else step
        if self.combine == "product":
            peak = np.abs(product).max(initial=0.0)
            product = product / peak if peak > 1e6 else product
        self.maps.append(product)


def rollout_row(maps: Array, row: int, combine: Combine = "product") -> Array:
    """One row of the last layer's rollout, [n], without the others: L n^2 operations."""
    return rollout_rows(maps, [row], combine)[0]


def rollout_rows(maps: Array, rows: Sequence[int], combine: Combine = "product") -> Array:
    """Some rows of the last layer's rollout, [rows, n]: carried down from the top."""
    if combine == "whole":
        return maps[-1][list(rows)].astype(np.float64)
    made: Array = _units(rows, maps)
    for map in maps[::-1]:
        made = _carried(made, map, combine)
    return made


def rollout_rows_by_layer(maps: Array, rows: Sequence[int], combine: Combine = "product") -> Array:
    """Some rows of the rollout up to each layer, [layers, rows, n], each row up to a factor: all
    are carried down together, L^2 rows n^2 operations in the place of L n^3."""
    if combine == "whole":
        return maps[:, list(rows)].astype(np.float64)
    made: Array = np.empty((0, maps.shape[-1]))
    for map in maps[::-1]:
        made = _carried(np.concatenate([made, _units(rows, maps)]), map, combine)
    return made.reshape(len(maps), len(rows), -1)[::-1]


def _units(rows: Sequence[int], maps: Array) -> Array:
    made = np.zeros((len(rows), maps.shape[-1]))
    made[range(len(rows)), list(rows)] = 1.0
    return made


def _carried(made: Array, map: Array, combine: Combine) -> Array:
    """Rows above a layer as rows below it."""
    step: Array = map.astype(np.float64)
    if combine == "normalised":
        step = normalise_rows(step)
    made = made @ step + (made if combine == "with_identity" else 0.0)
    if combine != "product":
        return made
    peak = np.abs(made).max(-1, initial=0.0, keepdims=True)
    return made / np.where(peak > 1e6, peak, 1.0) if bool((peak > 1e6).any()) else made


def summed(maps: Array) -> Array:
    """Sum over the layers up to and including each."""
    return np.cumsum(maps, axis=0, dtype=np.float64)


def last(maps: Array) -> Array:
    """Each layer alone: the map up to layer l is layer l's own."""
    return maps.astype(np.float64)


# The three ways a reader may ask for, by the name used in the widget and in `aggregate=`.
AGGREGATES: dict[str, Callable[[Array], Array]] = {"rollout": rollout, "sum": summed, "layer": last}
