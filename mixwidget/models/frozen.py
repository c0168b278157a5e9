"""Norms whose statistics torch computes inside, written out with the statistics frozen: linear."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def _layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    axes = tuple(range(-len(normalized_shape), 0))
    centred = input - input.mean(axes, keepdim=True)
    return _scaled(centred, axes, weight, bias, eps)


def _rms_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    axes = tuple(range(-len(normalized_shape), 0))
    small = torch.finfo(input.dtype).eps if eps is None else eps
    return _scaled(input, axes, weight, None, small)


def _scaled(
    input: Tensor, axes: tuple[int, ...], weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    inverse = (input.detach().square().mean(axes, keepdim=True) + eps).rsqrt()
    made = input * inverse
    made = made if weight is None else made * weight.detach()
    return made if bias is None else made + bias.detach()


def _group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    grouped = input.reshape(input.shape[0], num_groups, -1)
    centred = grouped - grouped.mean(-1, keepdim=True)
    made = _scaled(centred, (-1,), None, None, eps).reshape(input.shape)
    shape = [1, -1, *[1] * (input.dim() - 2)]
    made = made if weight is None else made * weight.detach().reshape(shape)
    return made if bias is None else made + bias.detach().reshape(shape)


NORMS: dict[str, Callable[..., Tensor]] = {
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "group_norm": _group_norm,
}
