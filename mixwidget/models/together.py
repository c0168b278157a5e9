"""Several texts in one padded pass, each of them then as if it had run alone.

Padding stands on the right and is masked: no token of a text takes anything from it, so what is
recorded of a text is a slice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from ..blocks import LayerRecord
from .case import Case
from .encode import Encoding
from .gradients import embedded, gradients, look_up, read, source_batches
from .memory import available_bytes, recorded_bytes
from .predict import Row, chunks, most_tokens, pad_id, padded
from .recorder import SpecRecorder
from .source import Source
from .thread import as_it_was
from .trace import Trace, plain_output

# Tokens in one pass, padding included: enough to fill the cores. Above it nothing is gained.
_MOST_TOKENS = 2048
_SHARE = 0.25  # of the memory that is free, for the record of one pass
_GRAPH = 4  # how much larger a graph and its gradients are than the record
_UNKNOWN_BYTES = 2**30  # where nothing says how much is free

Kind = Literal["attention", "input", "output", "embeddings"]
Resolve = Callable[[Any], Any]  # from the output to the target


def runs_together(source: Source) -> bool:
    """Whether texts of a model may share a pass and be told apart afterwards."""
    anatomy = source.anatomy
    return anatomy.spec is not None and not anatomy.decodes and source_batches(source)


def batch_tokens(source: Source, longest: int, differentiated: bool = False) -> int:
    """How many tokens go into one pass, by the memory that is free."""
    free = available_bytes(source.device)
    room = _UNKNOWN_BYTES if free is None else _SHARE * free
    needed = recorded_bytes(source, longest) * (_GRAPH if differentiated else 1)
    texts = int(room / needed)
    return max(1, min(_MOST_TOKENS, most_tokens(source), texts * longest))


def batches(encodings: Sequence[Encoding], tokens: int) -> Iterator[list[int]]:
    """Which texts run together: such of like length and the same inputs, within so many tokens."""
    lengths = [len(one.tokens) for one in encodings]
    kinds: dict[tuple[str, ...], list[int]] = {}
    for i in sorted(range(len(encodings)), key=lengths.__getitem__):
        kinds.setdefault(tuple(encodings[i].inputs), []).append(i)
    for order in kinds.values():
        yield from chunks(order, lengths, tokens)


@dataclass(frozen=True)
class _Pass:
    """What a pass of all texts left: with a graph, the nodes of it."""

    layers: list[LayerRecord]
    output: Any
    embeddings: Any


class Together:
    """Texts that share their passes.

    Attributes:
        source: its model is a shadow, which others may use afterwards.
        differentiated: slopes will be asked for; the recorded pass then brings its graph.
        cases: one for each text; their recorded passes are slices of one.
    """

    def __init__(
        self, source: Source, encodings: Sequence[Encoding], differentiated: bool = False
    ) -> None:
        self.source, self.encodings = source, list(encodings)
        self.differentiated = differentiated
        self.cases = [
            SharedCase(self.source, encoding, self, row) for row, encoding in enumerate(encodings)
        ]
        # For each text what gives its target, once the model's output is known; None for one
        # that nothing is asked of.
        self.resolve: list[Resolve | None] = [None] * len(self.encodings)
        self._lock = threading.Lock()
        self._traces: list[Trace] | None = None
        self._pass: _Pass | None = None
        self._weights: list[Tensor] = []
        self._slopes: dict[tuple[Kind, str], tuple[list[Tensor], list[Tensor]]] = {}

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
        if self.differentiated:
            self._pass = self._run(check)
        made = self._pass or self._run(check)
        texts, longest = len(self.encodings), self.longest
        traces = []
        for row, encoding in enumerate(self.encodings):
            length = len(encoding.tokens)
            layers = [_sliced(layer, row, length, texts, longest) for layer in made.layers]
            traces.append(Trace(encoding.inputs, layers, Row(made.output, row, length)))
        return traces

    def _run(self, check: Callable[[], None] | None) -> _Pass:
        """All texts through the model, with a graph if slopes will be asked for."""
        model, spec, graph = self.source.model, self.source.spec, self.differentiated
        assert spec is not None
        inputs = self.inputs()
        embeddings = look_up(self.source, inputs["input_ids"]) if graph else None
        recorder = _Recorder(model, spec, [self.longest], graph, check)
        with recorder.hooks(), recorder.watching, torch.set_grad_enabled(graph):
            if embeddings is None:
                output = model(**inputs, **plain_output(model))
            else:
                embeddings.requires_grad_()
                with embedded(model, Encoding("", None, [], inputs), embeddings) as given:
                    output = model(**given, **plain_output(model))
        return _Pass(recorder.finished(), output, embeddings)

    def slopes(self, row: int, kind: Kind, of: str) -> tuple[list[Tensor], list[Tensor]]:
        """Of one text: what the layers hold, and its target's slopes there; by one pass forward
        and one back from the sum of all texts' targets, of which each depends on one text."""
        with self._lock:
            if (kind, of) not in self._slopes:
                self._slopes = {(kind, of): self._differentiated(kind, of)}
            nodes, slopes = self._slopes[kind, of]
        length = len(self.encodings[row].tokens)

        def own(whole: Tensor) -> Tensor:
            if kind == "attention":
                return self._by_text(whole)[row, :, :length, :length]
            return whole.reshape(len(self.encodings), self.longest, -1)[row, :length]

        return [own(node) for node in nodes], [own(slope) for slope in slopes]

    def _by_text(self, weights: Tensor) -> Tensor:
        """Attention weights of all texts, [texts, H, n, n]."""
        return weights.reshape(len(self.encodings), -1, self.longest, self.longest)

    @as_it_was
    def _differentiated(self, kind: Kind, of: str) -> tuple[list[Tensor], list[Tensor]]:
        made, self._pass = self._pass or self._run(None), None  # its graph serves once
        if kind == "embeddings":
            nodes = [made.embeddings]
        else:
            name = "weights" if kind == "attention" else kind
            nodes = [getattr(layer, name) for layer in made.layers]
        values = []
        with torch.enable_grad():
            for row, encoding in enumerate(self.encodings):
                if (resolve := self.resolve[row]) is not None:
                    mine: Any = Row(made.output, row, len(encoding.tokens))
                    values.append(read(mine, resolve(mine), of))
            slopes = gradients(torch.cat(values), nodes)
        self._weights = [one.weights.detach() for one in made.layers if one.weights is not None]
        return [node.detach() for node in nodes], slopes

    def weights(self, row: int) -> list[Tensor]:
        """Attention weights of one text in every layer, of the pass that slopes were taken of."""
        length = len(self.encodings[row].tokens)
        return [self._by_text(one)[row, :, :length, :length] for one in self._weights]


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
        return tensor.detach().reshape(texts, longest, -1)[row, :length]

    assert layer.weights is not None
    assert layer.values is not None
    weights = layer.weights.detach().reshape(texts, -1, longest, longest)[row, :, :length, :length]
    features = layer.values.shape[-1]
    values = layer.values.detach().reshape(texts, -1, longest, features)[row, :, :length]
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


def shared_slopes(case: Case, kind: Kind, of: str) -> tuple[list[Tensor], list[Tensor]] | None:
    """What the layers of a text hold and its target's slopes there, if it runs with others."""
    if not isinstance(case, SharedCase):
        return None
    return case.together.slopes(case.row, kind, of)


def shared_weights(case: Case) -> list[Tensor]:
    """Attention weights of the pass that a text's slopes were taken of, [H, n, n] by layer."""
    assert isinstance(case, SharedCase)
    return case.together.weights(case.row)
