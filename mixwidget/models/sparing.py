"""Long texts: the layers' inputs are kept, and a layer runs again when it is asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ..blocks import Attention, Block, BlockSpec, LayerRecord, all_at
from ..errors import CostError, UnsupportedModelError
from .memory import check_long, recorded_bytes
from .recorder import Check, SpecRecorder
from .source import Source
from .tap import Watching
from .thread import as_it_was
from .trace import Trace, base_of, plain_output

# A record of more bytes is made a layer at a time.
_LARGE = 2**30
# So many of its tokens are enough to prove how its model is taken apart.
_PROOF_TOKENS = 64


def proof_tokens() -> int:
    return _PROOF_TOKENS


def is_long(source: Source, tokens: int) -> bool:
    """Whether the record of a whole pass would be large, and layers can run again by themselves."""
    spec = source.anatomy.spec
    plain = spec is not None and spec.decoder is None and not source.decodes
    return plain and tokens > _PROOF_TOKENS and recorded_bytes(source, tokens) > _LARGE


class SparingRecorder(SpecRecorder):
    """Keeps what each layer read and put out."""

    def __init__(self, model: nn.Module, spec: BlockSpec, sizes: list[int], check: Check | None):
        super().__init__(model, spec, sizes, False, check)
        self.seen: set[int] = set()

    def attention(self, found: Attention) -> None:
        self.seen.add(len(self.records) - 1)

    def keep_rows(self, tensor: Tensor) -> Tensor:
        return tensor.new_empty(0, tensor.shape[-1])  # made again when it is asked for

    def finished(self) -> list[LayerRecord]:
        if len(self.seen) < len(self.records) or not self.records:
            raise UnsupportedModelError(
                f"Not every layer of {type(self.model).__name__} computed an attention that could "
                "be recorded."
            )
        return self.records


class LongTrace(Trace):
    """A trace whose layers run again, one at a time, when they are asked for."""

    def __init__(
        self, model: nn.Module, spec: BlockSpec, inputs: Mapping[str, Tensor],
        layers: list[LayerRecord], output: Any,
    ) -> None:  # fmt: skip
        super().__init__(inputs, layers, output)
        self.model, self.spec, self.held = model, spec, layers
        self.layers = _Layers(self)  # type: ignore[assignment]
        self._filled: tuple[int, LayerRecord] | None = None

    @property
    def attending(self) -> list[int]:
        return list(range(len(self.held)))

    @property
    def heads(self) -> int:
        return int(self.weights(0).shape[-3])

    @property
    def tokens(self) -> int:
        return int(self.held[0].input.shape[-2])

    @property
    def names(self) -> list[str]:
        return [layer.name for layer in self.held]

    def nbytes(self) -> int:
        return sum(layer.input.numel() * layer.input.element_size() for layer in self.held)

    def completed(self, layer: int, map: Tensor) -> Tensor:
        return map

    def weights(self, layer: int) -> Tensor:
        weights = self.record(layer).weights
        assert weights is not None
        return weights

    def block(self, layer: int) -> Block:
        if layer not in self._blocks:
            self._blocks = {}
            self._blocks = {layer: Block(self.record(layer), self.spec)}
            self._errors.setdefault(layer, self._blocks[layer].adds_up())
        return self._blocks[layer]

    def adds_up(self, layer: int) -> float:
        if layer not in self._errors:
            self.block(layer)
        return self._errors[layer]

    def record(self, layer: int) -> LayerRecord:
        """What the layer did, from running it once more on what it read."""
        if self._filled is None or self._filled[0] != layer:
            self._filled, self._blocks = None, {}
            held = self.held[layer]
            one = _Again(self.model, self.spec, [int(held.input.shape[-2])], held.module)
            given = {k: v for k, v in held.arguments.items() if k != "args"}
            with one.hooks(), one.watching, torch.no_grad():
                held.module(held.input[None], *held.arguments.get("args", ()), **given)
            self._filled = layer, one.finished()[0]
            one.records, one.current = [], []  # recorder and tap hold each other for a while
        return self._filled[1]


class _Layers(Sequence[LayerRecord]):
    """The records of a long trace: each is made when it is asked for, and one is held."""

    def __init__(self, trace: LongTrace) -> None:
        self.trace = trace

    def __len__(self) -> int:
        return len(self.trace.held)

    def __getitem__(self, layer: Any) -> Any:
        if isinstance(layer, slice):
            return [self.trace.record(one) for one in range(len(self))[layer]]
        return self.trace.record(range(len(self))[layer])


class _Again(SpecRecorder):
    """Records one layer that runs by itself."""

    def __init__(
        self, model: nn.Module, spec: BlockSpec, sizes: list[int], layer: nn.Module
    ) -> None:
        super().__init__(model, spec, sizes, False, None)
        self.layer = layer

    def hooked(self) -> Iterator[Any]:
        return self._hooks_on(self.layer, self.spec)


@as_it_was
def record_long(source: Source, inputs: Mapping[str, Tensor], check: Check | None = None) -> Trace:
    """One recorded pass of a long text: only what each layer reads is kept."""
    spec = source.anatomy.spec
    assert spec is not None
    check_long(source, int(inputs["input_ids"].shape[1]))
    sizes = [int(inputs["input_ids"].shape[1])]
    recorder = SparingRecorder(source.model, spec, sizes, check)
    head = getattr(source.model, "get_output_embeddings", lambda: None)()
    read: list[Tensor] = []
    hook = None if head is None else head.register_forward_pre_hook(lambda _, x: read.append(x[0]))
    with recorder.hooks(), recorder.watching, torch.no_grad():
        output = source.model(**inputs, **plain_output(source.model))
    if hook is not None:
        hook.remove()
    late = LateLogits.of(output, head, read[0]) if head is not None and len(read) == 1 else None
    output = output if late is None else SimpleNamespace(logits=late)
    return LongTrace(source.model, spec, inputs, recorder.finished(), output)


class LateLogits:
    """Logits [1, n, words] of which rows are made when they are asked for: of a long text they
    would be as large as a layer's attention."""

    def __init__(self, head: nn.Module, states: Tensor) -> None:
        self._head, self._states = head, states

    @classmethod
    def of(cls, output: Any, head: nn.Module, states: Tensor) -> LateLogits | None:
        """None where the head is not all that makes them (a softcap, a scale)."""
        logits = getattr(output, "logits", None)
        if logits is None or logits.shape[:2] != states.shape[:2]:
            return None
        made, last = cls(head, states), slice(-2, None)
        same = torch.allclose(made[:, last], logits[:, last], rtol=1e-5, atol=1e-5)
        return made if same else None

    @as_it_was
    def __getitem__(self, key: Any) -> Tensor:
        with torch.no_grad():
            made: Tensor = self._head(self._states[key])
        return made

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self[:], name)


