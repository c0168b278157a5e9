"""Attribution by a changed gradient: the rules of AttnLRP and CP-LRP.

On a shadow the pass runs as ever, with the model's own numbers; what changes is what each
operation hands down. Norms divide by constants, an activation is its value over its argument
times that argument, of a product of two parts of the text each gets half, and a softmax keeps
its true derivative (AttnLRP) or is a constant (CP-LRP). Then a gradient times its input is a
share of the prediction, and what does not reach the inputs is counted where it stays: at the
constants that were added, and in the softmaxes.

The rules stand where torch functions are called, so no family needs a table. A function that is
neither linear nor has a rule keeps its derivative, and what it keeps is counted under its name.

Achtibat et al. 2024 (AttnLRP); Ali et al. 2022 (CP-LRP).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from .dispatch import FunctionRules, added, depends, tensors_of
from .functions import BIASED, JOINS, RAISED
from .ledger import (
    FrozenNorm,
    Ledger,
    Slope,
    Softmax,
    by_constants,
    origin_kept,
    product_sum,
    unbounded,
)

Activation = Literal["slope", "gradient"]


class SlopeRules(FunctionRules):
    """The rules, while a pass runs under this mode.

    Args:
        attention: whether softmax keeps its derivative (AttnLRP), or is a constant (CP-LRP),
            and then also the activation of a gate.
        activation: an activation by its slope, or by its true derivative.
    """

    def __init__(self, ledger: Ledger, attention: bool, activation: Activation = "slope") -> None:
        super().__init__(ledger)
        self.attention, self.activation = attention, activation

    def activated(self, function: Callable[[Tensor], Tensor], x: Tensor, name: str) -> Tensor:
        """An elementwise function of the text."""
        if name not in ("pow", "square"):  # most often a norm that is written out
            self.ledger.met["activation"][name] += 1
        if self.activation == "gradient":
            made = self._metered(function, x, "activations")
        else:
            origin = 0.0
            if name in RAISED:
                with torch.no_grad():
                    origin = float(function(x.new_zeros((1,) * x.dim())))
            made = Slope.apply(x, function, origin)
            if origin:
                value = made.detach()
                rest = torch.where(torch.isinf(x.detach()), value, origin) if unbounded(x) else None
                made.register_hook(
                    lambda g: self.ledger.keep("biases", origin_kept(g, origin, rest))
                )
        made.gate = True  # type: ignore[attr-defined]
        return made

    def _metered(self, function: Callable[[Tensor], Tensor], x: Tensor, kind: str) -> Tensor:
        """A function with its true derivative, counting what it keeps."""
        x = x.view_as(x)
        x.register_hook(lambda g: self.ledger.keep(kind, -product_sum(g, x.detach())))
        y = function(x)
        value = y.detach()
        y.register_hook(lambda g: self.ledger.keep(kind, product_sum(g, value)))
        return y

    def _product(self, func: Any, name: str, args: Any, kwargs: Any, given: Any) -> Any:
        factors = sum(map(depends, given))
        if factors < 2:
            return func(*args, **kwargs)
        self.ledger.met["product"][name] += 1
        gates = [a for a in args if getattr(a, "gate", False)]
        if not self.attention and len(gates) == 1 and factors == 2:
            return func(*(a.detach() if a is gates[0] else a for a in args), **kwargs)
        made = func(*args, **kwargs)
        made.register_hook(lambda g: g / factors)
        return made

    def _division(self, func: Any, args: Any, kwargs: Any) -> Any:
        over, under, *rest = args
        if depends(under):
            self.ledger.met["norm"]["div"] += 1
            under = under.detach()
        return func(over, under, *rest, **kwargs)

    def _norm(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        names = {
            "layer_norm": ("input", "normalized_shape", "weight", "bias", "eps"),
            "rms_norm": ("input", "normalized_shape", "weight", "eps"),
            "group_norm": ("input", "num_groups", "weight", "bias", "eps"),
            "normalize": ("input", "p", "dim", "eps"),
        }[name]
        at = {**dict(zip(names, args, strict=False)), **kwargs}
        x, bias = at["input"], at.get("bias")
        if name == "group_norm":
            return self._grouped(x, at)
        if name == "normalize":

            def normed(x: Tensor) -> Any:
                size = x.norm(at.get("p", 2.0), at.get("dim", 1), keepdim=True)
                return func(*args, **kwargs), 1 / size.clamp_min(at.get("eps", 1e-12))

            return FrozenNorm.apply(x, normed, 0)
        made = FrozenNorm.apply(x, *by_constants(name, at))
        if bias is not None:
            self._constant(made, bias)
        return made

    def _grouped(self, x: Tensor, at: dict[str, Any]) -> Tensor:
        """A group norm: a LayerNorm over parts of the channels, times each channel's weight."""
        groups = x.reshape(x.shape[0], at["num_groups"], -1)
        arguments = (groups, (groups.shape[-1],), None, None, at.get("eps", 1e-5))
        normed = self._norm(nn.functional.layer_norm, "layer_norm", arguments, {}).view_as(x)
        column = (1, -1, *[1] * (x.dim() - 2))
        weight, bias = at.get("weight"), at.get("bias")
        normed = normed if weight is None else normed * weight.reshape(column)
        if bias is None:
            return normed
        return self._sum(torch.add, "add", (normed, bias.reshape(column)), {})

    def _softmax(self, func: Any, args: Any, kwargs: Any) -> Any:
        if not self.attention:
            return func(*args, **kwargs).detach()
        if "log_softmax" in getattr(func, "__name__", ""):
            return self._metered(lambda x: func(x, *args[1:], **kwargs), args[0], "softmax")
        dim = kwargs.get("dim", args[1] if len(args) > 1 else -1)
        return Softmax.apply(args[0], lambda x: func(x, *args[1:], **kwargs), dim, self.ledger)

    def _biased(self, func: Any, name: str, args: Any, kwargs: Any, given: Any) -> Any:
        where, place = BIASED[name]
        constant = args[place] if len(args) > place else kwargs.get(where)
        if sum(map(depends, given)) > 1:
            if name == "addmm":
                return self._added_product(*args, *added(kwargs), **kwargs)
            return self._unmet(func, name, args, kwargs)
        made = func(*args, **kwargs)
        if constant is not None and not depends(constant):
            if name.startswith("conv"):  # a number for each channel
                constant = constant.reshape(-1, *[1] * (made.dim() - 2))
            self._constant(made, constant * kwargs.get("beta", 1))
        return made

    def _sum(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        made = func(*args, **kwargs)
        values = (*args, *kwargs.values())
        constants = [a for a in tensors_of(values) if not a.requires_grad and a.is_floating_point()]
        numbers = any(isinstance(a, float | int) and a and not isinstance(a, bool) for a in args)
        if name == "add" and len(constants) == 1 and not kwargs:
            self._constant(made, constants[0])
        elif constants or (numbers and name not in JOINS):
            with torch.no_grad():
                self._constant(made, func(*_without(args), **_without_named(kwargs)))
        return made

    def _constant(self, made: Tensor, constant: Tensor, kind: str = "biases") -> None:
        """Count what a constant that was added to `made` keeps for itself."""
        constant = constant.detach()

        def count(g: Tensor) -> None:
            self.ledger.keep(kind, product_sum(g.sum_to_size(constant.shape), constant))

        if constant.shape != made.shape and constant.dim() < made.dim():
            constant = constant.reshape((1,) * (made.dim() - constant.dim()) + constant.shape)
        made.register_hook(count)

    def _unmet(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        """A function without a rule: its derivative, and what it keeps under its name."""

        def watched(value: Any) -> Any:
            if depends(value):
                own = value.view_as(value)
                own.register_hook(lambda g: self.ledger.keep(name, -product_sum(g, own.detach())))
                return own
            if type(value) in (list, tuple):
                return type(value)(map(watched, value))
            return value

        made = func(*map(watched, args), **{k: watched(v) for k, v in kwargs.items()})
        for result in tensors_of([made]):
            if result.requires_grad:
                self.ledger.met["unmet"][name] += 1
                value = result.detach()
                result.register_hook(
                    lambda g, value=value: self.ledger.keep(name, product_sum(g, value))
                )
        return made


def _without(values: Any) -> Any:
    """Arguments with zeros where something depends on the text."""
    return type(values)(
        torch.zeros_like(v) if depends(v) else _without(v) if type(v) in (list, tuple) else v
        for v in values
    )


def _without_named(values: dict[str, Any]) -> dict[str, Any]:
    return dict(zip(values, _without(list(values.values())), strict=True))
