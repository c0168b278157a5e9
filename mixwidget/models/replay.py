"""A recorded layer computed again in float64, with every value that relevance rules read.

Relevance divides by sums that nearly cancel: what float32 leaves of them is off by percents.
So the layers run once more in float64, one at a time, from the block spec alone; the recorded
pass says whether the result is right.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from ..blocks import BlockSpec, LayerRecord, Norm, at, linear_weights
from ..errors import UnsupportedMethodError

# Farther than this from the recorded pass, relative, the layer is not what its spec says. In half
# precision the recorded pass itself is off, more with every layer.
_TOLERANCE = 1e-3
_HALF_TOLERANCE = 0.25


@dataclass
class Replay:
    """One layer's values in float64. n tokens, H heads. Weights are [out, in]."""

    x: Tensor  # [n, d] what the layer read
    read: Tensor  # [n, d] what its attention read
    query: Tensor  # [H, n, d_head]
    key: Tensor
    value: Tensor
    weights: Tensor  # [H, n, n] attention after softmax
    context: Tensor  # [n, H * d_head] the heads' results, joined
    attended: Tensor  # [n, d] after the output projection
    ffn_in: Tensor  # [n, d]
    inner: Tensor  # [n, d_inner] after the activation
    ffn_out: Tensor  # [n, d]
    middle: Tensor  # [n, d] what the feed-forward's result is added to
    output: Tensor  # [n, d]
    products: dict[str, Tensor]  # x W^T of every projection, without its bias
    matrices: dict[str, Tensor]  # its weight; empty while the layer waits for its turn

    def waiting(self) -> Replay:
        """The same without its weights, which are many and quick to get again."""
        return replace(self, matrices={})

    def ready(self, record: LayerRecord, spec: BlockSpec) -> Replay:
        """The same with its weights."""
        return replace(self, matrices=projections(record.module, spec, self.x.device)[0])

    def nbytes(self) -> int:
        """Memory that a waiting layer holds."""
        tensors = [value for value in vars(self).values() if isinstance(value, Tensor)]
        distinct = {t.data_ptr(): t for t in (*tensors, *self.products.values())}
        return sum(t.numel() * t.element_size() for t in distinct.values())


def check_rules(spec: BlockSpec | None, model_type: str) -> None:
    """Refuse a family whose attention or feed-forward the rules do not cover."""
    if (
        spec is None
        or (spec.qkv is None and None in (spec.query, spec.key, spec.value))
        or spec.by_hand
        or spec.up is None
        or spec.gate is not None
        or spec.wiring
        in (
            "parallel",
            "sandwich",
        )
    ):
        raise UnsupportedMethodError(
            f"Relevance rules are not defined here for {model_type!r} models: they cover plain "
            "attention and feed-forward in one row (BERT, RoBERTa, DistilBERT, ELECTRA, ALBERT, "
            "GPT-2, OPT), not rotated queries and keys, gated feed-forwards or parallel blocks. "
            "gae and attcat answer the same question for every model."
        )


def replay(x: Tensor, record: LayerRecord, spec: BlockSpec) -> Replay:
    """Run one layer on x [n, d] (float64), attending where the recorded pass did."""
    module = record.module
    assert record.weights is not None
    nowhere = record.weights.detach().reshape(-1, len(x), len(x)).to(x.device) == 0
    heads = len(nowhere)
    matrices, biases = projections(module, spec, x.device)
    products: dict[str, Tensor] = {}

    def project(name: str, vectors: Tensor) -> Tensor:
        products[name] = vectors @ matrices[name].T
        bias = biases[name]
        return products[name] if bias is None else products[name] + bias

    def split(vectors: Tensor) -> Tensor:
        return vectors.reshape(len(x), heads, -1).transpose(0, 1)

    norm1, norm2 = (_norm(module, path, spec, x.device) for path in (spec.norm1, spec.norm2))
    post = spec.wiring == "post"
    read = x if post or norm1 is None else norm1(x)
    query, key, value = (split(project(name, read)) for name in ("query", "key", "value"))
    scale = _scaling(module, spec, query.shape[-1])
    scores = (query @ key.transpose(-1, -2)).mul_(scale).masked_fill_(nowhere, -torch.inf)
    weights = scores.softmax(-1)
    del scores, nowhere
    context = (weights @ value).transpose(0, 1).reshape(len(x), -1)
    attended = project("out", context)
    p = x + attended
    middle = norm1(p) if post and norm1 is not None else p
    ffn_in = middle if post or norm2 is None else norm2(middle)
    act = at(module, spec.act) if isinstance(spec.act, str) else spec.act
    inner = act(project("up", ffn_in))
    ffn_out = project("down", inner)
    output = middle + ffn_out
    output = norm2(output) if post and norm2 is not None else output
    _same(output, _plain(record.output, x.device), module)
    return Replay(
        x, read, query, key, value, weights, context, attended, ffn_in, inner, ffn_out, middle,
        output, products, matrices,
    )  # fmt: skip


def _plain(tensor: Tensor | None, device: torch.device) -> Tensor:
    """A recorded tensor [n, d] without graph and batch, in float64."""
    assert tensor is not None
    tensor = tensor.detach().to(device)
    return (tensor[0] if tensor.dim() == 3 else tensor).double()


def projections(
    module: nn.Module, spec: BlockSpec, device: torch.device
) -> tuple[dict[str, Tensor], dict[str, Tensor | None]]:
    """Weights [out, in] and biases of a layer's six projections, in float64."""
    found: dict[str, tuple[Tensor, Tensor | None]] = {}
    places = {"out": spec.out, "up": spec.up, "down": spec.down}
    if spec.qkv is None:
        places |= {"query": spec.query, "key": spec.key, "value": spec.value}
    else:
        weight, bias = linear_weights(at(module, spec.qkv))
        biases = (None,) * 3 if bias is None else bias.chunk(3)
        found |= zip(
            ("query", "key", "value"), zip(weight.chunk(3), biases, strict=True), strict=True
        )
    for name, path in places.items():
        assert path is not None  # checked by `check_rules`
        found[name] = linear_weights(at(module, path))
    return (
        {name: weight.to(device).double() for name, (weight, _) in found.items()},
        {
            name: None if bias is None else bias.to(device).double()
            for name, (_, bias) in found.items()
        },
    )


def _norm(
    module: nn.Module, path: str | None, spec: BlockSpec, device: torch.device
) -> Norm | None:
    if path is None:
        return None
    norm = Norm(at(module, path), spec.norm_offset)
    norm.gamma = None if norm.gamma is None else norm.gamma.to(device).double()
    norm.beta = None if norm.beta is None else norm.beta.to(device).double()
    return norm


def _scaling(module: nn.Module, spec: BlockSpec, width: int) -> float:
    owner = (spec.qkv or spec.query or "").rpartition(".")[0]
    scaling = getattr(at(module, owner), "scaling", None) if owner else None
    return float(scaling) if isinstance(scaling, float) else float(width**-0.5)


def _same(made: Tensor, recorded: Tensor, module: nn.Module) -> None:
    error = float((made - recorded).norm() / recorded.norm().clamp(min=1e-30))
    half = any(p.dtype in (torch.float16, torch.bfloat16) for p in module.parameters())
    if error > (_HALF_TOLERANCE if half else _TOLERANCE):
        raise UnsupportedMethodError(
            f"Computed again from its block spec, a layer differs from the model by {error:.1%}: "
            "it holds something that the relevance rules do not know."
        )
