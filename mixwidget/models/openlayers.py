"""Layers that are no modules: where a model adds what its attention puts out to the residual
stream itself (XLM), a layer goes from one attention module to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ..blocks import Attention, LayerRecord
from ..errors import UnsupportedModelError
from .again import arguments_of, first_tensor, in_digits, with_hidden
from .tap import Watching
from .taperecorder import TapeRecorder, cut
from .trace import plain_output


class OpenRecorder(TapeRecorder):
    """Begins a layer where an attention module is entered, and ends it where the next one is, or
    where the module that holds them all is left."""

    inputs: Mapping[str, Tensor]  # of the pass, to make it again
    module: nn.Module  # whose layer is open

    def hooked(self) -> Iterator[Any]:
        layers = self.layers()
        for layer in layers:
            yield layer.register_forward_pre_hook(self._next, with_kwargs=True)
        yield holder_of(self.model, layers[0]).register_forward_hook(self._last)

    def _next(self, module: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
        hidden = self.read(args, kwargs, module)
        if self.check is not None:
            self.check()
        if self.given is not None:
            self.close(self.module, hidden)
        self.module, self.depth = module, 1
        self.calls, self.arguments = [], arguments_of(args, kwargs)
        if not self.taped:
            self.given = (hidden, hidden)
            return None
        leaf, given = self.tape.begin(hidden, everywhere=True)
        self.given = (leaf, hidden)
        return with_hidden(args, kwargs, given)

    def _last(self, module: nn.Module, args: Any, result: Any) -> Any:
        if self.given is None:
            return None
        self.close(self.module, first_tensor(result))
        self.depth = 0
        return cut(result) if self.taped else None

    def again(
        self, record: LayerRecord, hidden: Tensor, which: int, last: bool
    ) -> Callable[[int | None], Tensor]:
        if not last:
            raise UnsupportedModelError(
                f"{type(self.model).__name__} computes two attentions in a layer that is no "
                "module of its own, which is not understood."
            )
        return _WholeAgain(self.model, self.inputs, self.lengths, self.layers(), len(self.records))


class _WholeAgain:
    """A layer that is no module, run again with a token's values away: with all before it."""

    def __init__(
        self,
        model: nn.Module,
        inputs: Mapping[str, Tensor],
        lengths: set[int],
        layers: list[nn.Module],
        number: int,
    ) -> None:
        self.model, self.inputs, self.lengths = model, inputs, lengths
        self.layers, self.number = layers, number

    def __call__(self, source: int | None) -> Tensor:
        """[rows, d]; with None nothing is away."""
        seen, entered, held = -1, -1, []

        def without(found: Attention) -> Tensor | None:
            nonlocal seen
            seen += 1
            return None if seen != self.number or source is None else found.without(source)

        def keep(module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
            nonlocal entered
            entered += 1
            if entered == self.number + 1:
                held.append(args[0] if args else kwargs["hidden_states"])

        def keep_last(module: nn.Module, args: Any, result: Any) -> None:
            held.append(first_tensor(result))

        handles = [one.register_forward_pre_hook(keep, with_kwargs=True) for one in self.layers]
        handles.append(holder_of(self.model, self.layers[0]).register_forward_hook(keep_last))
        try:
            with torch.no_grad(), Watching(without, self.lengths):
                self.model(**self.inputs, **plain_output(self.model))
        finally:
            for handle in handles:
                handle.remove()
        out = held[0]
        return in_digits(out).reshape(-1, out.shape[-1])


def holder_of(model: nn.Module, layer: nn.Module) -> nn.Module:
    """The module whose list holds a layer."""
    for module in model.modules():
        lists = [one for one in module.children() if isinstance(one, nn.ModuleList)]
        if any(item is layer for one in lists for item in one):
            return module
    return model
