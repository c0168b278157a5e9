"""What one layer did in one pass of one text: the record that a block is taken apart from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from .spec import BlockSpec


@dataclass
class LayerRecord:
    """What one layer did in one pass, for one text. n tokens, d features, H heads.

    With `keep_graph` the tensors are nodes of the autograd graph, otherwise plain values.
    """

    module: nn.Module
    spec: BlockSpec
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
