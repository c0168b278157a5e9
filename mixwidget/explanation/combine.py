"""Ways of combining layers. Each takes maps [layers, n, n] or scores [layers, n]."""

from __future__ import annotations

from collections.abc import Callable
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
Combine = Literal["product", "normalised", "with_identity", "flow"]


def rollout(maps: Array, combine: Combine = "product") -> Array:
    """[layers, n, n] -> [layers, n, n]: how input tokens reach each token, up to each layer.

    Products of unnormalised maps reach 1e19 within twelve layers: each is rescaled by one
    number, which changes nothing relative. Normalise the rows to read them as shares.
    """
    if combine == "flow":
        return maximum_flow(maps)
    identity = np.eye(maps.shape[-1])
    combined = np.empty(maps.shape, dtype=np.float64)
    for layer, map in enumerate(maps):
        step = map.astype(np.float64)
        if combine == "normalised":
            step = normalise_rows(step)
        elif combine == "with_identity":
            step = step + identity
        product = step @ combined[layer - 1] if layer else step
        if combine == "product":
            peak = np.abs(product).max(initial=0.0)
            product = product / peak if peak > 1e6 else product
        combined[layer] = product
    return combined


def rollout_row(maps: Array, row: int, combine: Combine = "product") -> Array:
    """One row of the last layer's rollout, [n], without the others: L n^2 operations."""
    made = np.zeros(maps.shape[-1])
    made[row] = 1.0
    for map in maps[::-1]:
        step = map.astype(np.float64)
        if combine == "normalised":
            step = normalise_rows(step)
        made = made @ step + (made if combine == "with_identity" else 0.0)
        peak = np.abs(made).max(initial=0.0)
        made = made / peak if combine == "product" and peak > 1e6 else made
    return made


def summed(maps: Array) -> Array:
    """Sum over the layers up to and including each."""
    return np.cumsum(maps, axis=0, dtype=np.float64)


def last(maps: Array) -> Array:
    """Each layer alone: the map up to layer l is layer l's own."""
    return maps.astype(np.float64)


# The three ways a reader may ask for, by the name used in the widget and in `aggregate=`.
AGGREGATES: dict[str, Callable[[Array], Array]] = {"rollout": rollout, "sum": summed, "layer": last}
