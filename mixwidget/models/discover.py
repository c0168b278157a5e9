"""Unknown families: find out how a block is wired by watching it work.

One short pass through the model shows what every part of its first layer reads and puts out.
The output projection is the linear map that reads the heads' joined results; a norm's place is
told by which sum it reads; the feed-forward's, by which sum its result completes. The parts
found this way make a `BlockSpec`, which must then add up on every layer, or the model is
refused: nothing is believed because of its name.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..blocks import BlockSpec, Norm
from ..errors import UnsupportedModelError
from . import tap
from .shadow import shadow
from .source import base_of
from .thread import as_it_was
from .trace import plain_output, record
from .watch import Watching

_PROBE_TOKENS = 7
_ADDS_UP = 1e-3
_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": nn.functional.gelu,
    "gelu_tanh": nn.GELU(approximate="tanh"),
    "silu": nn.functional.silu,
    "relu": nn.functional.relu,
    "relu2": lambda x: nn.functional.relu(x).square(),
}
_known: weakref.WeakKeyDictionary[nn.Module, BlockSpec] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class _Seen:
    """What one module read and put out, [n, width] each."""

    module: nn.Module
    read: Tensor
    out: Tensor


@dataclass(frozen=True)
class _Probe:
    """One layer at work: its input and output, the heads' joined results, all its parts."""

    x: Tensor
    o: Tensor
    heads: Tensor
    causal: bool
    parts: dict[str, _Seen]

    def reading(self, vectors: Tensor, kind: Any) -> list[str]:
        """Names of the parts of a kind that read these vectors."""
        return [n for n, s in self.parts.items() if kind(s.module) and _close(s.read, vectors)]


def discovered(model: nn.Module) -> BlockSpec:
    """The block spec of a model of an unknown family, found once and checked by adding up."""
    if model not in _known:
        _known[model] = _discover(model)
    return _known[model]


@as_it_was
def _discover(model: nn.Module) -> BlockSpec:
    model = shadow(model)
    base = base_of(model)
    reasons: dict[int, str] = {-1: "it has no stack of like layers"}  # by how far we got
    ids = torch.arange(_PROBE_TOKENS) % 5 + 3
    inputs = {"input_ids": ids[None].to(next(model.parameters()).device)}
    for path in _stacks(base):
        for by_hand in (False, True):
            reached = 0
            try:
                probe = _watch(model, base.get_submodule(path)[0], inputs, by_hand)
                reached = 1
                spec = _spec(probe, path, by_hand)
                reached = 2
                _check(model, inputs, spec)
                return spec
            except (_NotUnderstood, UnsupportedModelError) as reason:
                reasons.setdefault(reached, str(reason))
            except Exception as error:  # a model nobody here has seen may fail in any way
                kind = type(error).__name__
                reasons.setdefault(reached, f"it could not be followed ({kind}: {error})")
    raise UnsupportedModelError(reasons[max(reasons)])


def _check(model: nn.Module, inputs: dict[str, Tensor], spec: BlockSpec) -> None:
    """The proof: all layers are there, and all of them add up."""
    trace = record(model, inputs, spec)
    count = getattr(getattr(model, "config", None), "num_hidden_layers", len(trace))
    if len(trace) != count:
        raise _NotUnderstood(f"only {len(trace)} of its {count} layers could be followed")
    worst = max(trace.adds_up(layer) for layer in range(len(trace)))
    if worst > _ADDS_UP:
        raise _NotUnderstood(f"the parts that were found miss a layer's output by {worst:.1%}")


class _NotUnderstood(Exception):
    pass


def _stacks(base: nn.Module) -> list[str]:
    """Paths of the lists of like modules, the largest first."""
    found = {
        name: sum(p.numel() for p in module.parameters())
        for name, module in base.named_modules()
        if isinstance(module, nn.ModuleList) and len({type(item) for item in module}) == 1
    }
    return sorted(found, key=lambda name: -found[name])


def _watch(model: nn.Module, layer: nn.Module, inputs: Any, by_hand: bool) -> _Probe:
    calls: dict[str, list[_Seen]] = {}
    attention: list[tuple[Tensor, Tensor]] = []
    inside = [False]

    def enter(module: nn.Module, args: Any) -> None:
        inside[0] = True

    def seen(name: str) -> Any:
        def hook(module: nn.Module, args: Any, kwargs: dict[str, Any], result: Any) -> None:
            read = next((a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)), None)
            out = result[0] if isinstance(result, tuple) else result
            if not name:
                inside[0] = False
            if read is not None and isinstance(out, Tensor) and read.is_floating_point():
                calls.setdefault(name, []).append(_Seen(module, _rows(read), _rows(out)))

        return hook

    def sink(module: nn.Module, weights: Tensor, values: Tensor) -> None:
        if inside[0]:
            attention.append((weights.detach()[0], values.detach()[0]))

    handles = [layer.register_forward_pre_hook(enter)]
    try:
        for name, module in layer.named_modules():
            handles.append(module.register_forward_hook(seen(name), with_kwargs=True))
        listen = Watching(sink) if by_hand else tap.listening(sink)
        with listen, torch.no_grad():
            model(**inputs, **plain_output(model))
    finally:
        for handle in handles:
            handle.remove()
    parts = {name: found[0] for name, found in calls.items() if len(found) == 1}
    if "" not in parts or len(attention) != 1:
        raise _NotUnderstood("its layers do not compute attention once each")
    whole, (weights, values) = parts.pop(""), attention[0]
    heads = torch.matmul(weights, values).transpose(0, 1).flatten(1)
    causal = not bool(weights.triu(1).any())
    return _Probe(whole.read, whole.out, heads, causal, parts)


