"""The tap: sees the attention of every layer of a model, in any family.

While a shadow runs, every torch function on this thread is looked at, and one pattern is picked
out: a softmax, perhaps dropout, a change of type or shape, then a product with the values. All
families compute attention so once their implementation is "eager"; nothing has to be known of a
family, and the model's own code decides on masks, sinks, caps and biases.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..blocks import Attention
from .thread import Mode


def words(listed: str) -> frozenset[str]:
    """Names as a set."""
    return frozenset(listed.split())


# What every modelling file computes itself, in plain functions.
NAME = "eager"

_PRODUCTS = {"matmul", "bmm", "einsum"}
# What attention weights may become between the softmax and the product. A slice takes the
# column of a sink away.
_ON_THE_WAY = words(
    "dropout to type type_as float half double view reshape contiguous unsqueeze squeeze "
    "getitem narrow mul rmul where masked_fill nan_to_num clone flatten unflatten expand "
    "transpose permute alpha_dropout softmax cast sub view_as add"
)


# Where an attention may begin.
_BEGINNINGS = {"softmax", "scaled_dot_product_attention"}

# Names of torch's functions, without the marks of methods; they are asked for at every call.
_NAMES: dict[Callable[..., Any], str] = {}


def _named(func: Callable[..., Any]) -> str:
    name = _NAMES[func] = getattr(func, "__name__", "").strip("_")
    return name


# Called with each attention that is computed; what it returns stands in for the product.
Sink = Callable[[Attention], Tensor | None]


class Watching(Mode):
    """Sends each attention of a pass to `sink`.

    Args:
        lengths: how many tokens there are on either side of an attention of this text; products
            of other sizes (a router's softmax with its experts) are not attention.
    """

    def __init__(self, sink: Sink, lengths: set[int]) -> None:
        super().__init__()
        self.sink, self.lengths = sink, lengths
        self.paused = False
        self.on_strange: Callable[[tuple[int, int]], None] | None = None
        self.odd: set[tuple[int, int]] = set()  # sizes of products that looked like attention
        self._weights: list[Tensor] = []  # the last softmax and what it has become since

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        name = _NAMES.get(func) or _named(func)
        if not self._weights and name not in _BEGINNINGS:  # nearly all calls: nothing to see
            return self.run(name, func, args, kwargs)
        if name == "scaled_dot_product_attention":
            weights, values = _plain_weights(*args, **kwargs)
            self._weights = [weights]
            func, args, kwargs, name = torch.matmul, (weights, values), {}, "matmul"
        if self._weights and name in _PRODUCTS:
            found = self._product(name, func, args)
            if found is not None:
                return found
        result = self.run(name, func, args, kwargs)
        if name == "softmax" and isinstance(result, Tensor):
            self._weights = [result]
        elif self._weights and name in _ON_THE_WAY and isinstance(result, Tensor):
            known = args and self._is_weights(args[0])
            if known and not self._is_weights(result):
                self._weights.append(result)
        return result

    def strange(self, sizes: tuple[int, int]) -> None:
        """A product that looks like attention, but not of the text's tokens to each other."""
        self.odd.add(sizes)
        if self.on_strange is not None:
            self.on_strange(sizes)

    def run(self, name: str, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Any other function: called as it is."""
        return func(*args, **kwargs)

    def _is_weights(self, tensor: Any) -> bool:
        return any(tensor is known for known in self._weights)

    def _product(self, name: str, func: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """The result of a product that is attention; None if this one is not."""
        if name == "einsum":
            equation, *operands = args
            if len(operands) == 1 and isinstance(operands[0], list | tuple):
                operands = list(operands[0])
            if len(operands) != 2 or "..." in equation or not isinstance(equation, str):
                return None
            parts = equation.replace(" ", "").split("->")
            labels = parts[0].split(",")
            if len(parts) != 2 or not self._is_weights(operands[0]):
                return None
            form = (labels[0], labels[1], parts[1])
            return self._attention(operands[0], operands[1], form, None)
        if len(args) < 2 or not self._is_weights(args[0]) or args[0].dim() < 3:
            return None
        weights, values = args[0], args[1]
        if values.dim() < 3:
            return None
        lead, wide = weights.shape[:-2], weights
        if lead != values.shape[:-2]:
            lead = torch.broadcast_shapes(lead, values.shape[:-2])
            wide = weights.expand(*lead, *weights.shape[-2:])
        names = string.ascii_lowercase[: len(lead)]
        short = names[len(lead) - (values.dim() - 2) :]
        return self._attention(wide, values, (names + "RC", short + "CD", names + "RD"), func)

    def _attention(
        self,
        weights: Tensor,
        values: Tensor,
        labels: tuple[str, str, str],
        func: Callable[..., Any] | None,
    ) -> Tensor | None:
        form = _form(labels, weights.dim(), values.dim())
        if form is None:
            return None
        sizes = (weights.shape[form.row], weights.shape[form.column])
        if not set(sizes) <= self.lengths:
            self.strange((int(sizes[0]), int(sizes[1])))
            return None
        self._weights = []
        # A new tensor on the way to the product: gradients reach the weights by head, whatever
        # the layout the model keeps them in.
        apart = _permuted(weights, form.order)
        node = given = apart.reshape(1, -1, *sizes)
        if form.order is not None or given.shape != weights.shape:
            given = _permuted(node.reshape(apart.shape), form.back)

        def again(states: Tensor) -> Tensor:
            if func is not None:
                made: Tensor = func(given, states)
                return made
            return torch.einsum(form.equation, given, states)

        def by_head(like: Tensor) -> Tensor:
            moved = _permuted(like, form.of_result)
            return moved.reshape(-1, sizes[0], moved.shape[-1])

        result = again(values)
        found = Attention(
            node,
            _values_by_head(values, form, apart.shape[:-2]),
            result,
            again,
            values,
            form.axis,
            by_head,
        )
        instead = self.sink(found)
        return result if instead is None else instead


class _Form(NamedTuple):
    """Where heads, rows, columns and features lie in a product; None for orders that are theirs
    already."""

    row: int  # axes of the weights
    column: int
    axis: int  # of the values: the source tokens
    order: tuple[int, ...] | None  # weights to [*heads, row, column]
    back: tuple[int, ...] | None
    of_values: tuple[int, ...] | None  # values to [*their heads, column, feature]
    shared: tuple[int, ...]  # heads that values do not have: they share them
    of_result: tuple[int, ...] | None  # the result to [*heads, row, feature]
    equation: str


@functools.lru_cache(256)
def _form(labels: tuple[str, str, str], weights_dim: int, values_dim: int) -> _Form | None:
    """How a product is attention; None if it has another form."""
    of_weights, of_values, of_result = labels
    if len(of_weights) != weights_dim or len(of_values) != values_dim:
        return None
    columns = [c for c in of_weights if c in of_values and c not in of_result]
    rows = [c for c in of_weights if c not in of_values and c in of_result]
    features = [c for c in of_values if c not in of_weights and c in of_result]
    if len(columns) != 1 or len(features) != 1 or not rows:
        return None
    # A head that values do not have is one that shares them: of several such labels the rows
    # are the last, and of several layouts the one whose size is that of the columns.
    row, column, feature = rows[-1], columns[0], features[0]
    heads = [c for c in of_weights if c not in (row, column)]
    order = [of_weights.index(label) for label in (*heads, row, column)]
    return _Form(
        of_weights.index(row),
        of_weights.index(column),
        of_values.index(column),
        _order(of_weights, [*heads, row, column]),
        _order(range(len(order)), [order.index(i) for i in range(len(order))]),
        _order(of_values, [*(c for c in heads if c in of_values), column, feature]),
        tuple(place for place, c in enumerate(heads) if c not in of_values),
        _order(of_result, [*heads, row, feature]),
        f"{of_weights},{of_values}->{of_result}",
    )


def _order(labels: Sequence[Any], wanted: list[Any]) -> tuple[int, ...] | None:
    order = tuple(labels.index(label) for label in wanted)
    return None if list(order) == list(range(len(labels))) else order


def _permuted(tensor: Tensor, order: tuple[int, ...] | None) -> Tensor:
    return tensor if order is None else tensor.permute(order)


def _values_by_head(values: Tensor, form: _Form, shape: torch.Size) -> Tensor:
    """[H, columns, d_head], shared values repeated for each head that reads them."""
    moved = _permuted(values, form.of_values)
    for place in form.shared:
        moved = moved.unsqueeze(place)
    if moved.shape[:-2] != shape:
        moved = moved.expand(*shape, *moved.shape[-2:])
    return moved.reshape(-1, *moved.shape[-2:])


def _plain_weights(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Tensor, Tensor]:
    """Weights and values of torch's fused attention, of which only the result could be seen."""
    if enable_gqa:
        groups = query.shape[-3] // key.shape[-3]
        key, value = (t.repeat_interleave(groups, -3) for t in (key, value))
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query @ key.transpose(-1, -2) * factor
    if is_causal:
        ones = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device)
        scores = scores.masked_fill(~ones.tril(), -torch.inf)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, -torch.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    return nn.functional.softmax(scores, -1), value
