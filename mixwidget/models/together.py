"""Several texts in one padded pass, each of them then as if it had run alone.

Padding stands on the right and is masked: no token of a text takes anything from it, so what is
recorded of a text is a slice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..blocks import LayerRecord
from .case import Case
from .encode import Encoding
from .gradients import source_batches
from .memory import available_bytes, recorded_bytes
from .predict import Row, chunks, most_tokens, pad_id, padded
from .recorder import SpecRecorder
from .source import Source
from .thread import as_it_was
from .trace import Trace, plain_output

# Tokens in one pass, padding included: enough to fill the cores. Above it nothing is gained.
_MOST_TOKENS = 2048
_SHARE = 0.25  # of the memory that is free, for the record of one pass
_UNKNOWN_BYTES = 2**30  # where nothing says how much is free


def runs_together(source: Source) -> bool:
    """Whether texts of a model may share a pass and be told apart afterwards."""
    anatomy = source.anatomy
    return anatomy.spec is not None and not anatomy.decodes and source_batches(source)


def batch_tokens(source: Source, longest: int) -> int:
    """How many tokens go into one pass, by the memory that is free."""
    free = available_bytes(source.device)
    room = _UNKNOWN_BYTES if free is None else _SHARE * free
    texts = int(room / recorded_bytes(source, longest))
    return max(1, min(_MOST_TOKENS, most_tokens(source), texts * longest))


def batches(encodings: Sequence[Encoding], tokens: int) -> Iterator[list[int]]:
    """Which texts run together: such of like length and the same inputs, within so many tokens."""
    lengths = [len(one.tokens) for one in encodings]
    kinds: dict[tuple[str, ...], list[int]] = {}
    for i in sorted(range(len(encodings)), key=lengths.__getitem__):
        kinds.setdefault(tuple(encodings[i].inputs), []).append(i)
    for order in kinds.values():
        yield from chunks(order, lengths, tokens)


class Together:
    """Texts that share their passes.

    Attributes:
        source: its model is a shadow, which others may use afterwards.
        cases: one for each text; their recorded passes are slices of one.
    """

    def __init__(self, source: Source, encodings: Sequence[Encoding]) -> None:
        self.source, self.encodings = source, list(encodings)
        self.cases = [
            SharedCase(self.source, encoding, self, row) for row, encoding in enumerate(encodings)
        ]
        self._lock = threading.Lock()
        self._traces: list[Trace] | None = None

    @property
    def longest(self) -> int:
        return max(len(one.tokens) for one in self.encodings)

    def inputs(self) -> dict[str, Tensor]:
        """The model's inputs for all texts, padded on the right."""
        made = {}
        for name in self.encodings[0].inputs:
            pad = pad_id(self.source) if name == "input_ids" else 0
            made[name] = padded([one.inputs[name][0].tolist() for one in self.encodings], pad)
        return {name: tensor.to(self.source.device) for name, tensor in made.items()}

    def trace(self, row: int, check: Callable[[], None] | None = None) -> Trace:
        """One text's part of the recorded pass."""
        with self._lock:
            if self._traces is None:
                self._traces = self._recorded(check)
            return self._traces[row]

    @as_it_was
    def _recorded(self, check: Callable[[], None] | None) -> list[Trace]:
        model, spec = self.source.model, self.source.spec
        assert spec is not None
        texts, longest = len(self.encodings), self.longest
        recorder = _Recorder(model, spec, [longest], False, check)
        with recorder.hooks(), recorder.watching, torch.no_grad():
            output = model(**self.inputs(), **plain_output(model))
        whole = recorder.finished()
        traces = []
        for row, encoding in enumerate(self.encodings):
            length = len(encoding.tokens)
            layers = [_sliced(layer, row, length, texts, longest) for layer in whole]
            traces.append(Trace(encoding.inputs, layers, Row(output, row, length)))
        return traces


class SharedCase(Case):
    """A text among those that share their passes."""

    def __init__(self, source: Source, encoding: Encoding, together: Together, row: int) -> None:
        super().__init__(source, encoding, shadowed=True)
        self.together, self.row = together, row

    def trace(self, check: Callable[[], None] | None = None) -> Trace:
        """This text's part of the recorded pass."""
        if self._trace is None:
            self._trace = self.together.trace(self.row, check)
        return self._trace


class _Recorder(SpecRecorder):
    """Keeps what all texts of a pass did."""

    def keep(self, tensor: Tensor) -> Tensor:
        tensor = tensor if self.keep_graph else tensor.detach()
        return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()

    def keep_rows(self, tensor: Tensor) -> Tensor:
        rows = self.keep(tensor)
        return rows if self.keep_graph else rows.clone()


def _sliced(layer: LayerRecord, row: int, length: int, texts: int, longest: int) -> LayerRecord:
    """What a layer did in one text. Families join texts and tokens, or texts and heads."""

    def vectors(tensor: Tensor | None) -> Any:
        if tensor is None:
            return None
        return tensor.reshape(texts, longest, -1)[row, :length]

    assert layer.weights is not None
    assert layer.values is not None
    weights = layer.weights.reshape(texts, -1, longest, longest)[row, :, :length, :length]
    values = layer.values.reshape(texts, -1, longest, layer.values.shape[-1])[row, :, :length]
    return replace(
        layer,
        input=vectors(layer.input),
        arguments={},  # those of all texts
        weights=weights.contiguous(),
        values=values.contiguous(),
        attention_out=vectors(layer.attention_out),
        ffn_in=vectors(layer.ffn_in),
        ffn_out=vectors(layer.ffn_out),
        output=vectors(layer.output),
    )
