"""What one layer did in one pass of one text: the record that a block is taken apart from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from .nodes import Attention, Nodes
from .spec import BlockSpec

# Matrices that are kept for a model, in numbers.
_KEEP = 2**26


@dataclass
class Known:
    """What has been found out about a model: its matrices, by (layer, stage)."""

    matrices: dict[tuple[int, str], Tensor] = field(default_factory=dict)
    apart: set[tuple[int, str]] = field(default_factory=set)  # proved to leave tokens apart

    # Blocks whose layers mix tokens beside their attention: what that wrote belongs to no token.
    beside: set[int] = field(default_factory=set)

    def keep(self, key: tuple[int, str], matrix: Tensor) -> None:
        held = sum(m.numel() for m in self.matrices.values())
        if held + matrix.numel() <= _KEEP:
            self.matrices[key] = matrix


@dataclass(frozen=True)
class Placed:
    """Where a block's tokens lie on the axis of all tokens: the rows that it moves, the columns
    that it takes from."""

    tokens: int
    rows: slice = field(default_factory=lambda: slice(None))
    columns: Any = field(default_factory=lambda: slice(None))

    @property
    def whole(self) -> bool:
        return self.rows == slice(None) and self.columns == slice(None)

    def vectors(self, tensor: Tensor) -> Tensor:
        """[rows, d] -> [n, d]; elsewhere another row's, to be finite."""
        if self.rows == slice(None):
            return tensor
        made = tensor[:1].expand(self.tokens, -1).clone()
        made[self.rows] = tensor
        return made

    def weights(self, tensor: Tensor) -> Tensor:
        """[..., rows, columns] -> [..., n, n], nothing elsewhere."""
        if self.whole:
            return tensor
        made = tensor.new_zeros(*tensor.shape[:-2], self.tokens, self.tokens)
        inside = tensor.new_zeros(*tensor.shape[:-2], tensor.shape[-2], self.tokens)
        inside[..., self.columns] = tensor
        made[..., self.rows, :] = inside
        return made

    def scores(self, tensor: Tensor) -> Tensor:
        """[rows] -> [n], nothing elsewhere."""
        made = tensor.new_zeros(self.tokens)
        made[self.rows] = tensor[: len(made[self.rows])]
        return made

    def values(self, tensor: Tensor) -> Tensor:
        """[H, columns, d_head] -> [H, n, d_head]"""
        if self.columns == slice(None):
            return tensor
        made = tensor.new_zeros(tensor.shape[0], self.tokens, tensor.shape[-1])
        made[:, self.columns] = tensor
        return made


@dataclass(frozen=True)
class Taped:
    """What the tape kept of one attention of a layer.

    Attributes:
        nodes: its way into the residual stream.
        stream: the node that the residual comes from.
        end: the node that is the block's output.
        known, number: the model's matrices, and which block of the pass this is.
        again: the block's output with one source token's values away.
    """

    nodes: Nodes
    stream: Tensor
    end: Tensor
    known: Known
    number: int
    again: Callable[[int | None], Tensor]


@dataclass
class LayerRecord:
    """What one layer did in one pass, for one text. n tokens, d features, H heads.

    With `keep_graph` the tensors are nodes of the autograd graph, otherwise plain values.
    """

    module: nn.Module
    spec: BlockSpec | None
    input: Tensor  # [n, d] x, what the layer read
    arguments: dict[str, Any] = field(default_factory=dict)  # its other arguments, to run it again
    weights: Tensor | None = None  # [H, n, n] attention after softmax
    values: Tensor | None = None  # [H, n, d_head] values with their bias
    attention_out: Tensor | None = None  # [n, d] after the output projection and its bias
    ffn_in: Tensor | None = None  # [n, d] what the feed-forward's first projection read
    ffn_out: Tensor | None = None  # [n, d] what its second projection put out
    output: Tensor | None = None  # [n, d] o
    wrapped: bool = False  # the layer puts its output into a tuple
    name: str = ""
    # The tokens that this block moves: all of them, but in encoder-decoders.
    rows: slice = field(default_factory=lambda: slice(None))
    place: Placed | None = None
    # Without attention: runs the layer with one token's vector away from what its mixer reads.
    again: Callable[[int | None], Tensor] | None = None
    turned: bool = False  # tokens are the last axis of what the layer reads and puts out
    attention: Attention | None = None
    taped: Taped | None = None
