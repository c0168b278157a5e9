"""A prediction as a function of the token embeddings, for methods that differentiate it.

The word embeddings are the variable; positions and segments are held. Gradients are asked
for by name and never accumulate on the model's parameters, which may be frozen.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import NumericsError
from ..tokens import Target
from .encode import Encoding
from .shadow import shadow
from .source import Source
from .targets import objective, probability
from .trace import Trace, plain_output, record


def token_embeddings(source: Source, ids: Tensor, first_row: int = 0) -> Tensor:
    """Word embeddings of ids [n], as a fresh leaf [1, n, d].

    In an encoder-decoder the first `first_row` of them are read by the encoder, which may have
    another table than the decoder.
    """
    ids = ids.to(source.device)
    with torch.no_grad():
        if not first_row:
            return source.model.get_input_embeddings()(ids).unsqueeze(0).clone()
        encoder, decoder = _tables(source.model)
        return torch.cat([encoder(ids[:first_row]), decoder(ids[first_row:])]).unsqueeze(0)


def _tables(model: Any) -> tuple[nn.Module, nn.Module]:
    """The embeddings that an encoder-decoder's encoder and decoder look tokens up in."""
    return model.get_encoder().get_input_embeddings(), model.get_decoder().get_input_embeddings()


@contextlib.contextmanager
def embedded(model: Any, encoding: Encoding, embeddings: Tensor) -> Iterator[dict[str, Tensor]]:
    """Inputs with which the model reads embeddings [batch, n, d] in the place of its tokens'.

    An encoder-decoder is given its tokens and its tables are overruled: some (Marian) scale
    what they look up but not what they are given.
    """
    first = encoding.first_row
    if not first:
        yield others(encoding, embeddings)
        return
    halves = iter((embeddings[:, :first], embeddings[:, first:]))  # the encoder reads first

    def overrule(table: nn.Module, arguments: Any, looked_up: Tensor) -> Tensor:
        return next(halves)

    tables = dict.fromkeys(_tables(model))  # one table, if it is shared
    held = [table.register_forward_hook(overrule) for table in tables]
    try:
        yield {
            name: tensor.expand(len(embeddings), *tensor.shape[1:])
            for name, tensor in encoding.inputs.items()
        }
    finally:
        for handle in held:
            handle.remove()


def others(encoding: Encoding, embeddings: Tensor) -> dict[str, Tensor]:
    """The model's inputs with embeddings [batch, n, d] in the place of the ids."""
    held = {
        name: tensor.expand(len(embeddings), *tensor.shape[1:])
        for name, tensor in encoding.inputs.items()
        if name != "input_ids"
    }
    return {**held, "inputs_embeds": embeddings}


def read(output: Any, target: Target, of: str) -> Tensor:
    """F, [batch]: the target's probability or its logit."""
    return objective(output, target) if of == "logit" else probability(output, target)


class Prediction:
    """F(e) for embeddings e [batch, n, d] -> [batch]; a pass per call.

    `before` is called with the number of rows ahead of every pass and may raise to stop.
    """

    def __init__(
        self,
        source: Source,
        encoding: Encoding,
        target: Target,
        of: str,
        before: Callable[[int], None] = lambda rows: None,
    ) -> None:
        # An encoder-decoder's tables get hooks: on a model that nobody else runs.
        self.source = source.shadowed() if encoding.first_row else source
        self.encoding, self.target, self.of = encoding, target, of
        self.before = before

    def __call__(self, embeddings: Tensor) -> Tensor:
        if source_batches(self.source) or len(embeddings) == 1:
            return self._run(embeddings)
        return torch.cat([self._run(row) for row in embeddings.split(1)])

    def _run(self, embeddings: Tensor) -> Tensor:
        self.before(len(embeddings))
        model = self.source.model
        with embedded(model, self.encoding, embeddings) as inputs:
            output = model(**inputs, **plain_output(model))
        return read(output, self.target, self.of)


def source_batches(source: Source) -> bool:
    """Whether the model takes several texts at once: a causal classifier that knows no
    padding token cannot tell where each of them ends."""
    ends_count = source.task == "classification" and source.spec.causal
    return not (ends_count and getattr(source.model.config, "pad_token_id", None) is None)


def recorded_with_graph(
    source: Source, encoding: Encoding, check: Callable[[], None] | None = None
) -> tuple[Trace, Tensor]:
    """A recorded pass whose layers are nodes of the graph, and the embeddings [1, n, d]."""
    embeddings = token_embeddings(source, encoding.ids).requires_grad_()
    with torch.enable_grad():
        trace = record(
            shadow(source.model),  # hooks and nodes of the graph stay with this pass
            others(encoding, embeddings),
            source.spec,
            keep_graph=True,
            check=check,
        )
    return trace, embeddings


def gradients(value: Tensor, nodes: list[Tensor]) -> list[Tensor]:
    """d value / d node for every node; zeros where the value does not depend on one."""
    found = torch.autograd.grad(value.sum(), nodes, allow_unused=True)
    filled = [
        torch.zeros_like(node) if gradient is None else gradient
        for gradient, node in zip(found, nodes, strict=True)
    ]
    if not all(bool(torch.isfinite(gradient).all()) for gradient in filled):
        raise NumericsError(
            "The gradients of this prediction hold NaN or infinity. In half precision they may "
            "overflow: load the model in float32."
        )
    return filled
