"""Encoder-decoders: source and prefix contributions in one row.

All n = s + t tokens, the source's and the prefix's, share one axis. An encoder layer moves
the first s rows and leaves the others as they are; a decoder layer is two blocks, its
self-attention (prefix to prefix) and its cross-attention with the feed-forward (source to
prefix, each prefix token keeping itself by the residual). So every block has a square map,
rows that it does not touch are rows of the identity, and rollouts are plain products:
the row of a prefix token holds what came from the source and what from the prefix.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..blocks import Block, Placed

if TYPE_CHECKING:
    from ..blocks import LayerRecord


def joined(records: list[LayerRecord], source: int, prefix: int) -> list[LayerRecord]:
    """Records of encoder layers and decoder blocks, put onto the common axis."""
    made: list[LayerRecord] = []
    sources, targets = slice(0, source), slice(source, source + prefix)
    before: LayerRecord | None = None
    counts: dict[str, int] = {}
    for record in records:
        assert record.spec is not None
        crosses = before is not None and record.module is before.module
        if record.spec.decoder is not None:
            rows = columns = sources
            kind = "encoder {}"
        else:
            rows, columns = targets, sources if crosses else targets
            kind = "decoder {}, over the source" if crosses else "decoder {}, over the prefix"
        number = counts[kind] = counts.get(kind, -1) + 1
        if crosses:
            assert before is not None
            record.input = _block(before).block_output
        elif record.spec.cross is not None:
            # The first half of a decoder layer: its output is what the second half reads.
            assert record.attention_out is not None
            record.ffn_out = torch.zeros_like(record.input)
            record.output = record.input  # a stand-in, until the block can say
            record.output = record.ffn_in = _block(record).block_output
        made.append(_on_axis(record, rows, columns, source + prefix, kind.format(number)))
        before = record
    return made


def _block(record: LayerRecord) -> Block:
    assert record.spec is not None
    return Block(record, record.spec)


def _on_axis(record: LayerRecord, rows: slice, columns: slice, n: int, name: str) -> LayerRecord:
    """A record whose vectors and weights have n rows and columns. Rows that the block does not
    touch attend to nothing; their vectors repeat another row's, to be finite."""
    assert record.weights is not None
    assert record.values is not None
    heads, _, width = record.values.shape
    weights = record.weights.new_zeros(heads, n, n)
    weights[:, rows, columns] = record.weights
    values = record.values.new_zeros(heads, n, width)
    values[:, columns] = record.values

    def vectors(tensor: Tensor | None) -> Tensor:
        assert tensor is not None
        whole = tensor[:1].expand(n, -1).clone()
        whole[rows] = tensor
        return whole

    return replace(
        record,
        input=vectors(record.input),
        weights=weights,
        values=values,
        attention_out=vectors(record.attention_out),
        ffn_in=vectors(record.ffn_in),
        ffn_out=vectors(record.ffn_out),
        output=vectors(record.output),
        rows=rows,
        name=name,
    )


def identity_elsewhere(map: Tensor, rows: slice) -> Tensor:
    """A map whose rows outside `rows` keep their tokens as they are."""
    whole = torch.eye(len(map), dtype=map.dtype, device=map.device)
    whole[rows] = map[rows]
    return whole


def attention_on_axis(name: str, tensor: Tensor, sizes: list[int]) -> Tensor:
    """[1, H, rows, columns] of a block by this name, as [H, n, n] on the axis of all tokens."""
    if len(sizes) == 1:
        return tensor[0]
    source, prefix = sizes
    both = source + prefix
    texts = slice(0, source), slice(source, both)
    rows: slice = texts[name.startswith("decoder")]
    columns: Any = texts[0] if name.endswith("over the source") else rows
    if tensor.shape[-1] == both:  # one attention over both, the prefix before the source
        columns = [*range(source, both), *range(source)]
    return Placed(both, rows, columns).weights(tensor[0])
