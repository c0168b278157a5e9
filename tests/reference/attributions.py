"""Naive twins of the direct and whole-text attributions, on a BERT classifier and a Llama.

Both models are written out by hand in float64 from their weights. A changed gradient is the true
gradient of a pass in which something is detached; parts of vectors are carried one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

Rule = str  # "true", "attn_lrp", "cp_lrp" or "direct"


def half(x: Tensor) -> Tensor:
    return 0.5 * x + (0.5 * x).detach()


@dataclass
class Seen:
    """What one layer did, in float64."""

    x: Tensor  # [n, d]
    a: Tensor  # [H, n, n]
    f: Tensor  # [H, n, d] values through W_O
    p: Tensor  # [n, d]
    y: Tensor  # [n, d] what the feed-forward's result is added to
    q: Tensor  # [n, d] that sum
    ffn: Tensor  # [n, d]
    wrote: Tensor  # [n, d] what attention wrote


class Hand:
    """A model by hand; every rule changes what is passed back, never a value."""

    def __init__(self, model: Any) -> None:
        self.w = {name: tensor.detach().double() for name, tensor in model.state_dict().items()}
        self.config = model.config
        self.layers, self.heads = model.config.num_hidden_layers, model.config.num_attention_heads
        self.rule: Rule = "true"
        self.seen: list[Seen] = []
        self.inputs: list[Tensor] = []

    def norm(self, name: str, x: Tensor) -> Tensor:
        raise NotImplementedError

    def linear(self, name: str, x: Tensor) -> Tensor:
        y = x @ self.w[f"{name}.weight"].T
        return y + self.w[f"{name}.bias"] if f"{name}.bias" in self.w else y

    def scaled(self, over: Tensor, scale: Tensor) -> Tensor:
        return over / (scale if self.rule == "true" else scale.detach())

    def act(self, function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        y = function(x)
        return y if self.rule == "true" else x * (y / x).detach()

    def attend(self, q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
        if self.rule == "attn_lrp":
            q, k = half(q), half(k)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if causal:
            ahead = torch.ones(scores.shape[-2:]).triu(1).bool()
            scores = scores.masked_fill(ahead, -torch.inf)
        a = scores.softmax(-1)
        if self.rule in ("cp_lrp", "direct"):
            a = a.detach()
        if self.rule == "attn_lrp":
            return a, half(a) @ half(v)
        return a, a @ v

    def split(self, x: Tensor, heads: int) -> Tensor:
        return x.reshape(len(x), heads, -1).transpose(0, 1)

    def logits(self, ids: list[int], rule: Rule) -> Tensor:
        self.rule, self.seen, self.inputs = rule, [], []
        x = self.embed(ids).detach()
        for number in range(self.layers):
            x = x.requires_grad_() if not number else x
            self.inputs.append(x)
            x = self.layer(number, x)
        return self.head(x)

    def embed(self, ids: list[int]) -> Tensor:
        raise NotImplementedError

    def layer(self, number: int, x: Tensor) -> Tensor:
        raise NotImplementedError

    def head(self, x: Tensor) -> Tensor:
        """[n, C] or [C]"""
        raise NotImplementedError


class Bert(Hand):
    def norm(self, name: str, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        scale = (centred.pow(2).mean(-1, keepdim=True) + self.config.layer_norm_eps).sqrt()
        return self.w[f"{name}.weight"] * self.scaled(centred, scale) + self.w[f"{name}.bias"]

    def embed(self, ids: list[int]) -> Tensor:
        at = "bert.embeddings."
        x = self.w[at + "word_embeddings.weight"][ids]
        x = x + self.w[at + "position_embeddings.weight"][: len(ids)]
        return self.norm(at + "LayerNorm", x + self.w[at + "token_type_embeddings.weight"][0])

    def layer(self, number: int, x: Tensor) -> Tensor:
        at = f"bert.encoder.layer.{number}."
        q, k, v = (
            self.split(self.linear(at + f"attention.self.{name}", x), self.heads)
            for name in ("query", "key", "value")
        )
        a, context = self.attend(q, k, v, causal=False)
        wrote = self.linear(at + "attention.output.dense", context.transpose(0, 1).flatten(1))
        by_head = self.w[at + "attention.output.dense.weight"].T.reshape(self.heads, -1, x.shape[1])
        f = v @ by_head
        wrote = wrote.detach().requires_grad_() if self.rule == "direct" else wrote
        p = x + wrote
        y = self.norm(at + "attention.output.LayerNorm", p)
        inner = self.act(functional.gelu, self.linear(at + "intermediate.dense", y))
        ffn = self.linear(at + "output.dense", inner)
        ffn = ffn.detach().requires_grad_() if self.rule == "direct" else ffn
        self.seen.append(Seen(x, a, f, p, y, y + ffn, ffn, wrote))
        return self.norm(at + "output.LayerNorm", y + ffn)

    def head(self, x: Tensor) -> Tensor:
        pooled = self.act(torch.tanh, self.linear("bert.pooler.dense", x[0]))
        return self.linear("classifier", pooled)


class Bart(Hand):
    """An encoder-decoder: what it reads is kept for the encoder's layers, then the decoder's."""

    def norm(self, name: str, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        scale = (centred.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
        return self.w[f"{name}.weight"] * self.scaled(centred, scale) + self.w[f"{name}.bias"]

    def stack(self, side: str, ids: list[int], source: Tensor | None) -> Tensor:
        at = f"model.{side}."
        x = self.w["model.shared.weight"][ids]
        x = x + self.w[at + "embed_positions.weight"][2 : 2 + len(ids)]
        x = self.norm(at + "layernorm_embedding", x).detach().requires_grad_()
        for number in range(self.config.encoder_layers):
            self.inputs.append(x)
            name = f"{at}layers.{number}."
            x = self.mixed(name + "self_attn", x, x, source is not None)
            if source is not None:
                x = self.mixed(name + "encoder_attn", x, source, False)
            inner = self.act(functional.gelu, self.linear(name + "fc1", x))
            x = self.norm(name + "final_layer_norm", x + self.linear(name + "fc2", inner))
        return x

    def mixed(self, name: str, x: Tensor, read: Tensor, causal: bool) -> Tensor:
        reads = {"q": x, "k": read, "v": read}
        q, k, v = (
            self.split(self.linear(f"{name}.{part}_proj", given), self.heads)
            for part, given in reads.items()
        )
        context = self.attend(q, k, v, causal)[1].transpose(0, 1).flatten(1)
        return self.norm(f"{name}_layer_norm", x + self.linear(f"{name}.out_proj", context))

    def relevance(self, ids: list[int], prefix: list[int], word: int, rule: Rule) -> list[Tensor]:
        """[tokens] of the logit of the word that follows the prefix, of each layer's input."""
        self.rule, self.inputs = rule, []
        hidden = self.stack("decoder", prefix, self.stack("encoder", ids, None))
        logit = hidden[-1] @ self.w["model.shared.weight"][word]
        logit = logit + self.w["final_logits_bias"][0, word]
        slopes = torch.autograd.grad(logit, self.inputs)
        return [(x * g).sum(-1).detach() for x, g in zip(self.inputs, slopes, strict=True)]


