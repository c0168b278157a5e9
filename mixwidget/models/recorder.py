"""What stands on a shadow while it is recorded: hooks on its layers, and the tap."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ..blocks import Attention, BlockSpec, LayerRecord, all_at, at
from ..errors import NumericsError, UnsupportedModelError
from .tap import Watching
from .trace import base_of

Check = Callable[[], None]


class Recorder:
    """Collects `LayerRecord`s while a shadow runs."""

    taped = False

    def __init__(
        self, model: nn.Module, sizes: list[int], keep_graph: bool, check: Check | None
    ) -> None:
        self.model, self.sizes, self.keep_graph, self.check = model, sizes, keep_graph, check
        self.records: list[LayerRecord] = []
        self.current: list[LayerRecord] = []  # the blocks of the layer that runs
        self.outside = 0  # attentions that belong to no layer
        self.watching: Watching = Watching(self.attention, self.lengths)

    @property
    def lengths(self) -> set[int]:
        """How many tokens there are on either side of an attention."""
        return {*self.sizes, sum(self.sizes)}

    def keep(self, tensor: Tensor) -> Tensor:
        """One text's part of a tensor, in a precision fit for differences."""
        return self.kept(tensor[0])

    def kept(self, tensor: Tensor) -> Tensor:
        """The same of a tensor of one text."""
        tensor = tensor if self.keep_graph else tensor.detach()
        return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()

    def attention(self, found: Attention) -> None:
        for block in self.current:
            if block.weights is None:
                block.weights = found.weights if self.keep_graph else self.keep(found.weights)
                block.values = self.kept(found.values)
                return
        self.outside += 1

    @contextlib.contextmanager
    def hooks(self) -> Iterator[None]:
        """Hooks on the layers and some of their parts; all gone when the block ends."""
        handles: list[Any] = []
        try:
            handles.extend(self.hooked())
            yield
        finally:
            self.watching.stop()
            for handle in handles:
                handle.remove()

    def watched(self, proved: bool) -> contextlib.AbstractContextManager[Any]:
        """The tap, for the length of a pass. `proved`: of a model whose attentions are known to
        be those of its layers."""
        return self.watching

    def hooked(self) -> Iterator[Any]:
        raise NotImplementedError

    def finished(self) -> list[LayerRecord]:
        name = type(self.model).__name__
        if not self.records:
            raise UnsupportedModelError(f"{name} ran none of the layers it was to run.")
        if self.outside:
            raise UnsupportedModelError(
                f"{name} computes {self.outside} attentions outside of its layers, which are no "
                "part of its residual stream."
            )
        for number, layer in enumerate(self.records):
            if layer.output is not None and not bool(torch.isfinite(layer.output).all()):
                raise NumericsError(
                    f"The output of layer {number} holds NaN or infinity. The model's own "
                    "numbers are broken there; look at that layer's weights."
                )
        return self.records


class SpecRecorder(Recorder):
    """For models whose parts a spec names."""

    def __init__(
        self,
        model: nn.Module,
        spec: BlockSpec,
        sizes: list[int],
        keep_graph: bool,
        check: Check | None,
    ) -> None:
        super().__init__(model, sizes, keep_graph, check)
        self.spec = spec
        self.narrow = False  # only from a layer's beginning to its attention's projection

    def watched(self, proved: bool) -> contextlib.AbstractContextManager[Any]:
        """Of a proved model only where attentions are: each function that is looked at takes a
        microsecond or two."""
        self.narrow = proved
        return contextlib.nullcontext() if proved else self.watching

    def keep_rows(self, tensor: Tensor) -> Tensor:
        """The same for vectors that a family may have joined over batch and tokens, or that it
        adds to in place afterwards."""
        rows = self.keep(tensor.reshape(1, -1, tensor.shape[-1]))
        return rows if self.keep_graph else rows.clone()

    def hooked(self) -> Iterator[Any]:
        stacks = [self.spec] if self.spec.decoder is None else [self.spec, self.spec.decoder]
        for stack in stacks:
            for layer in all_at(base_of(self.model), stack.layers):
                yield from self._hooks_on(layer, stack)

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
        if self.narrow:
            self.watching.start()

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
        if self.narrow and number == len(self.current) - 1:
            self.watching.stop()
        if self.current and self.current[number].attention_out is None:
            self.current[number].attention_out = self.keep_rows(result)

    def _ffn_in(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if self.current:
            self.current[-1].ffn_in = self.keep_rows(args[0])

    def _ffn_out(self, module: nn.Module, args: tuple[Any, ...], result: Tensor) -> None:
        if self.current:
            self.current[-1].ffn_out = self.keep_rows(result)

    def finished(self) -> list[LayerRecord]:
        for number, layer in enumerate(super().finished()):
            if layer.weights is None or layer.output is None:
                raise UnsupportedModelError(
                    f"Layer {number} of {type(self.model).__name__} computed no attention of the "
                    "text's tokens to each other that could be recorded."
                )
        return self.records
