"""What each head, the residual and the feed-forward bring to a token, as shares of a row.

A part's share is how near it comes to the whole: a = max(0, |p|_1 - |p - part|_1), of all
parts together 1. Parts of p = x + attention are every head's A^h_ij g^h_j and x itself; parts
of the layer's output are p (after its norm, in post-norm blocks) and the feed-forward.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from .algebra import Block, Stage

# A batch of [targets, sources, d] that stays in the cache while it is made and summed.
_BATCH_ELEMENTS = 2**18


@dataclass(frozen=True)
class Shares:
    """Of one layer. A row of `heads`, summed over heads and sources, and its `residual` are 1."""

    heads: Tensor  # [H, n, n]
    residual: Tensor  # [n]
    feed_forward: Tensor  # [n]; 1 minus it came through the residual; NaN where nobody can say

    @property
    def map(self) -> Tensor:
        """[n, n]: all heads together, the residual on the diagonal."""
        return self.heads.sum(0) + torch.diag(self.residual)


def shares(
    block: Block,
    released: bool = False,
    tick: Callable[[float], None] = lambda share: None,
) -> Shares:
    """The shares of a layer's parts.

    Args:
        released: as in the authors' tool, which adds 1e-6 to every difference and gives no part
            less than 1e-5.
    """
    stage = block.stage("res")
    assert stage.residual is not None
    shift, floor = (1e-6, 1e-5) if released else (0.0, 0.0)
    gaps = _head_gaps(block, stage, shift, tick)
    own = (stage.residual - stage.total + shift).abs().sum(-1)
    size = stage.total.abs().sum(-1)
    every = torch.cat([gaps.transpose(0, 1).flatten(1), own[:, None]], 1)  # [n, H n + 1]
    made = _normalised(size[:, None] - every, every, floor)
    heads = made[:, :-1].reshape(len(own), len(gaps), -1).transpose(0, 1)
    return Shares(heads, made[:, -1], _feed_forward(block, shift, floor))


def _head_gaps(block: Block, stage: Stage, shift: float, tick: Callable[[float], None]) -> Tensor:
    """|p_i - A^h_ij g^h_j|_1 for every head and pair, [H, n, n]; nothing taken is a gap of |p|."""
    tokens, width = stage.total.shape
    weights = block.weights * stage.scale.squeeze(-1)[:, None]
    gaps = weights.new_empty(weights.shape)
    gaps[:] = (stage.total - shift).abs().sum(-1)[:, None]
    batch = max(1, _BATCH_ELEMENTS // (tokens * width))
    for part, vectors in block.source_vectors(stage):
        for start in range(part.start, part.stop, batch):
            stop = min(start + batch, part.stop)
            first = start if block.causal else 0
            whole = (stage.total[first:] - shift)[:, None]
            for h in range(len(weights)):
                if stage.carry is not None:
                    brought = _brought(block, h, slice(start, stop))
                    gap = whole - stage.carry(brought)[:, first:].transpose(0, 1)
                else:
                    of_head = vectors[start - part.start : stop - part.start, h]
                    taken = weights[h, first:, start:stop, None]
                    gap = torch.addcmul(whole, taken, of_head[None], value=-1)
                gaps[h, first:, start:stop] = gap.abs_().sum(-1)
            tick(stop / tokens)
    return gaps


def _brought(block: Block, head: int, sources: slice) -> Tensor:
    """What one head brings from some tokens to each token, the others nothing.
    [chunk, n, H, d_head]"""
    taken = block.weights[head, :, sources].T[..., None] * block.values[head, sources][:, None]
    brought = taken.new_zeros(*taken.shape[:2], block.heads, taken.shape[-1])
    brought[:, :, head] = taken
    return brought


def _feed_forward(block: Block, shift: float, floor: float) -> Tensor:
    """The feed-forward's share of the layer's output, or of what its last norm reads. [n]"""
    known = block.fed()
    if known is None:
        return block.output.new_full(block.output.shape[:1], torch.nan)
    before, whole = known
    parts = torch.stack([whole - before, before], 1)  # [n, 2, d]
    gaps = (parts - whole[:, None] + shift).abs().sum(-1)
    return _normalised(whole.abs().sum(-1, keepdim=True) - gaps, gaps, floor)[:, 0]


def _normalised(near: Tensor, gaps: Tensor, floor: float) -> Tensor:
    """Shares of each row; where all are clipped, all of it is the nearest part's."""
    near = near.clamp(min=floor)
    total = near.sum(-1, keepdim=True)
    nearest = torch.zeros_like(near).scatter_(-1, gaps.argmin(-1, keepdim=True), 1.0)
    return torch.where(total > 0, near / total, nearest)
