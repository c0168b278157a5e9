"""One forward pass, recorded: what every layer read, attended to, valued and put out."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import NumericsError, UnsupportedModelError
from . import tap
from .algebra import Block
from .blocks import BlockSpec, all_at, at
from .watch import Watching


@dataclass
class LayerRecord:
    """What one layer did in one pass, for one text. n tokens, d features, H heads.

    With `keep_graph` the tensors are nodes of the autograd graph, otherwise plain values.
    """

    module: nn.Module
    input: Tensor  # [n, d] x, what the layer read
    arguments: dict[str, Any] = field(default_factory=dict)  # its other arguments, to run it again
    weights: Tensor | None = None  # [H, n, n] attention after softmax
    values: Tensor | None = None  # [H, n, d_head] values with their bias
    attention_out: Tensor | None = None  # [n, d] after the output projection and its bias
    ffn_in: Tensor | None = None  # [n, d] what the feed-forward's first projection read
    ffn_out: Tensor | None = None  # [n, d] what its second projection put out
    output: Tensor | None = None  # [n, d] o
    wrapped: bool = False  # the layer puts its output into a tuple


class Trace:
    """The record of one forward pass of one text through a model.

    Attributes:
        inputs: the model's inputs, as they were given to it.
        layers: a `LayerRecord` for each layer, in the order they ran.
        output: the model's own output (logits, start_logits, last_hidden_state, ...).
    """

    def __init__(
        self, spec: BlockSpec, inputs: Mapping[str, Tensor], layers: list[LayerRecord], output: Any
    ) -> None:
        self.spec, self.inputs, self.layers, self.output = spec, inputs, layers, output
        self._blocks: dict[int, Block] = {}

    def __len__(self) -> int:
        return len(self.layers)

    @property
    def tokens(self) -> int:
        return int(self.layers[0].input.shape[-2])

    @property
    def heads(self) -> int:
        weights = self.layers[0].weights
        return 0 if weights is None else int(weights.shape[0])

    def weights(self, layer: int) -> Tensor:
        """Attention weights of a layer, [H, n, n]."""
        weights = self.layers[layer].weights
        assert weights is not None  # `record` refuses a pass without attention
        return weights

    def block(self, layer: int) -> Block:
        """The layer taken apart into what each token contributed."""
        if layer not in self._blocks:
            self._blocks[layer] = Block(self.layers[layer], self.spec)
        return self._blocks[layer]

    def adds_up(self, layer: int) -> float:
        """How far the parts are from the model's own numbers in this layer, relative."""
        return self.block(layer).adds_up()

    def nbytes(self) -> int:
        """Memory held, to keep caches bounded."""
        tensors = [
            t for record in self.layers for t in vars(record).values() if isinstance(t, Tensor)
        ]
        return sum(t.numel() * t.element_size() for t in tensors)


def record(
    model: nn.Module,
    inputs: Mapping[str, Tensor],
    spec: BlockSpec,
    *,
    keep_graph: bool = False,
    check: Callable[[], None] | None = None,
) -> Trace:
    """Run `model` once on one text and record every layer.

    Args:
        inputs: keyword arguments of the model with a batch of one.
        keep_graph: keep the autograd graph, for methods that differentiate the pass. The
            inputs must then hold a tensor that requires gradients (`inputs_embeds`).
        check: called before each layer; may raise to stop the pass.
    """
    recorder = _Recorder(model, spec, keep_graph, check)
    with (
        tap.borrowed(model),
        recorder.hooks(),
        Watching(recorder.attention) if spec.by_hand else tap.listening(recorder.attention),
        torch.set_grad_enabled(keep_graph),
    ):
        output = model(**inputs, **plain_output(model))
    return Trace(spec, inputs, recorder.finished(), output)


def plain_output(model: nn.Module) -> dict[str, Any]:
    """Arguments that keep the pass plain: a result with names, and no cache to fill."""
    plain: dict[str, Any] = {"return_dict": True}
    if getattr(getattr(model, "config", None), "use_cache", None):
        plain["use_cache"] = False
    return plain


def base_of(model: nn.Module) -> nn.Module:
    """The model without its head."""
    return getattr(model, "base_model", model)


