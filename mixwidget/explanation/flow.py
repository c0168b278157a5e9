"""Maximum flow through the layers: attention weights as the widths of pipes.

Nodes are (l, i), token i after layer l, with l = 0 the input; an edge goes from (l, i) down to
(l - 1, j) with capacity M^l_ij. The flow of a pair is the most that can go from (L, i) to
(0, j). Abnar and Zuidema (2020), Quantifying Attention Flow in Transformers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import CostError, InputError, spoken

if TYPE_CHECKING:
    from scipy.sparse import csr_array


Array = NDArray[np.floating]

# scipy works on 32-bit integers; a token's whole outflow becomes this many units.
_UNITS = 2**29

# One flow takes about this long for each edge (measured: see docs/benchmarks.md).
_SECONDS_PER_EDGE = 2e-8
LIMIT_SECONDS = 600.0


def flow_seconds(layers: int, tokens: int, rows: int = 1) -> float:
    """Estimated time of the flows from `rows` tokens of the last layer to every input token."""
    return _SECONDS_PER_EDGE * layers * tokens**2 * tokens * rows


def check_cost(layers: int, tokens: int, rows: int = 1) -> None:
    """Refuse beforehand what would take longer than ten minutes."""
    seconds = flow_seconds(layers, tokens, rows)
    if seconds > LIMIT_SECONDS:
        flows = f"{rows * tokens:,} maximum flows of {layers * tokens**2:,} edges"
        raise CostError(
            f"Attention flow over {tokens} tokens and {layers} layers needs {flows}, about "
            f"{spoken(seconds)}. Shorten the text, read one row (.scores) instead of the whole "
            "rollout, or use attention_rollout."
        )


def normalise_rows(maps: Array) -> Array:
    """Rows that sum to 1; a row of zeros stays a row of zeros."""
    total = maps.sum(-1, keepdims=True)
    return np.divide(maps, total, out=np.zeros_like(maps), where=total != 0)


def maximum_flow(maps: Array) -> Array:
    """[L, n, n] -> flows from each token after each layer to the input tokens, rows sum 1.

    n^2 flows a layer: raises `CostError` before starting if that takes more than ten minutes.
    """
    layers, tokens = len(maps), maps.shape[-1]
    check_cost(layers * (layers + 1) // 2, tokens, tokens)
    return np.stack([flow_rows(maps[: layer + 1], range(tokens)) for layer in range(layers)])


class Flows:
    """The same as `maximum_flow`, each row computed when it is first asked for."""

    def __init__(self, maps: Array) -> None:
        self.maps = maps
        self._rows: dict[tuple[int, int], Array] = {}

    def row(self, layer: int, token: int) -> Array:
        """Flows from a token after a layer to every input token, [n], sum 1."""
        if (layer, token) not in self._rows:
            check_cost(layer + 1, self.maps.shape[-1])
            self._rows[layer, token] = flow_rows(self.maps[: layer + 1], [token])[0]
        return self._rows[layer, token]

    def __getitem__(self, layer: int) -> Array:
        """Flows from every token after a layer, [n, n]."""
        tokens = self.maps.shape[-1]
        missing = sum((layer, token) not in self._rows for token in range(tokens))
        check_cost(layer + 1, tokens, missing)
        return np.stack([self.row(layer, token) for token in range(tokens)])


def flow_rows(
    maps: Array, rows: Sequence[int], progress: Callable[[float], None] | None = None
) -> Array:
    """Flows from some tokens after the last layer to every input token, [rows, n], sum 1."""
    from scipy.sparse.csgraph import maximum_flow as scipy_flow

    layers, tokens = len(maps), maps.shape[-1]
    flows = np.zeros((len(rows), tokens))
    for number, row in enumerate(rows):
        graph = _graph(maps, row)
        source = layers * tokens
        for sink in range(tokens):
            if progress is not None:
                progress((number * tokens + sink) / (len(rows) * tokens))
            flows[number, sink] = scipy_flow(graph, source, sink).flow_value
    return normalise_rows(flows)


def _graph(maps: Array, row: int) -> csr_array:
    """Capacities as a sparse matrix; of the last layer only the one node that is asked for."""
    from scipy.sparse import csr_array

    layers, tokens = len(maps), maps.shape[-1]
    scale = _UNITS / max(float(maps.sum(-1).max(initial=0.0)), 1e-30)
    # A layer at a time, row by row as the matrix holds them: all edges at once would take
    # several times the memory of the matrix. The input's tokens have no edges of their own.
    counts, edges, widths = [np.zeros(tokens, np.int64)], [], []
    for layer, map in enumerate(maps):
        rows = map if layer < layers - 1 else map[row : row + 1]
        pipes = np.rint(rows * np.float64(scale)).astype(np.int32)
        open = pipes > 0
        counts.append(open.sum(-1))
        edges.append((np.nonzero(open)[1] + layer * tokens).astype(np.int32))
        widths.append(pipes[open])
    # int32: older scipy refuses to find flows between nodes that are numbered in int64
    starts = np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int32)
    size = layers * tokens + 1
    return csr_array(
        (np.concatenate(widths), np.concatenate(edges), starts), shape=(size, size), copy=False
    )


@dataclass(frozen=True)
class Routes:
    """Information flow routes: a subgraph; that of a larger tau is a part of it.

    Attributes:
        edges: (layer, target token, source token), layers from 0, in this order.
        feed_forwards: (layer, token) whose feed-forward counts.
        tau: what an edge's or a feed-forward's share exceeds.
    """

    edges: list[tuple[int, int, int]]
    feed_forwards: list[tuple[int, int]]
    tau: float


def find_routes(
    maps: NDArray[np.floating], feed_forward: NDArray[np.floating], focus: int, tau: float
) -> Routes:
    """From (last layer, focus) downward, along maps [layers, n, n] above tau."""
    if not isinstance(tau, int | float) or isinstance(tau, bool) or not 0 <= tau < 1:
        raise InputError(f"tau is {tau!r}; it is a share of a row, from 0 to below 1.")
    reached, edges, fed = {focus}, [], []
    for layer in range(len(maps) - 1, -1, -1):
        fed += [(layer, i) for i in sorted(reached) if feed_forward[layer][i] > tau]
        found = [(layer, i, int(j)) for i in reached for j in np.flatnonzero(maps[layer][i] > tau)]
        edges += found
        reached = {j for _, _, j in found}
    return Routes(sorted(edges), sorted(fed), float(tau))
