"""One attention of a layer, and its way into the residual stream, as nodes of a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True)
class Attention:
    """One product of attention weights with values, as the model computed it.

    Attributes:
        weights: [1, H, rows, columns], a node of the graph on the way to the product.
        values: [H, columns, d_head].
        result: what the product gave, in the model's own layout.
        again: the product once more, with other values in the layout of the first.
        raw_values, axis: the values in the model's layout, and its axis of source tokens.
        by_head: from a tensor like `result` to [H, rows, d_head].
    """

    weights: Tensor
    values: Tensor
    result: Tensor
    again: Callable[[Tensor], Tensor]
    raw_values: Tensor
    axis: int
    by_head: Callable[[Tensor], Tensor]

    @property
    def heads(self) -> int:
        return int(self.weights.shape[1])

    def joined(self, like: Tensor) -> Tensor:
        """From a tensor like `result` to [rows, H * d_head]."""
        return self.by_head(like).transpose(0, 1).flatten(1)

    def without(self, source: int) -> Tensor:
        """The product with one source token's values away."""
        gone = torch.tensor([source], device=self.raw_values.device)
        return self.again(self.raw_values.index_fill(self.axis, gone, 0.0))


@dataclass
class Nodes:
    """One attention on its way into the residual stream.

    Attributes:
        attention: its weights and values.
        leaf: its result, a leaf; after a gate, what the gate let through.
        gate: [rows, H * d_head] what the gate multiplies the heads' results with, or None.
        branch: what it has become when it meets anything else of the layer.
        stream: the residual stream that it is added to, x or made of it.
        joined: their sum.
        passed: the stream as the next part of the layer (a feed-forward, an attention) finds it.
        layout: from a tensor like `leaf` to [rows, H * d_head].
        matrices: weights of projections that read the leaf directly, [out, in].
    """

    attention: Attention
    leaf: Tensor
    layout: Callable[[Tensor], Tensor]
    gate: Tensor | None = None
    branch: Tensor | None = None
    stream: Tensor | None = None
    joined: Tensor | None = None
    passed: Tensor | None = None
    matrices: list[Tensor] = field(default_factory=list)

    def turn(self) -> None:
        """Tokens before features, in a layer that has them behind."""
        for name in ("branch", "stream", "joined", "passed"):
            node = getattr(self, name)
            setattr(self, name, None if node is None else node.transpose(1, 2))
