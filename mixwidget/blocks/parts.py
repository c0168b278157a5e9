"""The parts of a block as numbers: projections, norms and feed-forwards, taken from its modules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import chain

import torch
from torch import Tensor, nn

from ..errors import UnsupportedModelError
from .spec import BlockSpec, at


def linear_weights(module: nn.Module) -> tuple[Tensor, Tensor | None]:
    """(weight [out, in], bias [out] or None) of anything that acts as a linear map.

    Wrapped projections (adapters, quantised weights) are asked: their columns are what
    they do to the unit vectors.
    """
    weight: Tensor
    bias: Tensor | None
    if type(module) is nn.Linear:
        weight, bias = module.weight, module.bias
    elif type(module).__name__ == "Conv1D":  # transformers' GPT-2 keeps its weight transposed
        weight, bias = at(module, "weight").T, at(module, "bias")
    else:
        source = next(chain(module.parameters(), module.buffers()), None)
        if source is None:
            raise UnsupportedModelError(
                f"A projection of the model, {type(module).__name__}, shows no weights: it is "
                "quantised or otherwise wrapped in a way that cannot be taken apart. Explain the "
                "model as it was before that."
            )
        width = getattr(module, "in_features", None) or source.shape[-1]
        eye = torch.eye(int(width), dtype=_float_of(source), device=source.device)
        bias = module(torch.zeros_like(eye[:1]))[0]
        weight = (module(eye) - bias).T
    return _wide(weight), None if bias is None else _wide(bias)


def _float_of(tensor: Tensor) -> torch.dtype:
    return tensor.dtype if tensor.is_floating_point() else torch.float32


def _wide(tensor: Tensor) -> Tensor:
    """Half precision becomes float32: differences of near-equal vectors are our trade."""
    if tensor.is_meta:
        raise UnsupportedModelError(
            "Some of the model's weights are not in memory (offloaded to disk or CPU). Load it "
            "without offloading to take it apart."
        )
    tensor = tensor.detach()
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()


class Norm:
    """LayerNorm or RMSNorm as a linear map, divided by a scale of its input, plus a bias."""

    def __init__(self, module: nn.Module, offset: float = 0.0) -> None:
        weight = getattr(module, "weight", None)
        bias = getattr(module, "bias", None)
        # T5 calls its norm without centring a LayerNorm: it is the bias that tells.
        self.centred = isinstance(module, nn.LayerNorm) or bias is not None
        self.gamma: Tensor | None = None if weight is None else _wide(weight)
        if offset and self.gamma is not None:
            self.gamma = self.gamma + offset
        self.beta: Tensor | None = None if bias is None else _wide(bias)
        for name in ("eps", "variance_epsilon", "epsilon"):
            if (eps := getattr(module, name, None)) is not None:
                self.eps = float(eps)
                break
        else:
            raise UnsupportedModelError(
                f"{type(module).__name__} does not say its epsilon, so it cannot be taken apart."
            )

    def linear(self, vectors: Tensor) -> Tensor:
        """The linear part: centre (LayerNorm only), times gamma."""
        if not self.centred:
            return vectors if self.gamma is None else vectors * self.gamma
        vectors = vectors - vectors.mean(-1, keepdim=True)
        return vectors if self.gamma is None else vectors.mul_(self.gamma)

    def scale(self, vectors: Tensor) -> Tensor:
        """What the linear part is divided by, [..., 1]."""
        if self.centred:
            power = vectors.var(-1, correction=0, keepdim=True)
        else:
            power = vectors.square().mean(-1, keepdim=True)
        return (power + self.eps).sqrt()

    def bias(self, like: Tensor) -> Tensor:
        return torch.zeros_like(like[..., :1, :]) if self.beta is None else self.beta

    def __call__(self, vectors: Tensor) -> Tensor:
        gamma = self.gamma
        if self.centred and gamma is not None and gamma.dtype == vectors.dtype:
            return nn.functional.layer_norm(vectors, gamma.shape, gamma, self.beta, self.eps)
        normed = self.linear(vectors) / self.scale(vectors)
        return normed if self.beta is None else normed + self.beta


def _fused(act: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The same activation in one pass: transformers writes GPT-2's out in eight."""
    if type(act).__name__ in ("NewGELUActivation", "FastGELUActivation"):
        return partial(nn.functional.gelu, approximate="tanh")
    return act


class FeedForward:
    """The feed-forward of one layer, cut open between its two projections."""

    def __init__(self, layer: nn.Module, spec: BlockSpec) -> None:
        self.act: Callable[[Tensor], Tensor] = _fused(
            at(layer, spec.act) if isinstance(spec.act, str) else spec.act
        )
        self.first: list[tuple[Tensor, Tensor | None]]
        self.down_bias: Tensor | None
        if spec.down is None:  # a block without one adds nothing: projections of width zero
            like = linear_weights(at(layer, spec.out))[0]
            self.first, self.down = (
                [(like.new_zeros(0, len(like)), None)],
                like.new_zeros(len(like), 0),
            )
            self.down_bias = None
            return
        if spec.gate_up is not None:
            weight, bias = linear_weights(at(layer, spec.gate_up))
            halves = weight.chunk(2)
            biases = (None, None) if bias is None else bias.chunk(2)
            self.first = list(zip(halves, biases, strict=True))
        else:
            names = [spec.up] if spec.gate is None else [spec.gate, spec.up]
            self.first = [linear_weights(at(layer, name)) for name in names if name is not None]
        self.down, self.down_bias = linear_weights(at(layer, spec.down))

    @property
    def gated(self) -> bool:
        return len(self.first) == 2

    def activate(self, preacts: list[Tensor]) -> Tensor:
        """From the first projections' results (gate first, if there is one) to what the second
        reads."""
        hidden = self.act(preacts[0])
        return hidden * preacts[1] if self.gated else hidden

    def finish(self, preacts: list[Tensor]) -> Tensor:
        """From the first projections' results to the output."""
        return nn.functional.linear(self.activate(preacts), self.down, self.down_bias)

    def __call__(self, vectors: Tensor) -> Tensor:
        return self.finish([nn.functional.linear(vectors, w, b) for w, b in self.first])
