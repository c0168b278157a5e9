"""One pass forward and one back under changed rules: attributions for any family.

The first layer's input is the leaf, every layer's input a node; what the rules hand down to
them, times what they are, is their relevance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import NumericsError
from ..tokens import Target
from .elementwise import put_activations
from .ledger import Ledger
from .memory import available_bytes
from .slopes import Activation, SlopeRules
from .source import Source
from .sparing import forgetting
from .stack import Inputs, prediction
from .targets import linear_objective

# A graph of more bytes is made a layer at a time.
_LARGE = 2 * 2**30
_SIZES = ("num_hidden_layers", "num_attention_heads", "hidden_size", "intermediate_size")


@dataclass(frozen=True)
class Attribution:
    """What a backward pass gave.

    Attributes:
        inputs: [n], relevance of what enters the first layer; of encoder-decoders of what enters
            the encoder and the decoder, on one axis.
        layers: [L, n], relevance of what each layer reads; of an encoder-decoder the encoder's
            layers and then the decoder's, on one axis.
        sides: of each of them 0 in an encoder and else 1.
        balance: target = inputs + biases + softmax, and how far that is from holding; and what
            was kept by activations that pass their true derivative, or by functions without a
            rule, under their names.
        rules: how often each rule was met, by kind and function.
    """

    inputs: Tensor
    layers: Tensor
    sides: list[int]
    balance: dict[str, float]
    rules: dict[str, dict[str, int]]


def attribute(
    source: Source,
    inputs: dict[str, Tensor],
    resolve: Callable[[Any], Target],
    *,
    attention: bool,
    activation: Activation = "slope",
    check: Callable[[], None] = lambda: None,
    sparing: bool = False,
) -> Attribution:
    """Run the model forward once and back once under the rules of AttnLRP or CP-LRP.

    Args:
        inputs: the model's inputs, a batch of one.
        resolve: the target, given the model's output.
        attention: whether relevance passes through the softmax (AttnLRP).
        sparing: keep the layers' inputs only, and run each layer again on the way back.
    """

    ledger = Ledger()

    def install(twin: nn.Module, layers: list[nn.Module]) -> SlopeRules:
        ledger.clear()
        rules = SlopeRules(ledger, attention, activation)
        put_activations(twin, rules)
        for layer in layers if sparing else ():
            layer.forward = forgetting(layer.forward, lambda: rules)
        return rules

    def value(output: Any) -> Tensor:
        return linear_objective(output, resolve(output))

    texts = ("input_ids", "decoder_input_ids") if source.decodes else ("input_ids",)
    sizes = [int(inputs[name].shape[1]) for name in texts]
    return _shared(*prediction(source, inputs, value, install, check), ledger, sizes)


def _shared(value: Tensor, reads: Inputs, ledger: Ledger, sizes: list[int]) -> Attribution:
    """`sizes`: tokens of the text, of an encoder-decoder's two texts."""
    nodes = reads.nodes
    extra = [] if reads.embedded is None else [reads.embedded]
    met = {kind: dict(counted) for kind, counted in ledger.met.items() if counted}
    found = torch.autograd.grad(value, [*nodes, *extra], allow_unused=True)
    rows = []
    for node, slope in zip([*nodes, *extra], found, strict=True):
        given = torch.zeros_like(node) if slope is None else slope
        rows.append(by_token((node.detach().double() * given.double()).sum(-1)))
    if extra:
        again = rows.pop()
        if len(again) == len(rows[0]):
            rows[0] = rows[0] + again
    begins = [reads.sides.index(side) for side in sorted(set(reads.sides))]
    layers = torch.stack([placed(*one, sizes) for one in zip(rows, reads.sides, strict=True)])
    entered = layers[begins].sum(0)
    if not bool(torch.isfinite(layers).all()):
        raise NumericsError(
            "The relevance of this prediction holds NaN or infinity. In half precision it may "
            "overflow: load the model in float32."
        )
    inputs, biases = float(entered.sum()), ledger.total("biases")
    softmax, whole = ledger.total("softmax"), float(value.detach())
    others = {name: float(x) for name, x in ledger.kept.items() if name not in _NAMED and float(x)}
    terms = {"target": whole, "inputs": inputs, "biases": biases, "softmax": softmax}
    size = sum(map(abs, terms.values()))
    known = inputs + biases + softmax + others.get("activations", 0.0)
    error = abs(whole - known) / size if size else 0.0
    balance = {**terms, **others, "error": error}
    return Attribution(entered, layers, reads.sides, balance, met)


def by_token(shares: Tensor) -> Tensor:
    """One number for each token. A batch of one stands before the tokens; streams of a token
    stand before the batch (Gemma 3n) or behind the tokens (DeepSeek V4), and are added up."""
    sizes = list(shares.shape)
    if shares.dim() < 3 or 1 not in sizes[:-1]:
        return shares.flatten()
    place = 1 + sizes.index(1)
    others = [axis for axis in range(shares.dim()) if axis != place]
    return shares.sum(others)


def placed(row: Tensor, side: int, lengths: list[int]) -> Tensor:
    """A row of one of the texts on the axis of all tokens; an encoder may have filled it up."""
    whole = row.new_zeros(sum(lengths))
    begin = sum(lengths[:side])
    whole[begin : begin + lengths[side]] = row[: lengths[side]]
    return whole


_NAMED = ("biases", "softmax")


def _size(config: Any, name: str) -> Any:
    try:
        return getattr(config, name, 1)
    except Exception:  # some configs refuse to name what differs from layer to layer
        return 1


def graph_is_large(source: Source, tokens: int) -> bool:
    """Whether the graph of a whole pass would take much of the memory that is free."""
    sizes = [_size(source.model.config, name) for name in _SIZES]
    layers, heads, width, inner = (x if isinstance(x, int) and x else 1 for x in sizes)
    inner = max(inner, 4 * width)
    # Scores, weights and what is masked for each head; about a dozen vectors, four wide ones.
    numbers = layers * tokens * (4 * heads * tokens + 12 * width + 4 * inner)
    free = available_bytes(source.device)
    return numbers * 4 > min(_LARGE, _LARGE if free is None else free // 3)
