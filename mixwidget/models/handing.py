"""Operations that hand down relevance: forward as ever, backward by the rules of `rules.py`.

What autograd carries through them is no gradient but the relevance of what they put out, and what
they return is that of what they read. Where a value goes to several places, autograd adds up.
Values that are kept are never those that a model may write into: what is put out is a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from . import rules

Operation = Callable[..., Tensor]

# Of a table of so many times more rows than columns (a vocabulary's), only rows that hold relevance
# are widened.
_TABLE = 8
_ROWS = 8192
# Operands of more numbers are multiplied one leading index (a head) at a time.
_AT_ONCE = 2**21


class Pass(torch.autograd.Function):
    """y, whatever was made of x: relevance passes unchanged."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        return y.clone()

    @staticmethod
    def backward(ctx: Any, *given: Any) -> Any:
        return given[0], None


class Half(torch.autograd.Function):
    """y = a b, number by number: half of the relevance each."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, y: Tensor) -> Tensor:
        return y.clone()

    @staticmethod
    def backward(ctx: Any, *given: Any) -> Any:
        half = given[0] / 2
        return half, half, None


class Add(torch.autograd.Function):
    """y = a + b of one shape."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        return a + b

    @staticmethod
    def backward(ctx: Any, *given: Any) -> Any:
        a, b = ctx.saved_tensors
        (relevance,) = given
        shape = (-1, a.shape[-1]) if a.dim() else (1, 1)
        parts = rules.add(a.reshape(shape), b.reshape(shape), relevance.reshape(shape))
        return tuple(part.reshape(a.shape) for part in parts)


class Linear(torch.autograd.Function):
    """y = x W^T + b, W [out, in] in whatever digits."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        table = weight.shape[0] > _TABLE * weight.shape[1]
        made = looked_up(x, weight) if table else x @ weight.to(x.dtype).T
        ctx.save_for_backward(x, weight, *([] if table else [made]))
        return made.clone() if bias is None else made + bias

    @staticmethod
    def backward(ctx: Any, *given: Any) -> Any:
        x, weight, *made = ctx.saved_tensors
        read, relevance = x.reshape(-1, x.shape[-1]), given[0].reshape(-1, weight.shape[0])
        if made:
            product = made[0].reshape(relevance.shape)
            passed = rules.linear(read, weight, relevance, product)
        else:
            held = relevance.abs().sum(0).nonzero().flatten()
            rows = weight[held.to(weight.device)].to(x)
            passed = rules.linear(read, rows, relevance[:, held])
        return passed.reshape(x.shape), None, None


def looked_up(x: Tensor, weight: Tensor) -> Tensor:
    """x W^T with a weight that is not widened as a whole; in half precision a part at a time."""
    if weight.dtype in (torch.float32, torch.float64):
        return torch.nn.functional.linear(x.to(weight.dtype), weight).to(x.dtype)
    narrow = x.float()
    return torch.cat([narrow @ rows.float().T for rows in weight.split(_ROWS)], -1).to(x.dtype)


class Mapped(torch.autograd.Function):
    """y = f(x, C), any operation that is linear in x and in the constant C: the same rule."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, constant: Tensor, operation: Operation) -> Tensor:
        ctx.save_for_backward(x, constant)
        ctx.operation = operation
        return operation(x, constant).clone()

    @staticmethod
    def backward(ctx: Any, *given: Any) -> Any:
        x, constant = ctx.saved_tensors
        with torch.enable_grad():
            read, size = x.detach().requires_grad_(), x.detach().abs().requires_grad_()
            made = ctx.operation(read, constant)
            whole = ctx.operation(size, constant.abs())
        shares = rules.positive_shares(made.detach(), whole.detach(), given[0])
        (one,) = torch.autograd.grad(made, read, shares)
        (other,) = torch.autograd.grad(whole, size, shares)
        return 0.5 * (x * one + size.detach() * other), None, None


class Proportion(torch.autograd.Function):
    """y = f(x), a sum of x's numbers: each its share in proportion.

    With `dim` the parts along these dimensions are then rescaled as those of a sum of two are.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, operation: Operation, dim: tuple[int, ...] | None) -> Tensor:
        ctx.save_for_backward(x)
        ctx.operation, ctx.dim = operation, dim
        return operation(x).clone()

    @staticmethod
    def backward(ctx: Any, *given: Any) -> Any:
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            read = x.detach().requires_grad_()
            made = ctx.operation(read)
        (slope,) = torch.autograd.grad(made, read, rules.sd(given[0], made.detach()))
        parts = x * slope
        if ctx.dim is None:
            return parts, None, None
        others = [d for d in range(x.dim()) if d not in ctx.dim]
        totals = parts.sum(others, keepdim=True) if others else parts
        size = totals.abs()
        return parts * rules.sd(rules.sd(size, size.sum()) * given[0].sum(), totals), None, None


class Product(torch.autograd.Function):
    """y = f(a, b), an operation that is linear in both (matrices, einsum): each operand's share,
    halved. `passed` gives of the relevance of y a factor that b's share is multiplied with."""

    @staticmethod
    def forward(
        ctx: Any, a: Tensor, b: Tensor, operation: Operation, passed: Operation | None
    ) -> Tensor:
        ctx.save_for_backward(a, b)
        ctx.operation, ctx.passed = operation, passed
        return operation(a, b).clone()

    @staticmethod
    def backward(ctx: Any, *given: Any) -> Any:
        a, b = ctx.saved_tensors
        (relevance,) = given
        factor = None if ctx.passed is None else ctx.passed(relevance)
        together = operand_pairs(ctx.operation, a, b, relevance)
        if together is None or factor is not None:
            return *_shared(a, b, ctx.operation, relevance, factor), None, None
        of_a, of_b = torch.empty_like(a), torch.empty_like(b)
        for one, other, given_one, here_a, here_b in zip(
            *together, of_a.flatten(0, -3), of_b.flatten(0, -3), strict=True
        ):
            here_a[:], here_b[:] = rules.product(one, other, one @ other, given_one)
        return of_a, of_b, None, None


def operand_pairs(operation: Operation, a: Tensor, b: Tensor, given: Tensor) -> Any:
    """Operands and relevance of plain matrices, one leading index at a time; None where they are
    small, or of another form."""
    plain = operation in (torch.matmul, torch.bmm, Tensor.matmul, Tensor.bmm, Tensor.__matmul__)
    if not plain or a.dim() < 3 or a.shape[:-2] != b.shape[:-2] or given.numel() < _AT_ONCE:
        return None
    return a.flatten(0, -3), b.flatten(0, -3), given.flatten(0, -3)


def _shared(
    a: Tensor, b: Tensor, operation: Operation, relevance: Tensor, factor: Tensor | None
) -> tuple[Tensor, Tensor]:
    with torch.enable_grad():
        one, other = a.detach().requires_grad_(), b.detach().requires_grad_()
        made = operation(one, other)
    shares = rules.sd(relevance, made.detach())
    if factor is None:
        of_a, of_b = torch.autograd.grad(made, (one, other), shares)
    else:
        (of_a,) = torch.autograd.grad(made, one, shares, retain_graph=True)
        (of_b,) = torch.autograd.grad(made, other, shares * factor)
    return a * of_a / 2, b * of_b / 2
