"""What a linear node of a graph makes of a leaf: its Jacobian from left and from right."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .nodes import Nodes


def in_digits(tensor: Tensor) -> Tensor:
    tensor = tensor.detach()
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()


def gradient(node: Tensor, leaf: Tensor, seeds: Tensor, **options: Any) -> Tensor | None:
    if not node.requires_grad:
        return None
    if node is leaf:
        return seeds
    found: Tensor | None = torch.autograd.grad(
        node, leaf, seeds, retain_graph=True, allow_unused=True, **options
    )[0]
    return found


def pushed_by(node: Tensor, stream: Tensor) -> Tensor:
    """What a linear node makes of the stream alone: R x, by differentiating its gradient."""
    seeds = torch.zeros_like(node).requires_grad_()
    slopes = gradient(node, stream, seeds, create_graph=True)
    width = node.shape[-1]
    if slopes is None or not slopes.requires_grad:
        return in_digits(torch.zeros_like(node)).reshape(-1, width)
    made = torch.autograd.grad(slopes, seeds, stream.detach(), allow_unused=True)[0]
    return in_digits(torch.zeros_like(node) if made is None else made).reshape(-1, width)


class Pushed:
    """What a linear node of the graph makes of the heads' results: its Jacobian from right, by
    differentiating its gradient. For layers in which every token has a map of its own."""

    def __init__(self, node: Tensor, nodes: Nodes, heads: int) -> None:
        with torch.inference_mode(False), torch.enable_grad():
            self.seeds = torch.zeros_like(node).requires_grad_()
            self.slopes = gradient(node, nodes.leaf, self.seeds, create_graph=True)
            like = nodes.leaf.detach()
            places = torch.arange(like.numel(), device=like.device).reshape(like.shape)
            # Where each number of the heads' joined results stands in the leaf.
            self.places = nodes.layout(places.to(torch.float64)).long().flatten()
        self.leaf, self.width = like, node.shape[-1]

    def __call__(self, brought: Tensor) -> Tensor:
        """[chunk, rows, H * d_head] -> [chunk, rows, d]"""
        made = []
        with torch.inference_mode(False), torch.enable_grad():
            for one in brought:
                given = torch.empty_like(self.leaf).flatten()
                given[self.places] = one.flatten().to(given)
                assert self.slopes is not None  # `_taken_apart` has asked
                (found,) = torch.autograd.grad(
                    self.slopes, self.seeds, given.reshape(self.leaf.shape), retain_graph=True
                )
                made.append(in_digits(found).reshape(-1, self.width))
        return torch.stack(made)
