"""Naive twins of the gradient, class-activation and perturbation methods.

A BERT classifier written out by hand in float64 from the model's weights; derivatives by
central differences, one number at a time, or by torch on this hand-written forward pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass
class Pass:
    """What the hand-written pass keeps."""

    logits: Tensor  # [C]
    hidden: list[Tensor]  # embedding output, then every layer's output, [n, d]
    attention: list[Tensor]  # [H, n, n]


class Bert:
    """A BERT sequence classifier by hand."""

    def __init__(self, model: Any) -> None:
        self.w = {name: tensor.detach().double() for name, tensor in model.state_dict().items()}
        self.layers = model.config.num_hidden_layers
        self.heads = model.config.num_attention_heads
        self.eps = model.config.layer_norm_eps

    def words(self, ids: list[int]) -> Tensor:
        return torch.stack([self.w["bert.embeddings.word_embeddings.weight"][i] for i in ids])

    def _linear(self, name: str, x: Tensor) -> Tensor:
        return x @ self.w[f"{name}.weight"].T + self.w[f"{name}.bias"]

    def _norm(self, name: str, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        scale = (centred.pow(2).mean(-1, keepdim=True) + self.eps).sqrt()
        return self.w[f"{name}.weight"] * centred / scale + self.w[f"{name}.bias"]

    def run(self, words: Tensor, types: list[int] | None = None) -> Pass:
        n = len(words)
        kinds = types or [0] * n
        x = words + self.w["bert.embeddings.position_embeddings.weight"][:n]
        x = x + self.w["bert.embeddings.token_type_embeddings.weight"][kinds]
        x = self._norm("bert.embeddings.LayerNorm", x)
        hidden, attention = [x], []
        for number in range(self.layers):
            at = f"bert.encoder.layer.{number}"
            q, k, v = (
                self._linear(f"{at}.attention.self.{name}", x)
                .reshape(n, self.heads, -1)
                .transpose(0, 1)
                for name in ("query", "key", "value")
            )
            a = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).softmax(-1)
            attention.append(a)
            context = (a @ v).transpose(0, 1).reshape(n, -1)
            out = self._linear(f"{at}.attention.output.dense", context)
            y = self._norm(f"{at}.attention.output.LayerNorm", out + x)
            inner = self._linear(f"{at}.intermediate.dense", y)
            inner = inner * 0.5 * (1 + torch.erf(inner / math.sqrt(2)))
            x = self._norm(f"{at}.output.LayerNorm", self._linear(f"{at}.output.dense", inner) + y)
            hidden.append(x)
        pooled = torch.tanh(self._linear("bert.pooler.dense", x[0]))
        return Pass(self._linear("classifier", pooled), hidden, attention)

    def slopes(self, words: Tensor, target: int) -> tuple[Pass, list[Tensor], list[Tensor]]:
        """The pass, dy/dh of every hidden state and dy/dA of every layer."""
        done = self.run(words.clone().requires_grad_())
        found = torch.autograd.grad(done.logits[target], [*done.hidden, *done.attention])
        count = len(done.hidden)
        return done, list(found[:count]), list(found[count:])


def value(bert: Bert, words: Tensor, target: int, of: str) -> Tensor:
    logits = bert.run(words).logits
    return logits[target] if of == "logit" else logits.softmax(-1)[target]


def differences(function: Callable[[Tensor], Tensor], at: Tensor, step: float = 1e-5) -> Tensor:
    """The gradient by central differences, one number at a time."""
    slope = torch.zeros_like(at)
    for i in range(at.shape[0]):
        for d in range(at.shape[1]):
            up, down = at.clone(), at.clone()
            up[i, d] += step
            down[i, d] -= step
            slope[i, d] = (function(up) - function(down)) / (2 * step)
    return slope


def shares(vectors: Tensor, norm: str) -> Tensor:
    sizes = [v.norm() if norm == "l2" else v.abs().mean() for v in vectors]
    return torch.stack(sizes) / sum(sizes)


def cat(bert: Bert, ids: list[int], target: int, features: str) -> Tensor:
    """[L, n]"""
    done, at_hidden, _ = bert.slopes(bert.words(ids), target)
    first = 0 if features == "input" else 1
    rows = []
    for layer in range(bert.layers):
        h, g = done.hidden[layer + first], at_hidden[layer + first]
        rows.append(torch.stack([(h[i] * g[i]).sum() for i in range(len(ids))]))
    return torch.stack(rows)


def attcat(bert: Bert, ids: list[int], target: int, features: str) -> Tensor:
    done, _, _ = bert.slopes(bert.words(ids), target)
    rows = cat(bert, ids, target, features)
    for layer, a in enumerate(done.attention):
        for i in range(len(ids)):
            rows[layer, i] = rows[layer, i] * a[:, :, i].mean()
    return rows


def attn_grad(bert: Bert, ids: list[int], target: int) -> Tensor:
    _, _, slopes = bert.slopes(bert.words(ids), target)
    return torch.stack([slopes[-1][:, :, j].mean().clamp(min=0) for j in range(len(ids))])


def attn_grad_all(bert: Bert, ids: list[int], target: int) -> Tensor:
    _, _, slopes = bert.slopes(bert.words(ids), target)
    rows = [[g[:, :, j].mean().clamp(min=0) for j in range(len(ids))] for g in slopes]
    return torch.stack([sum(column) / len(slopes) for column in zip(*rows, strict=True)])


def grad_sam(bert: Bert, ids: list[int], target: int) -> Tensor:
    done, _, slopes = bert.slopes(bert.words(ids), target)
    rows = [
        torch.stack([(a * g.clamp(min=0))[:, :, j].mean() for j in range(len(ids))])
        for a, g in zip(done.attention, slopes, strict=True)
    ]
    return torch.stack(rows)


def grad_cam(bert: Bert, ids: list[int], target: int, focus: int) -> Tensor:
    done, _, slopes = bert.slopes(bert.words(ids), target)
    matrix = sum(a * g.mean() for a, g in zip(done.attention[-1], slopes[-1], strict=True))
    matrix = (matrix / bert.heads).clamp(min=0)
    span = matrix.max() - matrix.min()
    return (matrix - matrix.min())[focus] / span if span > 0 else matrix[focus] * 0


def gae(bert: Bert, ids: list[int], target: int) -> tuple[Tensor, Tensor]:
    """Maps [L, n, n] and R [n, n]."""
    done, _, slopes = bert.slopes(bert.words(ids), target)
    reached, maps = torch.eye(len(ids)).double(), []
    for a, g in zip(done.attention, slopes, strict=True):
        maps.append((a * g).clamp(min=0).mean(0))
        reached = reached + maps[-1] @ reached
    return torch.stack(maps), reached


def blank_out(bert: Bert, ids: list[int], target: int, stand_in: int | None) -> Tensor:
    whole = value(bert, bert.words(ids), target, "probability")
    drops = []
    for j in range(len(ids)):
        changed = [stand_in if i == j else t for i, t in enumerate(ids)]
        kept = [t for t in changed if t is not None]
        drops.append(whole - value(bert, bert.words(kept), target, "probability"))
    return torch.stack(drops)
