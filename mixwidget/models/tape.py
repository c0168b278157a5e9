"""The tape: what one layer makes of its input and of its attention, as linear maps.

While a layer runs, its input x and the result o of each attention become leaves, and every torch
function that reads something made of them is looked at. Sums, changes of shape and products with
constants stay linear and keep their graph; the statistics of norms and every coefficient that
belongs to a token are frozen; all else (an activation, a router, an expert) is cut out of the
graph. What is left of the residual stream is y = T o + R x + c, token by token, with T and R in
the graph and no name of any part known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..blocks import Attention, Nodes
from .frozen import NORMS
from .tap import Watching, words

_LINEAR = words(
    "add radd iadd sub rsub isub cat concat stack hstack vstack transpose t permute view "
    "reshape contiguous flatten unflatten squeeze unsqueeze expand expand_as repeat "
    "repeat_interleave chunk split tensor_split split_with_sizes unbind getitem index_select "
    "select narrow gather to type float double half bfloat16 type_as clone neg mean sum dropout "
    "pad roll masked_fill where movedim swapaxes swapdims view_as tile get alpha_dropout "
    "identity index_add scatter_add take_along_dim positive copy"
)
_PRODUCTS = words(
    "mul rmul imul multiply matmul rmatmul bmm mm einsum linear addmm baddbmm conv1d div "
    "truediv itruediv divide tensordot outer"
)
_SHAPES = words(
    "transpose t permute view reshape contiguous flatten unflatten squeeze unsqueeze to type "
    "float double half type_as clone dropout view_as movedim swapaxes getitem"
)
_DIVISIONS = words("div truediv itruediv divide")
_SUMS = words("add radd iadd sub isub")
_IN_PLACE: dict[str, Callable[..., Any]] = {
    "iadd": torch.add,
    "isub": torch.sub,
    "imul": torch.mul,
    "itruediv": torch.div,
}
# They read or change a tensor's own attributes, not its numbers.
_PASSED = words(
    "size dim requires_grad_ numel shape is_floating_point stride device dtype len "
    "is_contiguous data_ptr set requires_grad element_size ndim is_complex get_device hash"
)


class Tag(NamedTuple):
    """What a tensor is made of: linearly (its graph leads there), and in any way at all.

    Sources are "x", the layer's input, and the number of an attention.
    """

    linear: frozenset[Any]
    any: frozenset[Any]
    plain: bool = False  # a leaf in another shape


class Tape(Watching):
    """Follows one layer at a time, from `begin` to `end`. `on_attention` sees every attention
    first, and what it returns stands in for the result; outside of a layer nothing else happens."""

    def __init__(
        self,
        on_attention: Callable[[Attention], Tensor | None],
        lengths: set[int],
    ) -> None:
        super().__init__(self._attended, lengths)
        self.on_attention = on_attention
        self.running = False
        self.blocks: list[Nodes] = []
        self._tags: dict[int, tuple[Tensor, Tag]] = {}
        self._shape: torch.Size = torch.Size()
        self._instead: tuple[Tensor, Tensor] | None = None

    # --- one layer

    def begin(
        self, hidden: Tensor, everywhere: bool = False, turned: bool = False
    ) -> tuple[Tensor, Tensor]:
        """(the layer's input as a leaf, what the layer is to be given). With `everywhere` it
        stands in for the input wherever that is read; `turned`: tokens are the last axis, but
        of the leaf."""
        self._tags, self.blocks, self.running, self._instead = {}, [], True, None
        leaf = (hidden.detach().transpose(1, 2) if turned else hidden.detach()).requires_grad_()
        with torch._C.DisableTorchFunction():
            given = (
                leaf.transpose(1, 2) if turned else leaf
            ).clone()  # some families add to their input in place
        self._shape = given.shape
        if everywhere:
            self._instead = (hidden, given)
        self._tag(given, Tag(frozenset({"x"}), frozenset({"x"})))
        return leaf, given

    def end(self) -> list[Nodes]:
        """The layer's attentions; nothing is followed any more."""
        self._tags, self.running, blocks = {}, False, self.blocks
        return blocks

    def _attended(self, found: Attention) -> Tensor | None:
        instead = self.on_attention(found)
        if not self.running:
            return instead
        number = len(self.blocks)
        leaf = (found.result if instead is None else instead).detach().requires_grad_()
        with torch._C.DisableTorchFunction():
            given = leaf.clone()
        self.blocks.append(Nodes(found, leaf, found.joined))
        self._tag(given, Tag(frozenset({number}), frozenset({number, "x"}), plain=True))
        return given

    # --- every function of the layer

    def _tag(self, tensor: Tensor, tag: Tag) -> None:
        self._tags[id(tensor)] = (tensor, tag)

    def tag(self, tensor: Tensor) -> Tag | None:
        entry = self._tags.get(id(tensor))
        return entry[1] if entry is not None and entry[0] is tensor else None

    def run(self, name: str, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if not self.running or name in _PASSED:
            return func(*args, **kwargs)
        if self._instead is not None:
            args, kwargs = _replaced(args, *self._instead), _replaced(kwargs, *self._instead)
        tensors = list(_tensors((args, kwargs)))
        live = [(t, tag) for t in tensors if (tag := self.tag(t)) is not None]
        if not live:
            return func(*args, **kwargs)
        linear = frozenset().union(*(tag.linear for _, tag in live))
        depends = frozenset().union(*(tag.any for _, tag in live))
        if name == "setitem":
            func(*args, **kwargs)
            self._tag(args[0], Tag(linear, depends))
            return None
        if name in _IN_PLACE and len(args) == 2:  # the sum's parts are wanted as they were
            func, name = _out_of_place(name), name[1:]
        if name == "get":  # an attribute: `T` is the tensor in another shape, `data` is cut
            result = func(*args, **kwargs)
            if isinstance(result, Tensor):
                self._tag(result, Tag(linear if result.requires_grad else frozenset(), depends))
            return result
        if name == "detach":
            return self._marked(func(*args, **kwargs), Tag(frozenset(), depends))
        if name in NORMS and live[0][1].linear:
            made = NORMS[name](*args, **kwargs)
            return self._marked(made, Tag(live[0][1].linear, depends))
        if name in _LINEAR:
            if name in _SUMS:
                self._summed(live)
            if name == "where" and live[0][0] is args[0]:
                linear = frozenset()
            plain = name in _SHAPES and all(tag.plain for _, tag in live)
        else:
            plain = False
            linear, args, kwargs = self._multiplied(name, live, args, kwargs)
        result = func(*args, **kwargs)
        if any(result is t for t in tensors):  # changed in place
            self._tag(result, Tag(linear, depends, plain))
            return result
        result = self._marked(result, Tag(linear, depends, plain))
        if isinstance(result, Tensor) and linear:
            if name in _SUMS and result.shape == self._shape:
                self._joined(result, live)
            elif name in ("mul", "rmul", "multiply") and not plain:
                result = self._gated(result, live, depends)
        return result

    def _marked(self, result: Any, tag: Tag) -> Any:
        """A result with its tag; cut from the graph unless it is linear."""
        if isinstance(result, Tensor):
            if not tag.linear and result.requires_grad:
                result = result.detach()
            self._tag(result, tag)
            return result
        if isinstance(result, tuple) and hasattr(result, "_fields"):
            return type(result)(*(self._marked(r, tag) for r in result))
        if type(result).__module__.startswith("torch.return_types"):
            return type(result)(tuple(self._marked(r, tag) for r in result))
        if isinstance(result, list | tuple):
            return type(result)(self._marked(r, tag) for r in result)
        return result

    def _multiplied(
        self, name: str, live: list[tuple[Tensor, Tag]], args: Any, kwargs: Any
    ) -> tuple[frozenset[Any], Any, Any]:
        """What a product is still linear in, and its arguments with the other factors frozen."""
        nothing: frozenset[Any] = frozenset()
        if name not in _PRODUCTS:
            return nothing, args, kwargs
        followed = [(t, tag) for t, tag in live if tag.linear]
        if name in _DIVISIONS and not (
            isinstance(args[0], Tensor) and any(t is args[0] for t, _ in followed)
        ):
            return nothing, args, kwargs
        if len(followed) == 2 and followed[0][0] is not followed[1][0]:
            # Of two followed factors the one with an attention in it goes on, if the other
            # holds none: a gate.
            heads = [(t, g) for t, g in followed if g.linear - {"x"}]
            other = [g for t, g in followed if not (g.any - {"x"})]
            followed = heads if len(heads) == 1 and len(other) == 1 else []
        if len(followed) != 1:
            return nothing, args, kwargs
        kept, tag = followed[0]
        for factor, own in live:
            if factor is kept:
                continue
            small = factor.dim() == 0 or factor.shape[-1] == 1 or factor.numel() * 4 <= kept.numel()
            gate = bool(tag.linear) and "x" not in tag.linear and not (own.any - {"x"})
            if not small and not gate:
                return nothing, args, kwargs
            args = _frozen(args, factor)
            kwargs = {k: _frozen(v, factor) for k, v in kwargs.items()}
        if name == "linear" and tag.plain and len(tag.linear) == 1 and kept is args[0]:
            (number,) = tag.linear
            weight = args[1] if len(args) > 1 else kwargs.get("weight")
            if number != "x" and isinstance(weight, Tensor):
                self.blocks[number].matrices.append(weight)
        return tag.linear, args, kwargs

    def _summed(self, live: list[tuple[Tensor, Tag]]) -> None:
        """Notes, of a sum about to be made, which branch meets the stream and which stream
        the next part's result is added to."""
        for number, block in enumerate(self.blocks):
            alone = [t for t, g in live if g.linear == {number}]
            meets = any(g.linear != {number} for _, g in live)
            if alone and meets and block.branch is None and alone[0].shape == self._shape:
                block.branch = alone[0]
            if block.joined is None or block.passed is not None:
                continue
            with_it = [t for t, g in live if number in g.linear and "x" in g.linear]
            others = [
                (t, g)
                for t, g in live
                if not g.linear or (number not in g.linear and "x" not in g.linear)
            ]
            if with_it and others and with_it[0].shape == self._shape == others[0][0].shape:
                block.passed = with_it[0]

    def _joined(self, result: Tensor, live: list[tuple[Tensor, Tag]]) -> None:
        """Notes the first sum that holds both the stream and an attention's branch."""
        made = self._tags[id(result)][1].linear
        for number, block in enumerate(self.blocks):
            if block.joined is None and number in made and "x" in made:
                streams = [t for t, g in live if "x" in g.linear and number not in g.linear]
                if streams:
                    block.joined, block.stream = result, streams[0]

    def _gated(self, result: Tensor, live: list[tuple[Tensor, Tag]], depends: Any) -> Tensor:
        """The heads' results times a gate: from here on they are followed anew, the gate kept."""
        factors = [(t, g) for t, g in live if g.plain and len(g.linear) == 1]
        if len(factors) != 1 or len(live) != 2:
            return result
        (number,) = factors[0][1].linear
        other = next(t for t, _ in live if t is not factors[0][0])
        if number == "x" or not result.requires_grad:
            return result
        block = self.blocks[number]
        if other.numel() * block.leaf.shape[-1] * block.attention.heads <= block.leaf.numel():
            return result  # one number for a token: a norm's scale
        with torch._C.DisableTorchFunction(), torch.enable_grad():
            (slope,) = torch.autograd.grad(result.sum(), block.leaf, retain_graph=True)
            gate = block.layout(slope)
            before = block.layout(block.leaf.detach()) * gate
            layout = _layout(result.detach(), before, block.attention.heads)
            if layout is None:
                return result
            leaf = result.detach().requires_grad_()
            given = leaf.clone()
        block.gate = gate if block.gate is None else block.gate * gate
        block.leaf, block.layout, block.matrices = leaf, layout, []
        self._tag(given, Tag(frozenset({number}), depends, plain=True))
        return given


def _out_of_place(name: str) -> Callable[..., Any]:
    return _IN_PLACE[name]


def _layout(result: Tensor, joined: Tensor, heads: int) -> Callable[[Tensor], Tensor] | None:
    """How a tensor's axes give [rows, H * d_head], found by its numbers; None if none does."""
    rows, width = joined.shape

    def tokens_first(t: Tensor) -> Tensor:
        return t.reshape(rows, width)

    def heads_first(t: Tensor) -> Tensor:
        return t.reshape(heads, rows, width // heads).transpose(0, 1).reshape(rows, width)

    for layout in (tokens_first, heads_first):
        if result.numel() == rows * width and torch.allclose(
            layout(result), joined, rtol=1e-4, atol=1e-6
        ):
            return layout
    return None


def _tensors(values: Any) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)
        elif isinstance(value, dict):
            yield from _tensors(value.values())


def _frozen(value: Any, factor: Tensor) -> Any:
    """Arguments with one of them cut from the graph."""
    return _replaced(value, factor, factor.detach())


def _replaced(value: Any, one: Tensor, other: Tensor) -> Any:
    """Arguments with another tensor in the place of one."""
    if value is one:
        return other
    if type(value) in (list, tuple):
        return type(value)(_replaced(v, one, other) for v in value)
    if type(value) is dict:
        return {k: _replaced(v, one, other) for k, v in value.items()}
    return value
