"""Modules that are put under backward rules as a whole: activations, found by trying them, and
projections that are made of parts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..blocks import linear_weights
from .dispatch import FunctionRules


class Activated(nn.Module):
    """An activation that is a module, as one elementwise function whatever it is made of."""

    def __init__(self, inner: nn.Module, rules: FunctionRules) -> None:
        super().__init__()
        self.inner, self.rules = [inner], rules

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        (inner,) = self.inner
        if not (torch.is_grad_enabled() and x.requires_grad) or args or kwargs:
            return inner(x, *args, **kwargs)
        with torch._C.DisableTorchFunction():
            return self.rules.activated(inner, x, type(inner).__name__)  # as a module, at 0 it is 0


def put_activations(twin: nn.Module, rules: FunctionRules) -> None:
    """Make every activation module of a shadow follow the rules."""
    for module in list(twin.modules()):
        for name, child in list(module._modules.items()):
            if child is not None and is_elementwise(child):
                if hasattr(child, "inplace"):
                    vars(child)["inplace"] = False  # it would write over what it read
                module._modules[name] = Activated(child, rules)


def is_elementwise(module: nn.Module) -> bool:
    """Whether a module is a nonlinear function of single numbers: tried, not told by its name."""
    if list(module.children()) or sum(p.numel() for p in module.parameters()) > 8:
        return False
    if isinstance(module, nn.Embedding | nn.Dropout | nn.Identity):
        return False
    numbers = torch.linspace(-2.0, 3.0, 12).reshape(1, 3, 4)
    try:
        with torch._C.DisableTorchFunction(), torch.no_grad():
            whole = module.forward(numbers)
            if not isinstance(whole, Tensor) or whole.shape != numbers.shape:
                return False
            single = torch.stack([module.forward(x.reshape(1, 1, 1)) for x in numbers.flatten()])
            twice, turned = module.forward(2 * numbers), module.forward(-numbers)
            if single.numel() != whole.numel():
                return False
            same = torch.allclose(whole.flatten(), single.flatten(), rtol=1e-4, atol=1e-6)
            straight = torch.allclose(twice, 2 * whole, rtol=1e-3, atol=1e-6)
            linear = straight and torch.allclose(turned, -whole, rtol=1e-3, atol=1e-6)
    except Exception:  # a module nobody here has seen may want anything else
        return False
    return same and not linear


class Projected(nn.Module):
    """A projection with an adapter (LoRA), as the one linear map that its parts are together."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        with torch.no_grad():
            weight, bias = linear_weights(inner)
        self.map = [weight, bias]

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        weight, bias = self.map
        assert weight is not None
        return nn.functional.linear(x, weight, bias)


def put_projections(twin: nn.Module) -> None:
    """Make every projection of a shadow that is made of parts one map."""
    for module in list(twin.modules()):
        for name, child in list(module._modules.items()):
            if child is not None and _in_parts(child):
                module._modules[name] = Projected(child)


def _in_parts(module: nn.Module) -> bool:
    weight = getattr(module, "weight", None)
    matrix = isinstance(weight, Tensor) and weight.dim() == 2
    inside = [child for child in module.children() if any(True for _ in child.parameters())]
    widths = hasattr(module, "in_features") and hasattr(module, "out_features")
    return matrix and widths and bool(inside)
