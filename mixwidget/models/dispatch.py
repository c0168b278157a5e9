"""Backward rules by torch function: which rule a call is given to, whatever the rule set.

While a shadow runs under such a mode, its numbers stay the model's own; what changes is what each
operation hands down on the way back. Rules stand where torch functions are called, so no family
needs a table: AttnLRP and CP-LRP (`slopes.py`) and the relevance rules (`shares.py`) are two sets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .functions import (
    ACTIVATIONS,
    BIASED,
    DIVISIONS,
    LINEAR,
    NORMS,
    PRODUCTS,
    SCALES,
    SUMS,
    named,
)
from .ledger import Ledger
from .thread import Mode


def depends(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def tensors_of(values: Any) -> list[Tensor]:
    """The tensors among arguments, also inside of lists."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found.extend(tensors_of(value))
    return found


class FunctionRules(Mode):
    """A set of rules, while a pass runs under this mode. Handlers are methods."""

    # Functions that hand down what they are given, changed in place or not.
    plain = frozenset(LINEAR)

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self.ledger = ledger

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if not torch.is_grad_enabled():
            return func(*args, **kwargs)
        given = tensors_of((*args, *kwargs.values()))
        if not any(tensor.requires_grad for tensor in given):
            return func(*args, **kwargs)
        name, in_place, swapped = named(func)
        if in_place and name not in self.plain:
            # A rule makes a new tensor; whoever holds the old one is to see it too.
            plain = getattr(torch.Tensor, name, None) or getattr(torch, name, None)
            if plain is None:
                return func(*args, **kwargs)
            before = self.kept(args[0])
            return args[0].copy_(self._applied(plain, name, (before, *args[1:]), kwargs, given))
        if swapped:
            args = (args[1], args[0])
            func = getattr(torch, name.removeprefix("true"))
            args = tuple(a if isinstance(a, Tensor) else given[0].new_tensor(a) for a in args)
        return self._applied(func, name, args, kwargs, given)

    def kept(self, tensor: Tensor) -> Tensor:
        """A tensor that is about to be written into, as a rule may keep it."""
        return tensor

    def activated(self, function: Callable[[Tensor], Tensor], x: Tensor, name: str) -> Tensor:
        """An elementwise function of the text."""
        raise NotImplementedError

    def _product(self, func: Any, name: str, args: Any, kwargs: Any, given: Any) -> Any:
        raise NotImplementedError

    def _division(self, func: Any, args: Any, kwargs: Any) -> Any:
        raise NotImplementedError

    def _norm(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        raise NotImplementedError

    def _softmax(self, func: Any, args: Any, kwargs: Any) -> Any:
        raise NotImplementedError

    def _biased(self, func: Any, name: str, args: Any, kwargs: Any, given: Any) -> Any:
        raise NotImplementedError

    def _sum(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        raise NotImplementedError

    def _unmet(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        raise NotImplementedError

    def _linear(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        """A function that hands down what it is given."""
        return func(*args, **kwargs)

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
            return self._added_product(*args, *added(kwargs), **kwargs)
        if name == "addcmul":
            product = self._product(torch.mul, "mul", args[1:3], {}, tensors_of(args[1:3]))
            with self:
                product = product * kwargs.get("value", 1)
            return self._sum(torch.add, "add", (args[0], product), {})
        if name == "solve_triangular":  # the matrix is what the text is divided by
            met["norm"][name] += 1
            return func(args[0].detach(), *args[1:], **kwargs)
        if name == "glu":
            first, gate = args[0].chunk(2, (*args[1:], *kwargs.values(), -1)[0])
            gate = self._elementwise(torch.sigmoid, "sigmoid", (gate,), {}, [gate])
            return self._product(torch.mul, "mul", (first, gate), {}, [first, gate])
        if name in LINEAR:
            return self._linear(func, name, args, kwargs)
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


def added(kwargs: dict[str, Any]) -> list[Tensor]:
    """The operands of an added product that were given by name, taken out."""
    return [kwargs.pop(k) for k in ("input", "mat1", "mat2", "batch1", "batch2") if k in kwargs]
