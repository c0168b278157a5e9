"""One forward pass, recorded: what every layer read, attended to, valued and put out."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from ..blocks import Block, LayerRecord, Placed, TapedBlock
from ..errors import UnsupportedModelError
from .seq2seq import identity_elsewhere


class Trace:
    """The record of one forward pass of one text through a model.

    Attributes:
        inputs: the model's inputs, as they were given to it.
        layers: a `LayerRecord` for each layer, in the order they ran.
        output: the model's own output (logits, start_logits, last_hidden_state, ...).
    """

    def __init__(
        self, inputs: Mapping[str, Tensor], layers: list[LayerRecord], output: Any
    ) -> None:
        self.inputs, self.layers, self.output = inputs, layers, output
        self._blocks: dict[int, Block] = {}
        self._errors: dict[int, float] = {}  # of the blocks that were asked for

    def __len__(self) -> int:
        return len(self.layers)

    @property
    def tokens(self) -> int:
        first = self.layers[0]
        return int(first.input.shape[-2]) if first.place is None else first.place.tokens

    @property
    def attending(self) -> list[int]:
        """The layers that compute an attention; the others mix tokens in another way."""
        return [i for i, layer in enumerate(self.layers) if layer.weights is not None]

    def written(self, layer: int) -> float:
        """The share of what leaves a layer that the layer wrote: the length of its change to the
        stream over that and the stream's, averaged over tokens."""
        record = self.layers[layer]
        assert record.output is not None
        change = (record.output - record.input).norm(dim=-1)
        return float((change / (change + record.input.norm(dim=-1)).clamp(min=1e-30)).mean())

    @property
    def heads(self) -> int:
        return int(self.weights(self.attending[0]).shape[-3])

    def weights(self, layer: int) -> Tensor:
        """Attention weights of a layer, [H, n, n]; of a pass with a graph [1, H, rows, columns],
        the node that the product with the values reads."""
        record = self.layers[layer]
        assert record.weights is not None  # asked of layers that attend
        if record.place is None or record.weights.dim() == 4:
            return record.weights
        return record.place.weights(record.weights)

    def on_axis(self, layer: int, tensor: Tensor) -> Tensor:
        """[1, H, rows, columns] of a pass with a graph, or its gradient, as [H, n, n]."""
        place = self.layers[layer].place
        return tensor[0] if place is None else place.weights(tensor[0])

    def block(self, layer: int) -> Block:
        """The layer taken apart into what each token contributed.

        Only the last one asked for is kept: blocks hold several [n, d] of their own.
        """
        block = self._blocks.get(layer)
        if block is None:
            block = self._taken_apart(self.layers[layer])
            self._blocks = {layer: block}
            if self.layers[layer].taped is not None and layer not in self._errors:
                # What is solved for the proof is what methods ask for next.
                self._errors[layer] = block.adds_up()
        return block

    def _taken_apart(self, record: LayerRecord) -> Block:
        taped = record.taped
        if taped is None:
            assert record.spec is not None
            return Block(record, record.spec)
        assert record.output is not None
        return TapedBlock(
            taped.nodes,
            taped.stream,
            taped.end,
            record.output,
            record.place or Placed(self.tokens),
            taped.known,
            taped.number,
            taped.again,
        )

    def completed(self, layer: int, map: Tensor) -> Tensor:
        """A layer's map with the tokens that it leaves alone kept as they are."""
        rows = self.layers[layer].rows
        return map if rows == slice(None) else identity_elsewhere(map, rows)

    def forget(self) -> None:
        """Let the blocks be taken apart anew: more is known of the model."""
        self._blocks, self._errors = {}, {}

    @property
    def names(self) -> list[str]:
        """What each layer is called; empty where its number says all."""
        return [layer.name for layer in self.layers]

    def adds_up(self, layer: int) -> float:
        """How far the parts are from the model's own numbers in this layer, relative."""
        if self.layers[layer].weights is None:
            return 0.0  # nothing was taken apart
        if layer not in self._errors:
            self._errors[layer] = self.block(layer).adds_up()
        return self._errors[layer]

    def nbytes(self) -> int:
        """Memory held, to keep caches bounded."""
        tensors = [
            t for record in self.layers for t in vars(record).values() if isinstance(t, Tensor)
        ]
        return sum(t.numel() * t.element_size() for t in tensors)


def plain_output(model: nn.Module) -> dict[str, Any]:
    """Arguments that keep the pass plain: a result with names, and no cache to fill."""
    taken = _taken(vars(model).get("forward", type(model).forward))
    if not taken & {"return_dict", "**"}:
        raise UnsupportedModelError(
            f"The forward of {type(model).__name__} takes no return_dict, so its results cannot be "
            "asked for by name. Let it take **kwargs and hand them on to the model inside."
        )
    # One that only hands it on may set it itself; the configs of a shadow say it, too.
    return {"return_dict": True, **({"use_cache": False} if "use_cache" in taken else {})}


def takes(model: nn.Module, name: str) -> bool:
    """Whether the model's forward has an argument of this name."""
    return name in _taken(vars(model).get("forward", type(model).forward))


@functools.lru_cache(64)
def _taken(forward: Any) -> set[str]:
    """Names of what a forward takes, "**" if it takes any."""
    named = inspect.signature(forward).parameters
    return {*named, *("**" for p in named.values() if p.kind is p.VAR_KEYWORD)}


def base_of(model: Any) -> Any:
    """The model without its head."""
    return getattr(model, "base_model", model)
