"""How far what one token gives is from the whole: ||y_i - u_ij|| for all pairs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .algebra import Block, Stage

# A batch of [sources, n, d] that stays in the cache while it is made and summed.
_BATCH_ELEMENTS = 2**18


def part_distances(
    block: Block, stage: Stage, p: int, tick: Callable[[float], None] = lambda share: None
) -> Tensor:
    """||y_i - u_ij||_p with y = stage.total. [n, n]; infinite where i takes nothing from j.

    y_i - sum_h (scale_i A^h_ij) g^h_j is one fused product per source, [n, H] @ [H, d], and
    its norm is taken while it is in the cache. Of a causal block only rows i >= j are made.
    """
    tokens, width = stage.total.shape
    weights = block.weights.permute(2, 1, 0).clone(memory_format=torch.contiguous_format)
    weights *= stage.scale.squeeze(-1)[:, None]  # in place: of a long text they are large
    distances = weights.new_full((tokens, tokens), torch.inf)  # [source, target]
    batch = max(1, _BATCH_ELEMENTS // (tokens * width))
    if stage.carry is not None:
        for part, brought in block.carried_vectors(stage):
            distances[part] = _norm_(stage.total - brought, p)
            tick(part.stop / tokens)
    sources_of = () if stage.carry is not None else block.source_vectors(stage)
    for part, vectors in sources_of:
        vectors = vectors.contiguous()
        for start in range(part.start, part.stop, batch):
            stop = min(start + batch, part.stop)
            first = start if block.causal else 0
            total = stage.total[first:].expand(stop - start, -1, -1)
            sources = vectors[start - part.start : stop - part.start]
            gap = torch.baddbmm(total, weights[start:stop, first:], sources, alpha=-1)
            distances[start:stop, first:] = _norm_(gap, p)
            tick(stop / tokens)
    distances = distances.T.contiguous()
    own = stage.total - block.own_vectors(stage)
    distances.diagonal().copy_(_norm_(own, p))
    seen = torch.zeros_like(distances, dtype=torch.bool).fill_diagonal_(True)
    for head in block.weights:
        seen |= head != 0
    return distances.masked_fill_(~seen, torch.inf)


def _norm_(vectors: Tensor, p: int) -> Tensor:
    """Norm over the last dimension; overwrites its argument (torch's own 1-norm is slower)."""
    return vectors.abs_().sum(-1) if p == 1 else vectors.norm(dim=-1)


def proximity(block: Block, stage: Stage, distances: Tensor, p: int) -> Tensor:
    """max(0, ||y_i||_p - d_ij), rows normalised; an all-clipped row goes to its nearest. [n, n]"""
    size = _norm_(stage.total.clone(), p)[:, None]
    near = (size - distances).clamp_(min=0)
    total = near.sum(-1, keepdim=True)
    nearest = torch.zeros_like(near).scatter_(-1, distances.argmin(-1, keepdim=True), 1.0)
    return torch.where(total > 0, near / total, nearest)
