"""The tap: sees the attention weights and values of every layer of a model, in any family.

transformers sends almost every model's attention through one table of functions. We add
an entry that computes plain attention and hands weights and values to whoever records; a
shadow's configs name it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

NAME = "mixwidget"

# Called as sink(module, weights, values, out) for each attention computed on this thread.
Sink = Callable[[nn.Module, Tensor, Tensor], None]
_listening = threading.local()


def repeat_heads(states: Tensor, heads: int) -> Tensor:
    """[..., kv_heads, n, d] -> [..., heads, n, d] for grouped key and value heads."""
    groups = heads // states.shape[-3]
    return states if groups == 1 else states.repeat_interleave(groups, dim=-3)


def tapped_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    position_bias: Tensor | None = None,
    is_causal: bool | None = None,
    **_: Any,
) -> tuple[Tensor, Tensor]:
    """Attention as the papers write it, in the order of operations of eager attention.

    Also correct for a pass that is not ours: another thread may run the model while it is
    switched over, and may bring the mask of another implementation (boolean, or none).
    Returns ([batch, n, heads, d], [batch, heads, n, n]).
    """
    heads = query.shape[1]
    values = repeat_heads(value, heads)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    scores = torch.matmul(query, repeat_heads(key, heads).transpose(-1, -2)) * scale
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if position_bias is not None:
        scores = scores + position_bias
    scores = _masked(scores, attention_mask, module, is_causal)
    if s_aux is not None:  # attention sinks: a slot that takes weight and gives no value
        sink = s_aux.reshape(1, -1, 1, 1).expand(scores.shape[0], -1, scores.shape[2], 1)
        weights = torch.softmax(torch.cat([scores, sink.to(scores)], -1), -1, _wide(scores))
        weights = weights[..., :-1]
    else:
        weights = torch.softmax(scores, -1, _wide(scores))
    weights = weights.to(query.dtype)
    if dropout and module.training:
        weights = nn.functional.dropout(weights, dropout)
    sink_fn: Sink | None = getattr(_listening, "sink", None)
    if sink_fn is not None:
        weights = _tracked(weights)
        sink_fn(module, weights, values)
    return torch.matmul(weights, values).transpose(1, 2).contiguous(), weights


def _tracked(weights: Tensor) -> Tensor:
    """Attention weights as a node of the graph even where nothing below asks for gradients."""
    return weights if weights.requires_grad or not torch.is_grad_enabled() else weights.clone()


def _wide(scores: Tensor) -> torch.dtype:
    return scores.dtype if scores.dtype == torch.float64 else torch.float32


def _masked(
    scores: Tensor, mask: Tensor | None, module: nn.Module, is_causal: bool | None
) -> Tensor:
    rows, columns = scores.shape[-2:]
    if mask is None:
        causal = getattr(module, "is_causal", False) if is_causal is None else is_causal
        if not causal or rows == 1:
            return scores
        ones = torch.ones(rows, columns, dtype=torch.bool, device=scores.device)
        mask = ones.tril(columns - rows)
    mask = mask[..., :columns]
    if mask.dtype == torch.bool:
        return scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores + mask


def register() -> None:
    """Make the entry known to transformers under `NAME`."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, eager_mask

    AttentionInterface.register(NAME, tapped_attention)
    AttentionMaskInterface.register(NAME, eager_mask)


@contextlib.contextmanager
def listening(sink: Sink) -> Iterator[None]:
    """Send the attention computed on this thread to `sink`."""
    before = getattr(_listening, "sink", None)
    _listening.sink = sink
    try:
        yield
    finally:
        _listening.sink = before
