"""The graph as numbers: steps, traces, folds, and the edges that are drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..explanation import Combine, normalise_rows
from .units import Array, Layout, Unit

_USUAL = 0.1  # the threshold, unless another is asked for
_ROOM_PER_LAYER = 125
_MOST_EDGES = 6000
# (layer, upper, lower, weight)
Edge = tuple[int, int, int, float]


def steps_of(maps: Array, combine: Combine) -> Array:
    """Maps as the rollout multiplies them."""
    steps = maps.astype(np.float64)
    if combine == "with_identity":
        return steps + np.eye(steps.shape[-1])
    return normalise_rows(steps) if combine in ("normalised", "flow") else steps


@dataclass(frozen=True)
class Shares:
    """What of a node passes through every node and edge below it; each level adds up to 1.

    Attributes:
        nodes: [levels, n], level 0 is the input.
        edges: [levels - 1, n, n]: edges[l, k, j] leads from (l + 1, k) down to (l, j).
    """

    nodes: Array
    edges: Array


def trace_down(steps: Array, start: int | list[int]) -> Shares:
    """All paths from a token, or from those of a word, after the last step down to the input.

    A path weighs the product of its entries. With `down` the weight of the paths from the
    token to a node and `up` that of the paths from there to the input, node k carries
    down[k] up[k], and the edge from k to j carries down[k] step[k, j] up[j].
    """
    ups: list[Array] = [np.ones(steps.shape[-1])]
    for step in steps:
        ups.append(_rescaled(step @ ups[-1]))
    # Every token of a word counts alike, whatever the total of its row.
    down: Array = np.zeros(steps.shape[-1])
    down[start] = 1 / np.where(ups[-1] > 0, ups[-1], np.inf)[start]
    nodes, edges = [total_one(down * ups[-1])], []
    for step, up in zip(steps[::-1], ups[-2::-1], strict=True):
        edges.append(total_one(down[:, None] * step * up))
        down = _rescaled(down @ step)
        nodes.append(total_one(down * up))
    return Shares(np.stack(nodes[::-1]), np.stack(edges[::-1]))


def _rescaled(values: Array) -> Array:
    return values / (np.abs(values).max(initial=0.0) or 1.0)


def total_one(values: Array) -> Array:
    return values / (values.sum() or 1.0)


def folded(layout: Layout, weights: Array, room: int, kept: set[int]) -> Layout:
    """Units of little weight joined with their neighbours, so that about `room` are left."""
    if len(layout.units) <= room:
        return layout
    unit_weights = weights @ layout.matrix()
    stay = set(np.argsort(-unit_weights, kind="stable")[:room].tolist()) | kept
    # A fold of one saves nothing.
    weak = [number not in stay for number in range(len(layout.units))]
    for number, unit in enumerate(layout.units):
        near = [i for i in (number - 1, number + 1) if 0 <= i < len(weak) and weak[i]]
        if weak[number] and not any(layout.units[i].segment == unit.segment for i in near):
            stay.add(number)
    units, focus = list[Unit](), None
    for number, unit in enumerate(layout.units):
        if number in stay:
            focus = len(units) if number == layout.focus else focus
            units.append(unit)
            continue
        tokens, fold = unit.tokens, 1
        if units and units[-1].fold and units[-1].segment == unit.segment:
            last = units.pop()
            tokens, fold = last.tokens + tokens, last.fold + 1
        units.append(Unit(f"⋯{fold}", tokens, False, unit.segment, False, fold))
    return Layout(units, focus, layout.tokens)


def without_folds(weights: Array, layout: Layout) -> Array:
    """Edges between single units; those of folds would outshine every other."""
    single = np.array([not unit.fold for unit in layout.units])
    return np.where(single[:, None] & single, weights, 0.0)


def strongest_between(weights: Array) -> Array:
    """Of each layer, the strongest edge between two units: what a unit keeps of itself would
    hide all others."""
    itself = np.eye(weights.shape[-1], dtype=bool)
    return np.asarray(np.where(itself, 0.0, weights).max((1, 2), initial=0.0))


def chosen_edges(weights: Array, threshold: float, top_k: int) -> list[Edge]:
    """The edges that are drawn, weakest first: those of at least a share of the strongest
    between two units of their layer, or the k strongest of each unit to others.

    What a unit keeps of itself counts neither as one of the k nor towards the limit: in most
    maps it would leave no room for the others.
    """
    peaks = strongest_between(weights)
    layers, units = weights.shape[:2]
    itself = np.eye(units, dtype=bool)
    others = np.where(itself, -np.inf, weights)
    if top_k > 0:
        ranks = (-others).argsort(-1, kind="stable").argsort(-1)
        least = 0.0 if top_k >= units - 1 else -np.sort(-others, axis=-1)[..., top_k - 1, None]
        own, between = itself & (weights >= least), ~itself & (ranks < top_k)
        room = np.inf
    else:
        enough = weights >= max(threshold, 1e-6) * peaks[:, None, None]
        own, between = itself & enough, ~itself & enough
        room = _room(threshold, layers)
    kept = [tuple(map(int, place)) for place in np.argwhere(own & (weights > 0))]
    places = np.argwhere(between & (weights > 0))
    shares = weights[tuple(places.T)] / peaks[places[:, 0]]
    order = np.argsort(-shares, kind="stable")
    fits = int((np.cumsum(shares[order]) <= room).sum())
    kept += [tuple(map(int, places[i])) for i in order[: min(fits, _MOST_EDGES)]]
    edges = [(*place, float(weights[place])) for place in kept]
    return sorted(edges, key=lambda edge: edge[3])  # type: ignore[arg-type]


def _room(threshold: float, layers: int) -> float:
    """How much is drawn before lines run together: every edge takes as much as its share of the
    layer's strongest. Who lowers the threshold wants to see more all the same."""
    lowered = max(0.0, 1 - threshold / _USUAL)
    return _ROOM_PER_LAYER * layers * (1 + 3 * lowered)
