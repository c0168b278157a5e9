"""One forward pass, recorded: what every layer read, attended to, valued and put out."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ..blocks import Block, BlockSpec, LayerRecord, all_at, at
from ..errors import NumericsError, UnsupportedModelError
from . import tap
from .seq2seq import identity_elsewhere, joined
from .source import base_of
from .thread import as_it_was
from .watch import Watching


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
        """The layer taken apart into what each token contributed.

        Only the last one asked for is kept: blocks hold several [n, d] of their own.
        """
        block = self._blocks.get(layer)
        if block is None:
            block = Block(self.layers[layer], self.layers[layer].spec)
            self._blocks = {layer: block}
        return block

    def completed(self, layer: int, map: Tensor) -> Tensor:
        """A layer's map with the tokens that it leaves alone kept as they are."""
        rows = self.layers[layer].rows
        return map if rows == slice(None) else identity_elsewhere(map, rows)

    @property
    def names(self) -> list[str]:
        """What each layer is called; empty where its number says all."""
        return [layer.name for layer in self.layers]

    def adds_up(self, layer: int) -> float:
        """How far the parts are from the model's own numbers in this layer, relative."""
        return self.block(layer).adds_up()

    def nbytes(self) -> int:
        """Memory held, to keep caches bounded."""
        tensors = [
            t for record in self.layers for t in vars(record).values() if isinstance(t, Tensor)
        ]
        return sum(t.numel() * t.element_size() for t in tensors)


@as_it_was
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
        model: a shadow. It gets hooks for the length of the pass.
        inputs: keyword arguments of the model with a batch of one.
        keep_graph: keep the autograd graph, for methods that differentiate the pass. The
            inputs must then hold a tensor that requires gradients (`inputs_embeds`).
        check: called before each layer; may raise to stop the pass.
    """
    recorder = _Recorder(model, spec, keep_graph, check)
    with (
        recorder.hooks(),
        Watching(recorder.attention) if spec.by_hand else tap.listening(recorder.attention),
        torch.set_grad_enabled(keep_graph),
    ):
        output = model(**inputs, **plain_output(model))
    layers = recorder.finished()
    if spec.decoder is not None:
        sizes = (inputs[name].shape[1] for name in ("input_ids", "decoder_input_ids"))
        layers = joined(layers, *sizes)
    return Trace(spec, inputs, layers, output)


def plain_output(model: nn.Module) -> dict[str, Any]:
    """Arguments that keep the pass plain: a result with names, and no cache to fill."""
    if not _takes_return_dict(vars(model).get("forward", type(model).forward)):
        raise UnsupportedModelError(
            f"The forward of {type(model).__name__} takes no return_dict, so its results cannot be "
            "asked for by name. Let it take **kwargs and hand them on to the model inside."
        )
    plain: dict[str, Any] = {"return_dict": True}
    if getattr(getattr(model, "config", None), "use_cache", None):
        plain["use_cache"] = False
    return plain


@functools.lru_cache(64)
def _takes_return_dict(forward: Any) -> bool:
    taken = inspect.signature(forward).parameters
    return "return_dict" in taken or any(p.kind is p.VAR_KEYWORD for p in taken.values())


class _Recorder:
    """Collects `LayerRecord`s while a shadow runs."""

    def __init__(
        self,
        model: nn.Module,
        spec: BlockSpec,
        keep_graph: bool,
        check: Callable[[], None] | None,
    ) -> None:
        self.model, self.spec, self.keep_graph, self.check = model, spec, keep_graph, check
        self.records: list[LayerRecord] = []
        self.current: list[LayerRecord] = []  # the blocks of the layer that runs

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
        for block in self.current:
            if block.weights is None:
                block.weights = weights if self.keep_graph else self.keep(weights)
                block.values = self.keep(values)
                return

    @contextlib.contextmanager
    def hooks(self) -> Iterator[None]:
        """Hooks on the layers and some of their parts; all gone when the block ends."""
        handles: list[Any] = []
        stacks = [self.spec] if self.spec.decoder is None else [self.spec, self.spec.decoder]
        try:
            for stack in stacks:
                for layer in all_at(base_of(self.model), stack.layers):
                    handles.extend(self._hooks_on(layer, stack))
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _hooks_on(self, layer: nn.Module, stack: BlockSpec) -> Iterator[Any]:
        blocks = stack.blocks()
        enter = partial(self._enter, blocks)
        yield layer.register_forward_pre_hook(enter, with_kwargs=True)
        yield layer.register_forward_hook(self._leave, with_kwargs=True)
        for number, spec in enumerate(blocks):
            out = at(layer, spec.out)
            yield out.register_forward_hook(partial(self._attention_out, number))
        last = blocks[-1]
        if last.down is not None:
            first = at(layer, last.gate_up or last.up or last.down)
            yield first.register_forward_pre_hook(self._ffn_in)
            yield at(layer, last.down).register_forward_hook(self._ffn_out)

    def _enter(
        self,
        blocks: list[BlockSpec],
        module: nn.Module,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        if self.check is not None:
            self.check()
        hidden = args[0] if args else kwargs["hidden_states"]
        arguments = {k: v for k, v in kwargs.items() if k != "hidden_states"}
        arguments["args"] = args[1:]
        # With a graph the whole tensor is kept: its slice would be a leaf beside the path.
        read = hidden if self.keep_graph else self.keep(hidden)
        self.current = [LayerRecord(module, spec, read, arguments) for spec in blocks]
        self.records.extend(self.current)

    def _leave(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        hidden = result[0] if isinstance(result, tuple) else result
        for block in self.current:
            block.wrapped = isinstance(result, tuple)
            block.output = hidden if self.keep_graph else self.keep(hidden)
        self.current = []

    def _attention_out(
        self, number: int, module: nn.Module, args: tuple[Any, ...], result: Tensor
    ) -> None:
        if self.current and self.current[number].attention_out is None:
            self.current[number].attention_out = self.keep_rows(result)

    def _ffn_in(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if self.current:
            self.current[-1].ffn_in = self.keep_rows(args[0])

    def _ffn_out(self, module: nn.Module, args: tuple[Any, ...], result: Tensor) -> None:
        if self.current:
            self.current[-1].ffn_out = self.keep_rows(result)

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
