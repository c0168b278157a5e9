"""Relevance of a prediction, walked down from the head through the layers in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ..blocks import BlockSpec
from ..tokens import Target
from . import rules
from .encode import Encoding
from .replay import Replay, check_rules, replay
from .shell import Shell, single_targets
from .source import Source
from .trace import Trace

# (layer, relevance that comes to its heads [parts, H, n, d_head]) -> what each head passes on
# of it, a factor [parts, H].
HeadFilter = Callable[[int, Tensor], Tensor]

_KEEP_BYTES = 256 * 2**20


@dataclass
class LayerRelevance:
    """What one layer's walk gives. `parts` are one, or two for a contrast of targets."""

    layer: int
    attention: Tensor  # [parts, H, n, n] R_A, halved, before any head filter
    passed: Tensor  # the same after it
    inputs: Tensor  # [parts, n, d] relevance of what the layer read
    conserved: list[float]  # total relevance below the layer over that at the head, by part


class Walk:
    """Relevance walked down through a model, layer by layer.

    A contrast of two targets is walked for each, as two parts: the rule for sums is not linear
    in relevance, and the two together would cancel. `signs` says how the parts combine.
    """

    def __init__(self, source: Source, encoding: Encoding, trace: Trace, target: Target) -> None:
        check_rules(source.spec, str(getattr(source.model.config, "model_type", "")))
        self.source, self.encoding, self.trace, self.target = source, encoding, trace, target
        self.signs = torch.tensor([1.0, -1.0][: len(single_targets(target))]).double()

    @property
    def spec(self) -> BlockSpec:
        assert self.source.spec is not None  # `check_rules` has seen to it
        return self.source.spec

    def layers(
        self,
        lowest: int = 0,
        head_filter: HeadFilter | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> Iterator[LayerRelevance]:
        """From the top layer down to `lowest`."""
        spec = self.spec
        shell = Shell(self.source, self.encoding, self.trace)
        with torch.no_grad():
            layers, hidden = self._forward(shell, lowest, check)
        relevance = shell.head_relevance(hidden, self.target)
        start = relevance.sum((-1, -2))
        for layer in range(len(self.trace) - 1, lowest - 1, -1):
            check()
            with torch.no_grad():
                values = self._values(layers.pop(), layer)
                attention, passed, relevance = through_layer(
                    values, spec.wiring == "post", relevance.to(values.x.device),
                    None if head_filter is None else _bound(head_filter, layer),
                )  # fmt: skip
                kept = [float(x) for x in relevance.sum((-1, -2)).cpu() / start.cpu()]
            yield LayerRelevance(layer, attention, passed, relevance, kept)

    def combined(self, parts: Tensor) -> Tensor:
        """One result from the parts of a contrast: the first minus the second."""
        return torch.einsum("p,p...->...", self.signs.to(parts.device), parts)

    def _forward(
        self, shell: Shell, lowest: int, check: Callable[[], None]
    ) -> tuple[list[Tensor | Replay], Tensor]:
        """(for every layer what it read, or all its values; what the last put out), float64.

        All values are kept for short texts; for long ones a layer is computed again on the way
        down.
        """
        records = self.trace.layers
        exact = records[0].input.dtype == torch.float64
        hidden = _unbatched(records[0].input) if exact else shell.embedding_output()
        layers: list[Tensor | Replay] = []
        for layer, record in enumerate(records):
            check()
            values = replay(hidden, record, self.spec).waiting()
            keep = layer >= lowest and values.nbytes() * (len(records) - lowest) <= _KEEP_BYTES
            layers.append(values if keep else hidden)
            hidden = values.output
        return layers, hidden

    def _values(self, kept: Tensor | Replay, layer: int) -> Replay:
        record, spec = self.trace.layers[layer], self.spec
        return replay(kept, record, spec) if isinstance(kept, Tensor) else kept.ready(record, spec)


def _bound(head_filter: HeadFilter, layer: int) -> Callable[[Tensor], Tensor]:
    return lambda relevance: head_filter(layer, relevance)


def _unbatched(tensor: Tensor) -> Tensor:
    tensor = tensor.detach()
    return tensor[0] if tensor.dim() == 3 else tensor


def through_layer(
    values: Replay,
    post: bool,
    relevance: Tensor,
    head_filter: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """R of a layer's output [parts, n, d] -> (R_A [parts, H, n, n], what of it heads pass on,
    R of the layer's input).

    Feed-forward sum, second and first projection, join, attention sum, output projection, per
    head A V, scores, the three projections, join. Norms and activations pass R unchanged.
    """
    heads, n, width = values.value.shape

    def linear(name: str, x: Tensor, r: Tensor) -> Tensor:
        return rules.linear(x, values.matrices[name], r, values.products[name])

    def joined(r: Tensor) -> Tensor:
        return r.transpose(-2, -3).reshape(len(r), n, heads * width)

    branch, straight = rules.add(values.ffn_out, values.middle, relevance)
    branch = linear("down", values.inner, branch)
    middle = linear("up", values.ffn_in, branch) + straight

    branch, straight = rules.add(values.attended, values.x, middle)
    branch = linear("out", values.context, branch)
    into_heads = branch.reshape(len(branch), n, heads, width).transpose(1, 2)
    context = values.context.reshape(n, heads, width).transpose(0, 1)
    attention = into_heads.new_empty(len(branch), heads, n, n)
    query, key, value = (torch.empty_like(into_heads) for _ in range(3))
    factor = None if head_filter is None else head_filter(into_heads)[..., None, None]
    for h in range(heads):  # one at a time: n x n in float64 adds up over heads
        attention[:, h], value[:, h] = rules.product(
            values.weights[h], values.value[h], context[h], into_heads[:, h]
        )
        passed = attention[:, h]
        if factor is not None:
            # A product's rule is linear in R: scaling what comes out is scaling what goes in.
            passed, value[:, h] = passed * factor[:, h], value[:, h] * factor[:, h]
        turned = values.key[h].T
        query[:, h], turned_key = rules.product(
            values.query[h], turned, values.query[h] @ turned, passed
        )
        key[:, h] = turned_key.transpose(-1, -2)
    inputs = straight + linear("query", values.read, joined(query))
    inputs += linear("key", values.read, joined(key))
    inputs += linear("value", values.read, joined(value))
    return attention, attention if factor is None else attention * factor, inputs
