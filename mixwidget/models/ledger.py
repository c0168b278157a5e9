"""What stays on the way from a prediction to its inputs, and the functions that count it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


class Ledger:
    """What stays on the way from the prediction to the inputs, and which rules were met.

    Attributes:
        kept: by kind: "biases", "softmax", or the name of a function without a rule.
        met: how often each rule was used, by its kind and the function it was used for.
    """

    def __init__(self) -> None:
        self.kept: dict[str, Tensor | float] = defaultdict(float)
        self.met: dict[str, Counter[str]] = defaultdict(Counter)

    def keep(self, kind: str, amount: Tensor) -> None:
        self.kept[kind] = self.kept[kind] + amount

    def clear(self) -> None:
        self.kept.clear()
        self.met.clear()

    def total(self, kind: str) -> float:
        return float(self.kept[kind])


def product_sum(a: Tensor, b: Tensor) -> Tensor:
    """The sum of a * b, wide; nothing where one of them is nothing (a masked score is -inf)."""
    return torch.where((a == 0) | (b == 0), 0.0, a.double() * b.double()).sum()


class Slope(torch.autograd.Function):
    """y(x) as x times the constant (y - y at 0) / x; at x = 0 it has no slope, and no share."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, function: Callable[[Tensor], Tensor], origin: float) -> Tensor:
        y = function(x)
        if origin:
            slope = torch.where((x == 0) | torch.isinf(x), 0.0, (y - origin) / x)
        else:
            slope = torch.where(x == 0, 0.0, y / x)
        ctx.save_for_backward(slope)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (slope,) = ctx.saved_tensors
        return (grads[0] * slope).to(slope.dtype), None, None


class FrozenNorm(torch.autograd.Function):
    """A norm whose scale is a constant: centred over some dimensions (a LayerNorm), scaled."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, function: Callable[[Tensor], Any], centred: int) -> Tensor:
        y, *scales = function(x)
        ctx.save_for_backward(*scales)
        ctx.dims = tuple(range(-centred, 0))
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        given = grads[0]
        for scale in ctx.saved_tensors:
            given = given * scale
        given = given.to(grads[0].dtype)
        return given - given.mean(ctx.dims, keepdim=True) if ctx.dims else given, None, None


class Softmax(torch.autograd.Function):
    """The true derivative of a softmax, counting what it keeps."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, function: Callable[[Tensor], Tensor], dim: int, ledger: Ledger
    ) -> Tensor:
        y = function(x)
        ctx.save_for_backward(x, y)
        ctx.dim, ctx.ledger = dim, ledger
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        x, y = ctx.saved_tensors
        passed = y * grads[0]
        whole = passed.sum(ctx.dim, keepdim=True)
        given = passed - y * whole
        # A masked score is -inf or the lowest number there is, where the softmax is exactly 0.
        reached = torch.where(y == 0, 0.0, x * given)
        ctx.ledger.keep(
            "softmax", whole.sum(dtype=torch.float64) - reached.sum(dtype=torch.float64)
        )
        return given.to(x.dtype), None, None, None


def unbounded(x: Tensor) -> bool:
    """Whether a place is masked by minus infinity, where a slope has no meaning."""
    return bool(torch.isinf(x.detach()).any())


def origin_kept(g: Tensor, origin: float, rest: Tensor | None) -> Tensor:
    """What an activation keeps: its value at 0, and all of it where its argument is infinite."""
    return origin * g.double().sum() if rest is None else product_sum(g, rest)


def by_constants(name: str, at: dict[str, Any]) -> tuple[Callable[[Tensor], Any], int]:
    """(what gives a norm's value and the constants that it scales by, dimensions it centres)."""
    shape, weight, eps = at["normalized_shape"], at.get("weight"), at.get("eps")
    extra = [] if weight is None else [weight.detach()]

    def layer(x: Tensor) -> Any:
        y, _, scale = torch.native_layer_norm(
            x, list(shape), weight, at.get("bias"), 1e-5 if eps is None else eps
        )
        return y, scale, *extra

    def root(x: Tensor) -> Any:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        power = wide.square().mean(tuple(range(-len(shape), 0)), keepdim=True)
        floor = torch.finfo(x.dtype).eps if eps is None else eps
        return nn.functional.rms_norm(x, list(shape), weight, eps), (power + floor).rsqrt(), *extra

    return (layer, len(shape)) if name == "layer_norm" else (root, 0)