class _Recorder:
    """Collects `LayerRecord`s while a model runs on the thread that made it."""

    def __init__(
        self,
        model: nn.Module,
        spec: BlockSpec,
        keep_graph: bool,
        check: Callable[[], None] | None,
    ) -> None:
        self.model, self.spec, self.keep_graph, self.check = model, spec, keep_graph, check
        self.thread = threading.get_ident()
        self.records: list[LayerRecord] = []
        self.current: LayerRecord | None = None

    def keep(self, tensor: Tensor) -> Tensor:
        """One text's part of a tensor, in a precision fit for differences."""
        tensor = tensor[0] if self.keep_graph else tensor.detach()[0]
        return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()

    def keep_rows(self, tensor: Tensor) -> Tensor:
        """The same for vectors that a family may have joined over batch and tokens, or that it
        adds to in place afterwards."""
        rows = self.keep(tensor.reshape(1, -1, tensor.shape[-1]))
        return rows if self.keep_graph else rows.clone()

    def attention(self, module: nn.Module, weights: Tensor, values: Tensor) -> None:
        if self.current is not None and self.current.weights is None:
            self.current.weights = weights if self.keep_graph else self.keep(weights)
            self.current.values = self.keep(values)

    @contextlib.contextmanager
    def hooks(self) -> Iterator[None]:
        """Hooks on the layers and three of their parts; all gone when the block ends."""
        handles: list[Any] = []
        try:
            for layer in all_at(base_of(self.model), self.spec.layers):
                handles.append(layer.register_forward_pre_hook(self._enter, with_kwargs=True))
                handles.append(layer.register_forward_hook(self._leave, with_kwargs=True))
                out = at(layer, self.spec.out)
                handles.append(out.register_forward_hook(self._attention_out))
                first = at(layer, self.spec.gate_up or self.spec.up or self.spec.down)
                handles.append(first.register_forward_pre_hook(self._ffn_in))
                down = at(layer, self.spec.down)
                handles.append(down.register_forward_hook(self._ffn_out))
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _ours(self) -> bool:
        # Another thread may run the same model while our hooks are on it.
        return threading.get_ident() == self.thread

    def _enter(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not self._ours():
            return
        if self.check is not None:
            self.check()
        hidden = args[0] if args else kwargs["hidden_states"]
        arguments = {k: v for k, v in kwargs.items() if k != "hidden_states"}
        arguments["args"] = args[1:]
        # With a graph the whole tensor is kept: its slice would be a leaf beside the path.
        read = hidden if self.keep_graph else self.keep(hidden)
        self.current = LayerRecord(module, read, arguments)
        self.records.append(self.current)

    def _leave(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        if self._ours() and self.current is not None:
            hidden = result[0] if isinstance(result, tuple) else result
            self.current.wrapped = isinstance(result, tuple)
            self.current.output = hidden if self.keep_graph else self.keep(hidden)
            self.current = None

    def _attention_out(self, module: nn.Module, args: tuple[Any, ...], result: Tensor) -> None:
        if self._ours() and self.current is not None and self.current.attention_out is None:
            self.current.attention_out = self.keep_rows(result)

    def _ffn_in(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if self._ours() and self.current is not None:
            self.current.ffn_in = self.keep_rows(args[0])

    def _ffn_out(self, module: nn.Module, args: tuple[Any, ...], result: Tensor) -> None:
        if self._ours() and self.current is not None:
            self.current.ffn_out = self.keep_rows(result)

    def finished(self) -> list[LayerRecord]:
        if not self.records:
            raise UnsupportedModelError(
                f"{type(self.model).__name__} ran none of the layers its block spec names."
            )
        for number, layer in enumerate(self.records):
            if layer.weights is None or layer.output is None:
                raise UnsupportedModelError(
                    f"Layer {number} of {type(self.model).__name__} computed no attention that "
                    "could be recorded: it does not go through transformers' AttentionInterface."
                )
            if not bool(torch.isfinite(layer.output).all()):
                raise NumericsError(
                    f"The output of layer {number} holds NaN or infinity. The model's own "
                    "numbers are broken there; look at that layer's weights."
                )
        return self.records