def sparingly(model: nn.Module, spec: BlockSpec, mode: Callable[[], Any] | None = None) -> None:
    """Have the layers of a shadow forget what they computed, and compute it again on the way back.

    Args:
        mode: gives what is to be entered while a layer runs again.
    """
    for layer in all_at(base_of(model), spec.layers):
        layer.forward = forgetting(layer.forward, mode)


def forgetting(forward: Callable[..., Any], mode: Callable[[], Any] | None) -> Callable[..., Any]:
    """A layer that forgets what it computed and computes it again on the way back, under a mode."""
    again = contextlib.nullcontext if mode is None else mode

    def run(*args: Any, **kwargs: Any) -> Any:
        return checkpoint(
            forward, *args, use_reentrant=False, preserve_rng_state=False,
            context_fn=lambda: (contextlib.nullcontext(), again()), **kwargs,
        )  # fmt: skip

    return run


def positive_attention(
    source: Source,
    run: Callable[[nn.Module], Tensor],
    tokens: int,
    take: Callable[[int, Tensor], None],
) -> None:
    """mean_h relu(dy/dA * A) of every layer, [n, n], from the top down, with no more than one
    layer's attention held at a time.

    Args:
        run: gives y for a shadow, a pass with a graph.
        take: is called with each layer's number and its map.
    """
    spec = source.anatomy.spec
    assert spec is not None
    model = source.shadowed().model
    held: dict[str, Any] = {"forward": True, "layer": 0, "weights": None}

    def saw(found: Attention) -> None:
        weights = found.weights
        if not held["forward"]:
            held["weights"] = weights.detach()
            return
        layer = held["layer"]
        held["layer"] += 1

        def change(slope: Tensor) -> None:
            attention = held["weights"]
            if attention is None or attention.shape != slope.shape:
                raise CostError("A layer did not run again as it did before; shorten the text.")
            made = torch.zeros(slope.shape[-2:], dtype=torch.float64, device=slope.device)
            heads = slope.shape[1]
            for head in range(heads):
                made += (slope[0, head].double() * attention[0, head].double()).relu_()
            held["weights"] = None
            take(layer, made.div_(heads))

        weights.register_hook(change)

    sparingly(model, spec, lambda: Watching(saw, {tokens}))
    with Watching(saw, {tokens}), torch.enable_grad():
        value = run(model)
        held["forward"] = False
    value.sum().backward()
