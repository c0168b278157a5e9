"""Derivatives of one layer: how its output at a token answers to its input at another.

The layer's own module is run once more on its recorded input, with a graph, and cut where
attention is done. Above the cut every token is on its own, so one vector-Jacobian product
serves all of them; below it, one is needed per token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

# Numbers that one batch of products may hold in each intermediate result (32 MB of float32).
_BATCH_ELEMENTS = 8 * 2**20


@dataclass(frozen=True)
class Cut:
    """A layer run with a graph that is cut where its attention is done.

    Attributes:
        x: its input, a leaf [1, n, d].
        below: the heads' results [n, H * d_head], which depend on x.
        above: the same as a leaf, in the model's own layout, which the output depends on.
        joined: from that layout to [n, H * d_head].
        output: what the layer put out.
    """

    x: Tensor
    below: Tensor
    above: Tensor
    joined: Callable[[Tensor], Tensor]
    output: Tensor
    heads: int


class LayerGraph:
    """One layer with a graph: o = above(a, x), a = attention(x)."""

    def __init__(self, cut: Cut) -> None:
        self.x, self.output, self.heads, self.cut = cut.x, cut.output, cut.heads, cut

    @property
    def tokens(self) -> int:
        return int(self.x.shape[1])

    def squares(self, probes: Tensor, tick: Callable[[float], None]) -> Tensor:
        """||probe_i^T (d o_i / d x_j) scaled by x_j||^2. probes [P, n, d] -> [P, n, n]"""
        below, tokens = self.cut.below, self.tokens
        found, direct = self._products(self.output, [self.cut.above, self.x], probes)
        assert found is not None
        above: Tensor = torch.vmap(self.cut.joined)(found)
        result = probes.new_zeros(len(probes), tokens, tokens)
        each = tokens * max(self.x.shape[-1], self.heads * tokens) * len(probes)
        step = max(1, _BATCH_ELEMENTS // each)
        for start in range(0, tokens, step):
            rows = torch.arange(start, min(start + step, tokens))
            pick = torch.arange(len(rows))
            seeds = above.new_zeros(len(rows), len(probes), tokens, above.shape[-1])
            seeds[pick, :, rows] = above[:, rows].transpose(0, 1)
            (found,) = self._products(below, [self.x], seeds.flatten(0, 1))
            assert found is not None
            grads = found.reshape(len(rows), len(probes), tokens, -1)
            if direct is not None:
                own = direct.reshape(len(probes), tokens, -1)[:, rows].transpose(0, 1)
                grads[pick, :, rows] += own
            grads *= self.x.detach()[0]
            result[:, rows] = grads.square().sum(-1).transpose(0, 1).to(result.dtype)
            tick((start + len(rows)) / tokens)
        return result

    def _products(self, of: Tensor, by: list[Tensor], seeds: Tensor) -> tuple[Tensor | None, ...]:
        """Vector-Jacobian products for a batch of seeds, [batch, ...]."""
        shaped = seeds.to(of.dtype).reshape(len(seeds), *of.shape)
        return torch.autograd.grad(
            of, by, shaped, retain_graph=True, is_grads_batched=True, allow_unused=True
        )


def exact_squares(graph: LayerGraph, tick: Callable[[float], None]) -> Tensor:
    """||(d o_i / d x_j) scaled by x_j||_F^2 for every pair, [n, n]: one probe per feature."""
    tokens, width = graph.tokens, graph.x.shape[-1]
    each = tokens * max(width, graph.heads * tokens)
    step = min(width, max(1, _BATCH_ELEMENTS // each))
    total = torch.zeros(tokens, tokens, dtype=torch.float64, device=graph.x.device)
    for start in range(0, width, step):
        features = torch.arange(start, min(start + step, width), device=graph.x.device)
        probes = graph.x.new_zeros(len(features), tokens, width)
        probes[torch.arange(len(features)), :, features] = 1
        total += _within(graph, probes, tick, start / width, len(features) / width).sum(0)
    return total


def sampled_squares(
    graph: LayerGraph, samples: int, generator: torch.Generator, tick: Callable[[float], None]
) -> tuple[Tensor, Tensor]:
    """The same from random signs instead of all features: E ||s^T J||^2 = ||J||_F^2.

    Returns (mean, standard error), each [n, n]; the mean is unbiased.
    """
    tokens, width = graph.tokens, graph.x.shape[-1]
    step = max(1, _BATCH_ELEMENTS // (tokens * max(width, graph.heads * tokens)))
    parts = []
    for start in range(0, samples, step):
        count = min(step, samples - start)
        signs = torch.randint(0, 2, (count, tokens, width), generator=generator) * 2 - 1
        probes = signs.to(graph.x)
        parts.append(_within(graph, probes, tick, start / samples, count / samples).double())
    drawn = torch.cat(parts)
    spread = drawn.std(0) if samples > 1 else torch.full_like(drawn[0], torch.nan)
    return drawn.mean(0), spread / samples**0.5


def _within(
    graph: LayerGraph, probes: Tensor, tick: Callable[[float], None], done: float, part: float
) -> Tensor:
    return graph.squares(probes, lambda share: tick(done + part * share))
