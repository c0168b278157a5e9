"""One recorded layer run once more: with a token's values away, or with a graph."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..blocks import Attention, Cut, LayerRecord
from .shadow import shadow
from .tap import Watching
from .tape import Tape


def hidden_of(args: Any, kwargs: dict[str, Any]) -> Tensor | None:
    """The vectors that a layer reads: its first argument, or the one named so."""
    if args and isinstance(args[0], Tensor):
        return args[0]
    named = kwargs.get("hidden_states")
    return named if isinstance(named, Tensor) else None


def with_hidden(args: Any, kwargs: dict[str, Any], given: Tensor) -> tuple[Any, dict[str, Any]]:
    """A layer's arguments with other vectors in the place of those it was given."""
    if args and isinstance(args[0], Tensor):
        return (given, *args[1:]), kwargs
    return args, {**kwargs, "hidden_states": given}


def first_tensor(result: Any) -> Tensor | None:
    """The vectors that a layer puts out: alone, or the first of several results."""
    while isinstance(result, list | tuple) and result:
        result = result[0]
    return result if isinstance(result, Tensor) else None


def in_digits(tensor: Tensor) -> Tensor:
    """Without a graph, in a precision fit for differences."""
    tensor = tensor.detach()
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()


class Again:
    """A layer run once more, as it is, with one source token's values away from one attention.

    Args:
        which: which of the layer's attentions; `last` if no other follows. What is put out is
            the layer's output, or the stream as the next attention finds it.
    """

    def __init__(
        self, record: LayerRecord, hidden: Tensor, lengths: set[int], which: int, last: bool
    ) -> None:
        self.record, self.hidden, self.lengths = record, hidden.detach(), lengths
        self.which, self.last = which, last

    def __call__(self, source: int | None) -> Tensor:
        """[rows, d]; with None nothing is away."""
        seen = -1

        def without(found: Attention) -> Tensor | None:
            nonlocal seen
            seen += 1
            if seen != self.which or source is None:
                return None
            return found.without(source)

        tape = Tape(without, self.lengths)
        with torch.inference_mode(False), torch.no_grad(), tape:
            _, given = tape.begin(self.hidden)
            out = first_tensor(_run(self.record, given))
        if not self.last:
            out = tape.blocks[self.which].passed
        assert out is not None
        return in_digits(out).reshape(-1, out.shape[-1])


def arguments_of(args: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """What a layer was given besides its vectors, to run it again: caches as they were then."""
    rest = {k: _as_it_is(v) for k, v in kwargs.items() if k != "hidden_states"}
    if not (args and isinstance(args[0], Tensor)):
        rest["named"] = True  # the vectors too, by name
    return {**rest, "args": tuple(_as_it_is(a) for a in args[1:])}


def _as_it_is(value: Any) -> Any:
    """A cache that passes write to is copied; all else is not written to."""
    return _copied(value) if hasattr(value, "get_seq_length") else value


def _copied(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone()
    if type(value) in (list, tuple):
        return type(value)(_copied(v) for v in value)
    if isinstance(value, dict):
        return {k: _copied(v) for k, v in value.items()}
    if "cache" not in type(value).__module__:
        return value
    new = object.__new__(type(value))
    vars(new).update(_copied(vars(value)))
    return new


def _run(record: LayerRecord, given: Tensor) -> Any:
    rest = {k: _as_it_is(v) for k, v in record.arguments.items() if k != "args"}
    rest["args"] = tuple(_as_it_is(a) for a in record.arguments.get("args", ()))
    args = (given, *rest.pop("args", ()))
    named = rest.pop("named", False)  # the layer was given its vectors by name
    if named:
        return record.module(*args[1:], hidden_states=given, **rest)
    return record.module(*args, **rest)


def cut_open(record: LayerRecord) -> Cut:
    """A layer of one attention run with a graph, which is cut where the attention is done."""
    module = shadow(record.module)
    like = next(module.parameters())
    inputs = record.input.detach()
    x = inputs.reshape(1, *inputs.shape[-2:]).to(like.dtype).clone().requires_grad_()
    found: list[tuple[Attention, Tensor]] = []

    def cut(attention: Attention) -> Tensor | None:
        leaf = attention.result.detach().requires_grad_()
        found.append((attention, leaf))
        return leaf.clone()  # some families add to it in place

    with torch.inference_mode(False), torch.enable_grad():
        with Watching(cut, {int(x.shape[1])}):
            out = first_tensor(_run(_with(record, module), x))
        assert out is not None
        (attention, leaf), *_ = found
        return Cut(x, attention.joined(attention.result), leaf, attention.joined, out,
                   attention.heads)  # fmt: skip


def _with(record: LayerRecord, module: Any) -> LayerRecord:
    return LayerRecord(module, record.spec, record.input, record.arguments)
