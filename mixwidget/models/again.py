"""One recorded layer run once more: with a token's values away, or with a graph."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..blocks import Attention, Cut, LayerRecord
from .shadow import shadow
from .tap import Watching
from .tape import Tape


def hidden_of(args: Any, kwargs: dict[str, Any]) -> Tensor | None:
    """The vectors that a layer reads: its first argument, or the first that is named."""
    if args and isinstance(args[0], Tensor):
        return args[0]
    name = _name_of(kwargs)
    return None if name is None else kwargs[name]


def _name_of(kwargs: dict[str, Any]) -> str | None:
    vectors = [
        name
        for name, value in kwargs.items()
        if isinstance(value, Tensor) and value.is_floating_point() and value.dim() == 3
    ]
    return "hidden_states" if "hidden_states" in kwargs else next(iter(vectors), None)


def with_hidden(args: Any, kwargs: dict[str, Any], given: Tensor) -> tuple[Any, dict[str, Any]]:
    """A layer's arguments with other vectors in the place of those it was given."""
    if args and isinstance(args[0], Tensor):
        return (given, *args[1:]), kwargs
    return args, {**kwargs, _name_of(kwargs) or "hidden_states": given}


def first_tensor(result: Any) -> Tensor | None:
    """The vectors that a layer puts out: alone, or the first of several results."""
    while isinstance(result, list | tuple | dict) and result:
        result = next(iter(result.values())) if isinstance(result, dict) else result[0]
    return result if isinstance(result, Tensor) else None


def always_hooked(module: nn.Module) -> None:
    """Let a module of a shadow run its hooks also where the model calls its `forward` itself, as
    SqueezeBERT does."""
    own = module.forward
    inside = False

    def entered(*_: Any) -> None:
        nonlocal inside
        inside = True

    def forward(*args: Any, **kwargs: Any) -> Any:
        nonlocal inside
        if not inside:
            return module(*args, **kwargs)
        inside = False
        return own(*args, **kwargs)

    module.register_forward_pre_hook(entered)
    module.forward = forward


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
        out = out.transpose(1, 2) if self.record.turned else out
        return in_digits(out).reshape(-1, out.shape[-1])


class MixerAgain:
    """A layer without attention run once more, with one token's vector away from what its mixer
    reads: the part of it that moves numbers between tokens."""

    def __init__(self, record: LayerRecord, hidden: Tensor) -> None:
        self.record, self.hidden = record, hidden.detach()
        self._mixer: nn.Module | None = None

    def __call__(self, source: int | None) -> Tensor:
        """[rows, d]; with None nothing is away."""
        if source is not None and self._mixer is None:
            self._mixer = self._found()

        def without(module: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
            read = hidden_of(args, kwargs)
            assert read is not None  # `_found` has seen to it
            return with_hidden(args, kwargs, _row_gone(read, source or 0))

        held = []
        if source is not None and self._mixer is not None:
            held.append(self._mixer.register_forward_pre_hook(without, with_kwargs=True))
        try:
            with torch.inference_mode(False), torch.no_grad():
                out = first_tensor(_run(self.record, self.hidden.clone()))
        finally:
            for handle in held:
                handle.remove()
        assert out is not None
        return in_digits(out).reshape(-1, out.shape[-1])

    @property
    def lost(self) -> bool:
        """The layer does mix tokens, but no part of it could be told that does."""
        if self._mixer is None:
            self._mixer = self._found()
        if self._mixer is not None:
            return False
        with torch.inference_mode(False), torch.no_grad():
            out = first_tensor(_run(self.record, _row_gone(self.hidden, 0)))
        assert out is not None
        made, own = in_digits(out).reshape(-1, out.shape[-1]), self(None)
        return not torch.allclose(made[1:], own[1:], rtol=1e-5, atol=1e-6)

    def _found(self) -> nn.Module | None:
        """The innermost part of the layer, of those that run first, in which a token's vector
        changes what others get; None if there is none."""
        seen: dict[nn.Module, tuple[Any, dict[str, Any], Any]] = {}

        def saw(module: nn.Module, args: Any, kwargs: dict[str, Any], result: Any) -> None:
            seen.setdefault(module, (args, kwargs, result))

        layer = self.record.module
        held = [
            part.register_forward_hook(saw, with_kwargs=True)
            for part in layer.modules()
            if part is not layer
        ]
        try:
            self(None)
        finally:
            for handle in held:
                handle.remove()
        inside, found = layer, None
        while True:
            parts = (part for part in inside.modules() if part is not inside and part in seen)
            deeper = next((part for part in parts if _mixes(part, *seen[part])), None)
            if deeper is None:
                return found
            inside = found = deeper


def _mixes(module: nn.Module, args: Any, kwargs: dict[str, Any], result: Any) -> bool:
    read, out = hidden_of(args, kwargs), first_tensor(result)
    if read is None or out is None or read.dim() != 3 or read.shape[1] < 2:
        return False
    if read.shape[:2] != out.shape[:2]:
        return False
    with torch.inference_mode(False), torch.no_grad():
        given, named = with_hidden(args, kwargs, _row_gone(read, 0))
        other = first_tensor(module(*given, **named))
    return other is not None and not torch.allclose(other[:, 1:], out[:, 1:], rtol=1e-5, atol=1e-6)


def beside_attention(again: Again, attentions: list[Attention]) -> float:
    """How much a token's vector moves what others get in a layer whose attention is held as it
    was, relative: zero where attention alone moves numbers between tokens."""
    held = iter(attentions)

    def as_it_was(found: Attention) -> Tensor | None:
        known = next(held, None)
        return None if known is None else known.result.detach()

    record, changed = again.record, again.hidden.clone()
    axis = -1 if record.turned else -2
    first = changed.narrow(axis, 0, 1)
    first.copy_(torch.roll(first, 1, -3 - axis) * 1.5)
    with torch.inference_mode(False), torch.no_grad(), Watching(as_it_was, again.lengths):
        out = first_tensor(_run(record, changed))
    assert out is not None
    out = out.transpose(1, 2) if record.turned else out
    made = in_digits(out).reshape(-1, out.shape[-1])[1:]
    own = again(None)[1:]
    return float((made - own).norm() / own.norm().clamp(min=1e-30))


def _row_gone(vectors: Tensor, row: int) -> Tensor:
    gone = torch.tensor([row], device=vectors.device)
    return vectors.index_fill(-2, gone, 0.0)


def arguments_of(args: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """What a layer was given besides its vectors, to run it again: caches as they were then."""
    by_name = None if args and isinstance(args[0], Tensor) else _name_of(kwargs)
    rest = {k: _as_it_is(v) for k, v in kwargs.items() if k != by_name}
    if by_name is not None:
        rest["named"] = by_name  # the vectors too
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
    named = rest.pop("named", None)  # the layer was given its vectors by name
    if named:
        return record.module(*args[1:], **{named: given}, **rest)
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
