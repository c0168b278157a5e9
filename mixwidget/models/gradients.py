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

from ..errors import NumericsError, UnsupportedMethodError
from ..tokens import Target
from .encode import Encoding
from .recording import record
from .source import Source, table_of
from .sparing import is_long, sparingly
from .targets import objective, probability
from .trace import Trace, plain_output


def token_embeddings(source: Source, ids: Tensor, first_row: int = 0) -> Tensor:
    """Word embeddings of ids [n], as a fresh leaf [1, n, d].

    In an encoder-decoder the first `first_row` of them are read by the encoder, which may have
    another table than the decoder.
    """
    ids = ids.to(source.device)
    with torch.no_grad():
        if not first_row:
            return _looked_up(_table(source.model), ids).clone()
        encoder, decoder = _both_tables(source.model)
        parts = [_looked_up(encoder, ids[:first_row]), _looked_up(decoder, ids[first_row:])]
        return torch.cat(parts, 1)


def look_up(source: Source, ids: Tensor) -> Tensor:
    """Word embeddings of the ids of several texts [batch, n], as a fresh leaf [batch, n, d]."""
    with torch.no_grad():
        return torch.cat([_looked_up(_table(source.model), row) for row in ids])


def _looked_up(table: nn.Module, ids: Tensor) -> Tensor:
    made = table(ids[None])
    return made[0] if isinstance(made, tuple) else made  # I-BERT gives a scale with them


def _table(model: Any) -> nn.Module:
    table = table_of(model)
    if not isinstance(table, nn.Module):
        raise UnsupportedMethodError(
            f"{type(model).__name__} has no table of embeddings that its tokens are looked up in "
            "(get_input_embeddings), so a prediction cannot be followed down to them."
        )
    return table


def _both_tables(model: Any) -> tuple[nn.Module, nn.Module]:
    """The embeddings that an encoder-decoder's encoder and decoder look tokens up in."""
    return _table(model.get_encoder()), _table(model.get_decoder())


def _tables(model: Any, encoding: Encoding) -> list[nn.Module]:
    if not encoding.first_row:
        return [_table(model)]
    return list(dict.fromkeys(_both_tables(model)))  # one table, if it is shared


@contextlib.contextmanager
def embedded(model: Any, encoding: Encoding, embeddings: Tensor) -> Iterator[dict[str, Tensor]]:
    """Inputs with which a shadow reads embeddings [batch, n, d] in the place of its tokens'.

    It is given the tokens' ids, and what its tables look up is overruled: given embeddings
    instead of ids some models do not run, and some leave out a scaling (Marian, ESM).
    """
    overruled = _Overruled(embeddings, encoding.first_row)
    held = [table.register_forward_hook(overruled) for table in _tables(model, encoding)]
    try:
        yield {
            name: tensor.expand(len(embeddings), *tensor.shape[1:])
            for name, tensor in encoding.inputs.items()
        }
    finally:
        for handle in held:
            handle.remove()
    overruled.check(type(model).__name__)


class _Overruled:
    """The embeddings of one text, or of source and prefix, for the tables that look them up."""

    def __init__(self, embeddings: Tensor, first: int) -> None:
        parts = [embeddings[:, :first], embeddings[:, first:]] if first else [embeddings]
        self.parts, self.read = parts, [0] * len(parts)

    def __call__(self, table: nn.Module, arguments: Any, looked_up: Any) -> Any:
        if isinstance(looked_up, tuple):
            instead = self(table, arguments, looked_up[0])
            return None if instead is None else (instead, *looked_up[1:])
        fits = [i for i, part in enumerate(self.parts) if part.shape == looked_up.shape]
        if not fits:  # XLNet has the tokens first, then the texts
            turned = [part.transpose(0, 1) for part in self.parts]
            fits = [i for i, part in enumerate(turned) if part.shape == looked_up.shape]
            if fits:
                self.read[fits[0]] += 1
                return turned[fits[0]] * 1
            return None
        which = min(fits, key=lambda i: self.read[i])  # the encoder reads first
        self.read[which] += 1
        return self.parts[which] * 1

    def check(self, model: str) -> None:
        if not all(self.read):
            raise UnsupportedMethodError(
                f"{model} does not look its tokens up in its table of embeddings as a module "
                "(get_input_embeddings), so a prediction cannot be followed down to them."
            )


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

    With `own` the source's model is a shadow of nobody else's. `resolve` gives the target: it is
    asked with what the first pass puts out. `before` is called with the number of rows ahead of
    every pass and may raise to stop.
    """

    def __init__(
        self,
        source: Source,
        encoding: Encoding,
        resolve: Callable[[Any], Target],
        of: str,
        before: Callable[[int], None] = lambda rows: None,
        own: bool = False,
    ) -> None:
        self.source = source if own else source.shadowed()  # its tables get hooks
        if not own and is_long(source, len(encoding.tokens)):
            spec = source.anatomy.spec
            assert spec is not None
            sparingly(self.source.model, spec)
        self.encoding, self.resolve, self.of = encoding, resolve, of
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
        return read(output, self.resolve(output), self.of)


def source_batches(source: Source) -> bool:
    """Whether the model takes several texts at once: a causal classifier that knows no
    padding token cannot tell where each of them ends."""
    ends_count = source.task == "classification" and source.anatomy.causal
    return not (ends_count and getattr(source.model.config, "pad_token_id", None) is None)


def recorded_with_graph(
    source: Source, encoding: Encoding, check: Callable[[], None] | None = None
) -> tuple[Trace, Tensor]:
    """A recorded pass whose layers are nodes of the graph, and the embeddings [1, n, d]."""
    embeddings = token_embeddings(source, encoding.ids, encoding.first_row).requires_grad_()
    # Hooks and nodes of the graph stay with this pass.
    model = source.shadowed().model
    with torch.enable_grad(), embedded(model, encoding, embeddings) as inputs:
        trace = record(model, inputs, source.anatomy, keep_graph=True, check=check)
    return trace, embeddings


def gradients(value: Tensor, nodes: list[Tensor]) -> list[Tensor]:
    """d value / d node for every node; zeros where the value does not depend on one."""
    if not all(node.requires_grad for node in nodes):
        raise UnsupportedMethodError(
            "A part of this model's pass is run without gradients by the model itself (as in "
            "training of recurrent depth), so a prediction cannot be followed down through it."
        )
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