def _rows(tensor: Tensor) -> Tensor:
    return tensor.detach().reshape(-1, tensor.shape[-1]).float().clone()


def _close(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape:
        return False
    return bool((one - other).norm() <= 1e-4 * other.norm().clamp(min=1e-12))


def _linear(module: nn.Module) -> bool:
    weight = getattr(module, "weight", None)
    return isinstance(weight, Tensor) and weight.dim() == 2 and not list(module.children())


def _norm(module: nn.Module) -> bool:
    return "norm" in type(module).__name__.lower() and not list(module.children())


def _spec(probe: _Probe, layers: str, by_hand: bool) -> BlockSpec:
    """The wiring and its parts, by which part reads which sum."""
    outs = probe.reading(probe.heads, _linear)
    if not outs:
        raise _NotUnderstood("no projection reads the joined results of its heads")
    attended = probe.parts[outs[0]].out
    after1 = next(iter(probe.reading(attended, _norm)), None)
    branch = attended if after1 is None else probe.parts[after1].out
    p = probe.x + branch
    reader = next(iter(probe.reading(p, _norm)), None)
    y = p if reader is None else probe.parts[reader].out
    reads_x = probe.reading(probe.x, _norm)
    offset = _offset(probe, [n for n in (reader, after1, *reads_x) if n is not None])
    found: dict[str, Any] = {"layers": layers, "out": outs[0], "by_hand": by_hand}
    for name, part in probe.parts.items():
        if not _linear(part.module) or name == outs[0] or part.out.shape != probe.x.shape:
            continue
        forward = _feed_forward(probe, name)
        if forward is None:
            continue
        after2 = next(iter(probe.reading(part.out, _norm)), None)
        result = part.out if after2 is None else probe.parts[after2].out
        read = probe.parts[forward["gate_up"] or forward["up"]].read
        common = {**found, **forward, "down": name, "causal": probe.causal, "norm_offset": offset}
        if _close(probe.o, p + result):
            sides: dict[str, Any] = {
                "norm1": next(iter(reads_x), None),
                "after1": after1,
                "after2": after2,
            }
            if _close(read, y):
                plain = after1 is None and after2 is None
                return BlockSpec(
                    wiring="pre" if plain else "sandwich", norm2=reader, **sides, **common
                )
            shared = [n for n in reads_x if _close(probe.parts[n].out, read)]
            if shared and after1 is None and after2 is None:
                return BlockSpec(wiring="parallel", norm2=shared[0], **sides, **common)
        last = next(iter(probe.reading(y + part.out, _norm)), None)
        if reader and last and _close(read, y) and _close(probe.o, probe.parts[last].out):
            return BlockSpec(wiring="post", norm1=reader, norm2=last, **common)
    raise _NotUnderstood("no known wiring gives its layers' output from their parts")


def _feed_forward(probe: _Probe, down: str) -> dict[str, Any] | None:
    """The activation and what stands before it, if together they make what `down` reads."""
    goal = probe.parts[down].read
    empty: dict[str, Any] = {"up": None, "gate": None, "gate_up": None}
    modules: dict[str, Callable[[Tensor], Tensor]] = {
        name: part.module
        for name, part in probe.parts.items()
        if not list(part.module.parameters()) and not list(part.module.children())
    }
    for first, part in probe.parts.items():
        if not _linear(part.module) or first == down:
            continue
        for name, act in [*modules.items(), *_ACTIVATIONS.items()]:
            spec_act = act if name in _ACTIVATIONS else name
            if part.out.shape == goal.shape:
                hidden = act(part.out)
                if _close(hidden, goal):
                    return {**empty, "up": first, "act": spec_act}
                for second, other in probe.parts.items():
                    fits = _linear(other.module) and other.out.shape == goal.shape
                    if fits and second != first and _close(hidden * other.out, goal):
                        return {**empty, "gate": first, "up": second, "act": spec_act}
            elif part.out.shape[-1] == 2 * goal.shape[-1]:
                gate, up = part.out.chunk(2, -1)
                if _close(act(gate) * up, goal):
                    return {**empty, "gate_up": first, "act": spec_act}
    return None


def _offset(probe: _Probe, names: list[str]) -> float:
    """What the norms add to their weights: nothing, or one."""
    for offset in (0.0, 1.0):
        try:
            norms = [(Norm(probe.parts[n].module, offset), probe.parts[n]) for n in names]
        except UnsupportedModelError as reason:
            raise _NotUnderstood(str(reason)) from reason
        if all(_close(norm(part.read), part.out) for norm, part in norms):
            return offset
    raise _NotUnderstood("its norms are neither LayerNorm nor RMSNorm")
