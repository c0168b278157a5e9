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

from .functions import (
    ACTIVATIONS,
    BIASED,
    DIVISIONS,
    JOINS,
    LINEAR,
    NORMS,
    PRODUCTS,
    RAISED,
    SCALES,
    SUMS,
    named,
)
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
from .thread import Mode

Activation = Literal["slope", "gradient"]


def depends(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _all(values: Any) -> list[Tensor]:
    """The tensors among arguments, also inside of lists."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found.extend(_all(value))
    return found


class SlopeRules(Mode):
    """The rules, while a pass runs under this mode.

    Args:
        attention: whether softmax keeps its derivative (AttnLRP), or is a constant (CP-LRP),
            and then also the activation of a gate.
        activation: an activation by its slope, or by its true derivative.
    """

    def __init__(self, ledger: Ledger, attention: bool, activation: Activation = "slope") -> None:
        super().__init__()
        self.ledger, self.attention, self.activation = ledger, attention, activation

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if not torch.is_grad_enabled():
            return func(*args, **kwargs)
        given = _all((*args, *kwargs.values()))
        if not any(tensor.requires_grad for tensor in given):
            return func(*args, **kwargs)
        name, in_place, swapped = named(func)
        if in_place and name not in LINEAR:
            # A rule makes a new tensor; whoever holds the old one is to see it too.
            plain = getattr(torch.Tensor, name, None) or getattr(torch, name, None)
            if plain is None:
                return func(*args, **kwargs)
            return args[0].copy_(self._applied(plain, name, args, kwargs, given))
        if swapped:
            args = (args[1], args[0])
            func = getattr(torch, name.removeprefix("true"))
            args = tuple(a if isinstance(a, Tensor) else given[0].new_tensor(a) for a in args)
        return self._applied(func, name, args, kwargs, given)

    def _applied(self, func: Any, name: str, args: Any, kwargs: Any, given: list[Tensor]) -> Any:
        met = self.ledger.met
        if name in ACTIVATIONS:
            return self._elementwise(func, name, args, kwargs, given)
        if name in PRODUCTS:
            return self._product(func, name, args, kwargs, given)
        if name in SCALES:
            met["norm"][name] += 1
            return func(*args, **kwargs).detach()
        if name in NORMS:
            met["norm"][name] += 1
            return self._norm(func, name, args, kwargs)
        if name in ("softmax", "_softmax", "log_softmax"):
            met["softmax"][name] += 1
            return self._softmax(func, args, kwargs)
        if name in DIVISIONS:
            return self._division(func, args, kwargs)
        if name in BIASED:
            return self._biased(func, name, args, kwargs, given)
        if name in SUMS:
            return self._sum(func, name, args, kwargs)
        if name in ("var_mean", "std_mean"):
            met["norm"][name] += 1
            scale, mean = func(*args, **kwargs)
            return scale.detach(), mean
        if name == "scaled_dot_product_attention":
            return self._attend(*args, **kwargs)
        if name == "baddbmm":
            return self._added_product(*args, *_pairs(kwargs), **kwargs)
        if name == "addcmul":
            product = self._product(torch.mul, "mul", args[1:3], {}, _all(args[1:3]))
            return self._sum(torch.add, "add", (args[0], product * kwargs.get("value", 1)), {})
        if name == "solve_triangular":  # the matrix is what the text is divided by
            met["norm"][name] += 1
            return func(args[0].detach(), *args[1:], **kwargs)
        if name == "glu":
            first, gate = args[0].chunk(2, (*args[1:], *kwargs.values(), -1)[0])
            gate = self._elementwise(torch.sigmoid, "sigmoid", (gate,), {}, [gate])
            return self._product(torch.mul, "mul", (first, gate), {}, [first, gate])
        if name in LINEAR:
            return func(*args, **kwargs)
        return self._unmet(func, name, args, kwargs)

    def _elementwise(self, func: Any, name: str, args: Any, kwargs: Any, given: Any) -> Any:
        power = kwargs.get("exponent", args[1] if len(args) > 1 else 1) if "pow" in name else 1
        if isinstance(power, int | float) and power < 1:  # a norm's scale, written out
            self.ledger.met["norm"][name] += 1
            return func(*args, **kwargs).detach()
        if sum(map(depends, given)) > 1 or not depends(args[0]):
            return self._unmet(func, name, args, kwargs)
        kwargs = {key: value for key, value in kwargs.items() if key != "inplace"}
        return self.activated(lambda x: func(x, *args[1:], **kwargs), args[0], name)

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
                return self._added_product(*args, *_pairs(kwargs), **kwargs)
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
        constants = [a for a in _all(values) if not a.requires_grad and a.is_floating_point()]
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

    def _attend(
        self, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
        dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:  # fmt: skip
        """Attention in one call, as the operations it is made of."""
        with self:
            if enable_gqa:
                groups = query.shape[-3] // key.shape[-3]
                key, value = (t.repeat_interleave(groups, dim=-3) for t in (key, value))
            scale = query.shape[-1] ** -0.5 if scale is None else scale
            scores = torch.matmul(query, key.transpose(-1, -2)) * scale
            if is_causal:
                attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril().to(scores.device)
            if attn_mask is not None and attn_mask.dtype == torch.bool:
                scores = scores.masked_fill(~attn_mask, torch.finfo(scores.dtype).min)
            elif attn_mask is not None:
                scores = scores + attn_mask
            return torch.matmul(scores.softmax(-1), value)

    def _added_product(
        self, input: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1
    ) -> Tensor:
        """input * beta + (a @ b) * alpha."""
        with self:
            return input * beta + torch.matmul(a, b) * alpha

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
        for result in _all([made]):
            if result.requires_grad:
                self.ledger.met["unmet"][name] += 1
                value = result.detach()
                result.register_hook(
                    lambda g, value=value: self.ledger.keep(name, product_sum(g, value))
                )
        return made


def _pairs(kwargs: dict[str, Any]) -> list[Tensor]:
    """The operands of an added product that were given by name, taken out."""
    return [kwargs.pop(k) for k in ("input", "mat1", "mat2", "batch1", "batch2") if k in kwargs]


def _without(values: Any) -> Any:
    """Arguments with zeros where something depends on the text."""
    return type(values)(
        torch.zeros_like(v) if depends(v) else _without(v) if type(v) in (list, tuple) else v
        for v in values
    )


def _without_named(values: dict[str, Any]) -> dict[str, Any]:
    return dict(zip(values, _without(list(values.values())), strict=True))
