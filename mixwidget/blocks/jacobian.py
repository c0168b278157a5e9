"""Derivatives of one layer: how its output at a token answers to its input at another.

The layer's own module is run once more on its recorded input, with a graph, and cut where
attention is done. Above the cut every token is on its own, so one vector-Jacobian product
serves all of them; below it, one is needed per token.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .record import LayerRecord
from .spec import at

# Numbers that one batch of products may hold in each intermediate result (32 MB of float32).
_BATCH_ELEMENTS = 8 * 2**20


class LayerGraph:
    """One layer, run again with a graph: o = above(a, x), a = attention(x).

    `module` is the layer that is run, a hook is left on it. Parameters get no gradients.
    """

    def __init__(self, record: LayerRecord, module: nn.Module) -> None:
        kind = next(module.parameters())
        inputs = record.input.detach()
        self.x = inputs.reshape(1, *inputs.shape[-2:]).to(kind.dtype).clone().requires_grad_()
        self.heads = 1 if record.weights is None else int(record.weights.shape[-3])
        self._below: Tensor | None = None
        arguments = {k: v for k, v in record.arguments.items() if k != "args"}
        with torch.enable_grad():
            at(module, record.spec.out).register_forward_hook(self._cut)
            result: Any = module(self.x, *record.arguments.get("args", ()), **arguments)
        self.output: Tensor = result[0] if isinstance(result, tuple) else result

    def _cut(self, module: nn.Module, args: tuple[Any, ...], result: Tensor) -> Tensor | None:
        if self._below is not None:
            return None
        self._below = result
        self._above = result.detach().requires_grad_()
        return self._above.clone()  # some families add to it in place

    @property
    def tokens(self) -> int:
        return int(self.x.shape[1])

    def squares(self, probes: Tensor, tick: Callable[[float], None]) -> Tensor:
        """||probe_i^T (d o_i / d x_j) scaled by x_j||^2. probes [P, n, d] -> [P, n, n]"""
        assert self._below is not None
        below, tokens = self._below, self.tokens
        above, direct = self._products(self.output, [self._above, self.x], probes)
        assert above is not None
        above = above.reshape(len(probes), tokens, -1)
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
