"""Relevance rules by torch function: a pass whose way back carries relevance, not gradients.

The pass runs in float64 on a shadow that keeps its weights as they are: what a function is given
in fewer digits is widened for the call. Relevance divides by sums that nearly cancel, and what
float32 leaves of them is off by percents.

Linear maps, sums and products share what they are given by the rules of `rules.py`; norms,
activations, softmax, scaling and constants that are added pass it on unchanged; a change of shape
or a choice hands it to what was taken. A function without a rule is refused as soon as relevance
comes to it.

Chefer et al.: Transformer Interpretability Beyond Attention Visualization (2021).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import UnsupportedMethodError
from .dispatch import FunctionRules, added, depends, tensors_of
from .functions import BIASED, JOINS, LINEAR
from .handing import Add, Half, Linear, Mapped, Operation, Pass, Product, Proportion
from .ledger import Ledger

# Sums of a tensor's own numbers.
_TOTALS = frozenset({"mean", "sum", "cumsum", "scatter_add", "index_add", "avg_pool1d", "diff"})
_EXTREMES = frozenset({"max", "min", "amax", "amin"})
_NARROW = (torch.float32, torch.float16, torch.bfloat16)
_CASTS = frozenset({"float", "half", "bfloat16"})
_OWN_WIDTH = frozenset({"linear", "addmm"})  # they widen their weights themselves


class ShareRules(FunctionRules):
    """The rules, while a pass runs under this mode.

    Attributes:
        passed: while it is set, what products multiply their second operand's share with.
    """

    plain = frozenset(LINEAR) - _TOTALS

    def __init__(self) -> None:
        super().__init__(Ledger())
        self.passed: Operation | None = None

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "embedding":
            return _wide(func(*args, **kwargs))
        given = tensors_of((*args, *kwargs.values()))
        if any(tensor.dtype == torch.float64 for tensor in given):
            if name in _CASTS and args[0].dtype == torch.float64:
                return args[0]
            written = name == "__setitem__" or (name[-1:] == "_" and name[-2:] != "__")
            ruled = torch.is_grad_enabled() and any(map(depends, given))
            follows = name in _OWN_WIDTH and ruled
            if not written:
                args = _widened(args, not follows)
                kwargs = dict(
                    zip(kwargs, _widened(list(kwargs.values()), not follows), strict=True)
                )
        return super().__torch_function__(func, types, args, kwargs)

    def kept(self, tensor: Tensor) -> Tensor:
        return tensor.clone()

    def activated(self, function: Callable[[Tensor], Tensor], x: Tensor, name: str) -> Tensor:
        """An elementwise function of the text."""
        self.ledger.met["activation"][name] += 1
        return self._passing(x, lambda: function(x))

    def _passing(self, x: Tensor, function: Callable[[], Tensor]) -> Tensor:
        """What a function makes of x, which all relevance passes on to."""
        with torch.no_grad():
            made = function()
        if made.numel() == x.numel() and made.shape != x.shape:
            x = x.reshape(made.shape)
        return Pass.apply(x if made.shape == x.shape else x.expand(made.shape), made)

    def _product(self, func: Any, name: str, args: Any, kwargs: Any, given: Any) -> Any:
        if name in ("mul", "multiply"):
            return self._scaled(func, args, kwargs)
        if name == "einsum":
            equation, *operands = args
            if len(operands) == 1 and isinstance(operands[0], list | tuple):
                operands = list(operands[0])
            operation: Any = lambda *two: func(equation, *two)  # noqa: E731
        else:
            operands = [*args, *kwargs.values()]
            operation = func
        if len(operands) != 2 or name == "bilinear":
            return self._unmet(func, name, args, kwargs)
        a, b = operands
        if depends(a) and depends(b):
            self.ledger.met["product"][name] += 1
            return Product.apply(a, b, operation, self.passed)
        x, constant = (a, b) if depends(a) else (b, a)
        if not is_weight(constant):  # keys of positions: they take no share of the product
            self.ledger.met["product"][name] += 1
            of_text = lambda x: operation(*((x, b) if depends(a) else (a, x)))  # noqa: E731
            return Proportion.apply(x, of_text, None)
        self.ledger.met["linear"][name] += 1
        if depends(b):
            return Mapped.apply(b, a, lambda x, constant: operation(constant, x))
        if name in ("matmul", "mm") and b.dim() == 2:
            return Linear.apply(a, b.mT, None)
        return Mapped.apply(a, b, operation)

    def _scaled(self, func: Any, args: Any, kwargs: Any) -> Any:
        a, b = (*args, *kwargs.values())[:2]
        if not (depends(a) and depends(b)):
            if depends(a) and a.is_complex() and isinstance(b, Tensor):
                return self._turned(a, b)
            x = a if depends(a) else b
            return self._passing(x, lambda: func(a, b))
        self.ledger.met["product"]["mul"] += 1
        with torch.no_grad():
            made = func(a, b)
        return Half.apply(*torch.broadcast_tensors(a, b), made)

    def _turned(self, x: Tensor, by: Tensor) -> Tensor:
        """Pairs of numbers turned by angles, written as complex numbers: as the sum of two that
        rotary positions are where they are not."""
        with self:
            pairs = torch.view_as_real(x)
            crossed = torch.stack([-pairs[..., 1], pairs[..., 0]], -1)
            by = by if by.is_complex() else by.to(x.dtype)
            cosine, sine = by.real.unsqueeze(-1), by.imag.unsqueeze(-1)
            return torch.view_as_complex(pairs * cosine + crossed * sine)

    def _division(self, func: Any, args: Any, kwargs: Any) -> Any:
        over, under, *rest = args
        if depends(under):
            self.ledger.met["norm"]["div"] += 1
            under = under.detach()
        if not depends(over):
            return func(over, under, *rest, **kwargs)
        return self._passing(over, lambda: func(over, under, *rest, **kwargs))

    def _norm(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        x = args[0] if args else kwargs["input"]
        return self._passing(x, lambda: func(*args, **kwargs))

    def _softmax(self, func: Any, args: Any, kwargs: Any) -> Any:
        x = args[0] if args else kwargs["input"]
        return self._passing(x, lambda: func(*args, **kwargs))

    def _biased(self, func: Any, name: str, args: Any, kwargs: Any, given: Any) -> Any:
        where, place = BIASED[name]
        constant = args[place] if len(args) > place else kwargs.get(where)
        if name == "addmm":
            return self._addmm(args, kwargs)
        operands = [a for a in given if a is not constant]
        if depends(constant) or len(operands) != 2 or not depends(operands[0]):
            return self._unmet(func, name, args, kwargs)
        x, weight = operands
        self.ledger.met["linear"][name] += 1
        if name == "linear" and not depends(weight):
            return Linear.apply(x, weight, constant)
        rest = {k: v for k, v in kwargs.items() if k not in ("input", "weight", where)}
        if depends(weight):
            return self._unmet(func, name, args, kwargs)
        made = Mapped.apply(x, weight, lambda x, w: func(x, w, None, *args[3:], **rest))
        if constant is None:
            return made
        column = constant.reshape(-1, *[1] * (made.dim() - 2))  # a number for each channel
        return Pass.apply(made, made.detach() + column)

    def _addmm(self, args: Any, kwargs: Any) -> Any:
        constant, a, b = [*args, *added(dict(kwargs))][:3]
        scales = {k: kwargs[k] for k in ("alpha", "beta") if k in kwargs}
        if depends(constant) or depends(b) or scales:
            return self._added_product(constant, a, b, **scales)
        self.ledger.met["linear"]["addmm"] += 1
        return Linear.apply(a, b.T, constant)

    def _sum(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        if name in JOINS or name in ("where", "masked_fill"):
            return func(*args, **kwargs)
        operands = [*args, *(kwargs[k] for k in ("other", "end") if k in kwargs)]
        if name not in ("add", "sub", "subtract", "rsub") or len(operands) != 2:
            return self._unmet(func, name, args, kwargs)
        a, b = operands
        if name == "rsub":
            a, b, func, name = b, a, torch.sub, "sub"
        args, kwargs = (a, b), {k: v for k, v in kwargs.items() if k == "alpha"}
        scale = kwargs.get("alpha", 1)
        one, other = (depends(x) and not getattr(x, "statistic", False) for x in (a, b))
        if not (one and other):
            if not (one or other):  # both are statistics
                return func(*args, **kwargs).detach()
            return self._passing(a if one else b, lambda: func(*args, **kwargs))
        self.ledger.met["sum"][name] += 1
        with self:
            b = b if scale == 1 else b * scale
            b = b if name == "add" else -b
        return Add.apply(*torch.broadcast_tensors(a, b))

    def _linear(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        if name in _TOTALS:
            return self._total(func, name, args, kwargs)
        if name in ("neg", "negative"):
            return self._passing(args[0], lambda: func(*args, **kwargs))
        made = func(*args, **kwargs)
        if name in _EXTREMES and kwargs.get("keepdim", len(args) > 2):
            _mark(made)
        return made

    def _total(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        x = args[0]
        self.ledger.met["sum"][name] += 1
        if name in ("index_add", "scatter_add"):
            return self._gathered(func, name, args, kwargs)
        if name == "diff" or any(depends(t) for t in tensors_of((*args[1:], *kwargs.values()))):
            return self._unmet(func, name, args, kwargs)
        dims = kwargs.get("dim", args[1] if len(args) > 1 else None)
        axes: tuple[int, ...] | None = None
        if name in ("sum", "mean") and dims is not None:
            some = dims if isinstance(dims, list | tuple) else [dims]
            axes = tuple(d % x.dim() for d in some)
            axes = None if x.dim() - 1 in axes else axes
        made = Proportion.apply(x, lambda x: func(x, *args[1:], **kwargs), axes)
        statistic = name == "mean" and kwargs.get("keepdim", len(args) > 2)
        return _mark(made) if statistic else made

    def _gathered(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        """Parts added into places of a tensor."""
        into, dim, index, parts = [*args, *kwargs.values()][:4]
        if kwargs.get("alpha", 1) != 1 or not isinstance(parts, Tensor):
            return self._unmet(func, name, args, kwargs)
        empty = torch.zeros_like(into)
        plain = getattr(torch, name)
        placed = parts
        if depends(parts):
            placed = Proportion.apply(parts, lambda x: plain(empty, dim, index, x), None)
        else:
            placed = plain(empty, dim, index, parts)
        return self._sum(torch.add, "add", (into, placed), {})

    def _unmet(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        """A function without a rule: refused where relevance comes to it."""
        made = func(*args, **kwargs)

        def refuse(relevance: Tensor) -> None:
            if bool(relevance.any()):
                raise UnsupportedMethodError(
                    f"Relevance rules are not defined here for {name!r}, a function that this "
                    "model computes its prediction by. attn_lrp, gae and attcat answer the same "
                    "question for every model."
                )

        for result in tensors_of([made]):
            if result.requires_grad:
                self.ledger.met["unmet"][name] += 1
                result.register_hook(refuse)
        return made


def _mark(made: Any) -> Any:
    """A norm's or a softmax's own statistic: what is subtracted for it passes nothing on."""
    values = made if isinstance(made, Tensor) else made[0]
    vars(values)["statistic"] = True
    return made


def is_weight(tensor: Tensor) -> bool:
    """Whether a tensor is a part of the model, or a view of one, or one of these widened."""
    told = vars(tensor).get("weight", False)
    return bool(told) or any(isinstance(t, nn.Parameter) for t in (tensor, tensor._base))


def _wide(value: Any) -> Any:
    if not isinstance(value, Tensor) or value.dtype not in _NARROW:
        return value
    made = value.double()
    if is_weight(value):
        vars(made)["weight"] = True
    return made


def _widened(values: Any, tensors: bool) -> Any:
    """Arguments in float64, names of types too."""
    return type(values)(
        torch.float64 if isinstance(v, torch.dtype) and v in _NARROW
        else _widened(v, tensors) if type(v) in (list, tuple)
        else _wide(v) if tensors and isinstance(v, Tensor)
        else v
        for v in values
    )  # fmt: skip