class Llama(Hand):
    def norm(self, name: str, x: Tensor) -> Tensor:
        scale = (x.pow(2).mean(-1, keepdim=True) + self.config.rms_norm_eps).sqrt()
        return self.w[f"{name}.weight"] * self.scaled(x, scale)

    def embed(self, ids: list[int]) -> Tensor:
        return self.w["model.embed_tokens.weight"][ids]

    def rotated(self, x: Tensor) -> Tensor:
        n, width = x.shape[-2:]
        speeds = 10000.0 ** (-torch.arange(0, width, 2).double() / width)
        angles = torch.arange(n).double()[:, None] * speeds
        cos, sin = (torch.cat([t, t], -1) for t in (angles.cos(), angles.sin()))
        first, second = x.chunk(2, -1)
        return x * cos + torch.cat([-second, first], -1) * sin

    def layer(self, number: int, x: Tensor) -> Tensor:
        at = f"model.layers.{number}."
        read = self.norm(at + "input_layernorm", x)
        grouped = self.config.num_key_value_heads
        q, k, v = (
            self.split(self.linear(at + f"self_attn.{name}_proj", read), count)
            for name, count in (("q", self.heads), ("k", grouped), ("v", grouped))
        )
        k, v = (t.repeat_interleave(self.heads // grouped, 0) for t in (k, v))
        a, context = self.attend(self.rotated(q), self.rotated(k), v, causal=True)
        wrote = self.linear(at + "self_attn.o_proj", context.transpose(0, 1).flatten(1))
        f = v @ self.w[at + "self_attn.o_proj.weight"].T.reshape(self.heads, -1, x.shape[1])
        wrote = wrote.detach().requires_grad_() if self.rule == "direct" else wrote
        p = x + wrote
        z = self.norm(at + "post_attention_layernorm", p)
        gate = self.act(functional.silu, self.linear(at + "mlp.gate_proj", z))
        up = self.linear(at + "mlp.up_proj", z)
        if self.rule == "attn_lrp":
            gate, up = half(gate), half(up)
        gate = gate.detach() if self.rule == "cp_lrp" else gate
        ffn = self.linear(at + "mlp.down_proj", gate * up)
        ffn = ffn.detach().requires_grad_() if self.rule == "direct" else ffn
        self.seen.append(Seen(x, a, f, p, p, p + ffn, ffn, wrote))
        return p + ffn

    def head(self, x: Tensor) -> Tensor:
        return self.linear("lm_head", self.norm("model.norm", x))[-1]


def relevance(hand: Hand, ids: list[int], start: dict[int, float], rule: Rule) -> Tensor:
    """[L, n] for start = {target: 1} or {for: 1, against: -1}."""
    logits = hand.logits(ids, rule)
    value = sum(sign * logits[c] for c, sign in start.items())
    slopes = torch.autograd.grad(value, hand.inputs)
    rows = [(x * g).sum(-1) for x, g in zip(hand.inputs, slopes, strict=True)]
    return torch.stack(rows).detach()


def direct(hand: Hand, ids: list[int], start: dict[int, float]) -> tuple[Tensor, list[float]]:
    """Direct contributions [L, H, n], one product at a time; and the feed-forwards'."""
    logits = hand.logits(ids, "direct")
    value = sum(sign * logits[c] for c, sign in start.items())
    wrote = [seen.wrote for seen in hand.seen]
    slopes = torch.autograd.grad(value, [*wrote, *(seen.ffn for seen in hand.seen)])
    n = len(ids)
    made = torch.zeros(hand.layers, hand.heads, n, dtype=torch.float64)
    for layer, (seen, u) in enumerate(zip(hand.seen, slopes, strict=False)):
        for head in range(hand.heads):
            for i in range(n):
                for j in range(n):
                    made[layer, head, j] += seen.a[head, i, j] * (seen.f[head, j] @ u[i])
    fed = [
        float((s.ffn.detach() * g).sum())
        for s, g in zip(hand.seen, slopes[hand.layers :], strict=True)
    ]
    return made.detach(), fed


def alti_logit(by_source: Tensor, maps: Tensor) -> Tensor:
    """[L, n] from direct contributions [L, n] and ALTI's maps [L, n, n]."""
    n = maps.shape[-1]
    rows, reached = [], torch.eye(n, dtype=torch.float64)
    for written, map in zip(by_source, maps, strict=True):
        rows.append(
            torch.stack([sum(written[j] * reached[j, k] for j in range(n)) for k in range(n)])
        )
        reached = map @ reached
    return torch.stack(rows)


def routes(seen: Seen) -> tuple[Tensor, Tensor]:
    """A layer's map [n, n] and its feed-forward's shares [n], part by part."""
    n, heads = len(seen.x), len(seen.a)
    map, fed = torch.zeros(n, n, dtype=torch.float64), []
    for i in range(n):
        p = seen.p[i].detach()
        parts = {
            (h, j): (seen.a[h, i, j] * seen.f[h, j]).detach()
            for h in range(heads)
            for j in range(n)
        }
        parts["x"] = seen.x[i].detach()  # type: ignore[index]
        gaps = {key: float((p - part).abs().sum()) for key, part in parts.items()}
        near = {key: max(0.0, float(p.abs().sum()) - gap) for key, gap in gaps.items()}
        if not sum(near.values()):
            near[min(gaps, key=lambda key: gaps[key])] = 1.0
        for key, value in near.items():
            map[i, i if key == "x" else key[1]] += value / sum(near.values())  # type: ignore[misc]
        whole, before = seen.q[i].detach(), seen.y[i].detach()
        size = float(whole.abs().sum())
        of = [
            max(0.0, size - float((whole - part).abs().sum())) for part in (whole - before, before)
        ]
        fed.append(of[0] / sum(of))
    return map, torch.tensor(fed).double()


def carried(bert: Bert, ids: list[int], kind: str) -> tuple[Tensor, Tensor]:
    """DecompX of a BERT classifier: maps [L, n, n] and the parts of every logit [n, C]."""
    w, n, d = bert.w, len(ids), bert.config.hidden_size
    bert.logits(ids, "true")

    def shared(u: Tensor, b: Tensor) -> Tensor:
        """u [..., j, d] with b added to its sum over j."""
        if kind == "none":
            return u
        size = {
            "absdot": lambda: (u @ b).abs(),
            "norm": lambda: u.norm(dim=-1),
            "equal": lambda: torch.ones(u.shape[:-1]).double(),
        }[kind]()
        return u + (size / size.sum(-1, keepdim=True))[..., None] * b

    def normed(u: Tensor, name: str, reads: Tensor) -> Tensor:
        scale = (reads.var(-1, correction=0) + bert.config.layer_norm_eps).sqrt()
        u = w[f"{name}.weight"] * (u - u.mean(-1, keepdim=True)) / scale[:, None, None]
        return shared(u, w[f"{name}.bias"])

    maps = []
    u = torch.zeros(n, n, d, dtype=torch.float64)
    for i in range(n):
        u[i, i] = bert.seen[0].x[i].detach()
    for number, seen in enumerate(bert.seen):
        at = f"bert.encoder.layer.{number}."
        value, out = (w[at + f"attention.{name}.weight"] for name in ("self.value", "output.dense"))
        by_head = (u @ value.T).reshape(n, n, bert.heads, -1)
        context = torch.zeros_like(by_head)
        for i in range(n):
            for k in range(n):
                context[i] += seen.a[:, i, k].detach()[:, None] * by_head[k]
        bias = w[at + "attention.output.dense.bias"] + out @ w[at + "attention.self.value.bias"]
        p = shared(u + context.reshape(n, n, d) @ out.T, bias)
        y = normed(p, at + "attention.output.LayerNorm", seen.p.detach())
        reads = bert.linear(at + "intermediate.dense", seen.y.detach())
        inner = shared(y @ w[at + "intermediate.dense.weight"].T, w[at + "intermediate.dense.bias"])
        inner = inner * (functional.gelu(reads) / reads)[:, None]
        fed = shared(inner @ w[at + "output.dense.weight"].T, w[at + "output.dense.bias"])
        u = normed(y + fed, at + "output.LayerNorm", seen.q.detach())
        maps.append(u.norm(dim=-1))
    last = u.sum(1)[0] if kind != "none" else None
    reads = bert.linear("bert.pooler.dense", bert_output(bert)[0] if last is None else last)
    pooled = shared(u[0] @ w["bert.pooler.dense.weight"].T, w["bert.pooler.dense.bias"])
    pooled = pooled * (torch.tanh(reads) / reads)
    return torch.stack(maps), shared(pooled @ w["classifier.weight"].T, w["classifier.bias"])


def bert_output(bert: Bert) -> Tensor:
    """What the last layer put out. [n, d]"""
    return bert.norm(
        f"bert.encoder.layer.{bert.layers - 1}.output.LayerNorm", bert.seen[-1].q.detach()
    )


def shapley(value: Callable[[frozenset[int]], float], players: list[int]) -> dict[int, float]:
    """The mean over all orders, one by one."""
    gains = dict.fromkeys(players, 0.0)
    orders = list(permutations(players))
    for order in orders:
        before: frozenset[int] = frozenset()
        for player in order:
            gains[player] += (value(before | {player}) - value(before)) / len(orders)
            before |= {player}
    return gains
