"""Naive twins of the attributions on decoders of other builds: biases and learned positions
(GPT-2), parallel blocks and partly rotated heads (GPT-NeoX), norms before and behind with capped
scores (Gemma 2), normed queries and keys (Qwen3, Gemma 3), windows shorter than the text.

Each is written out by hand in float64, from what its own code says of it in a row of `BUILDS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .attributions import Hand, Rule, Seen, half


def _tanh_gelu(x: Tensor) -> Tensor:
    return functional.gelu(x, approximate="tanh")


@dataclass(frozen=True)
class Build:
    """Where a family keeps what, and how its block is put together."""

    base: str
    embed: str
    layers: str
    norm1: str
    out: str
    norm2: str
    feed: tuple[str, ...]  # (in, out) or (gate, up, out)
    final: str
    act: Callable[[Tensor], Tensor]
    joined: str = ""  # queries, keys and values in one projection
    by_head: bool = False  # and those of a head side by side
    post1: str = ""
    post2: str = ""
    rms: bool = True
    added: float = 0.0  # to an RMS norm's weight
    rotated: float = 1.0  # share of a head's width
    parallel: bool = False
    normed: bool = False  # queries and keys
    positions: str = ""
    scaled: bool = False  # embeddings, by the root of the width
    turned: bool = False  # weights are kept the other way round


_LLAMA: dict[str, Any] = {
    "base": "model.",
    "embed": "embed_tokens",
    "layers": "layers",
    "norm1": "input_layernorm",
    "out": "self_attn.o_proj",
    "norm2": "post_attention_layernorm",
    "feed": ("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"),
    "final": "norm",
    "act": functional.silu,
}
_GEMMA: dict[str, Any] = {
    **_LLAMA,
    "post1": "post_attention_layernorm",
    "norm2": "pre_feedforward_layernorm",
    "post2": "post_feedforward_layernorm",
    "act": _tanh_gelu,
    "added": 1.0,
    "scaled": True,
}
BUILDS = {
    "gpt2": Build(
        "transformer.", "wte", "h", "ln_1", "attn.c_proj", "ln_2", ("mlp.c_fc", "mlp.c_proj"),
        "ln_f", _tanh_gelu, joined="attn.c_attn", rms=False, rotated=0.0, positions="wpe",
        turned=True,
    ),
    "gpt_neox": Build(
        "gpt_neox.", "embed_in", "layers", "input_layernorm", "attention.dense",
        "post_attention_layernorm", ("mlp.dense_h_to_4h", "mlp.dense_4h_to_h"), "final_layer_norm",
        functional.gelu, joined="attention.query_key_value", by_head=True, rms=False, rotated=0.25,
        parallel=True,
    ),
    "qwen3": Build(**_LLAMA, normed=True),
    "gemma2": Build(**_GEMMA),
    "gemma3_text": Build(**_GEMMA, normed=True),
}  # fmt: skip


class Decoder(Hand):
    """Any of them."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.build = BUILDS[model.config.model_type]
        if self.build.turned:
            projections = (".c_attn.weight", ".c_proj.weight", ".c_fc.weight")
            self.w = {k: v.T if k.endswith(projections) else v for k, v in self.w.items()}
        self.vocabulary = model.get_output_embeddings().weight.detach().double()

    def option(self, name: str, otherwise: Any) -> Any:
        value = getattr(self.config, name, None)
        return otherwise if value is None else value

    @property
    def grouped(self) -> int:
        return int(self.option("num_key_value_heads", self.heads))

    def at(self, number: int) -> str:
        return f"{self.build.base}{self.build.layers}.{number}."

    def weight(self, name: str) -> Tensor:
        return self.w[f"{name}.weight"] + (self.build.added if self.build.rms else 0.0)

    def scale(self, x: Tensor) -> Tensor:
        if self.build.rms:
            return (x.pow(2).mean(-1, keepdim=True) + self.config.rms_norm_eps).sqrt()
        eps = self.option("layer_norm_epsilon", self.option("layer_norm_eps", None))
        return (x.var(-1, correction=0, keepdim=True) + eps).sqrt()

    def norm(self, name: str, x: Tensor) -> Tensor:
        over = x if self.build.rms else x - x.mean(-1, keepdim=True)
        y = self.weight(name) * self.scaled(over, self.scale(x))
        return y + self.w[f"{name}.bias"] if f"{name}.bias" in self.w else y

    def embed(self, ids: list[int]) -> Tensor:
        build = self.build
        x = self.w[f"{build.base}{build.embed}.weight"][ids]
        if build.positions:
            x = x + self.w[f"{build.base}{build.positions}.weight"][: len(ids)]
        return x * math.sqrt(x.shape[-1]) if build.scaled else x

    def rotate(self, number: int, x: Tensor) -> Tensor:
        width = int(x.shape[-1] * self.build.rotated)
        if not width:
            return x
        about = self.config.rope_parameters
        if "rope_theta" not in about:
            about = about[self.config.layer_types[number]]
        speeds = about["rope_theta"] ** (-torch.arange(0, width, 2).double() / width)
        angles = torch.arange(x.shape[-2]).double()[:, None] * speeds
        cos, sin = (torch.cat([t, t], -1) for t in (angles.cos(), angles.sin()))
        turning, still = x[..., :width], x[..., width:]
        first, second = turning.chunk(2, -1)
        turned = turning * cos + torch.cat([-second, first], -1) * sin
        return torch.cat([turned, still], -1)

    def projected(self, number: int, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of a layer by head. [H, n, d_head]"""
        build, at = self.build, self.at(number)
        if build.joined and build.by_head:
            joined = self.linear(at + build.joined, h).reshape(len(h), self.heads, 3, -1)
            q, k, v = (joined[:, :, part].transpose(0, 1) for part in range(3))
        elif build.joined:
            joined = self.linear(at + build.joined, h)
            q, k, v = (self.split(part, self.heads) for part in joined.chunk(3, -1))
        else:
            q, k, v = (
                self.split(self.linear(f"{at}self_attn.{name}_proj", h), count)
                for name, count in (("q", self.heads), ("k", self.grouped), ("v", self.grouped))
            )
            k, v = (t.repeat_interleave(self.heads // self.grouped, 0) for t in (k, v))
        if build.normed:
            q, k = (self.norm(f"{at}self_attn.{name}_norm", t) for name, t in (("q", q), ("k", k)))
        return self.rotate(number, q), self.rotate(number, k), v

    def weights(self, number: int, q: Tensor, k: Tensor) -> Tensor:
        if self.rule == "attn_lrp":
            q, k = half(q), half(k)
        size = self.option("query_pre_attn_scalar", q.shape[-1])
        scores = q @ k.transpose(-1, -2) / math.sqrt(size)
        if cap := self.option("attn_logit_softcapping", None):
            scores = cap * self.act(torch.tanh, scores / cap)
        n = scores.shape[-1]
        gone = torch.ones(n, n).triu(1).bool()
        kinds = self.option("layer_types", None)
        if kinds is not None and kinds[number] == "sliding_attention":
            gone = gone | torch.ones(n, n).tril(-self.config.sliding_window).bool()
        a = scores.masked_fill(gone, -torch.inf).softmax(-1)
        return a.detach() if self.rule in ("cp_lrp", "direct") else a

    def fed(self, number: int, z: Tensor) -> Tensor:
        names = [self.at(number) + name for name in self.build.feed]
        inner = self.act(self.build.act, self.linear(names[0], z))
        if len(names) == 3:
            up = self.linear(names[1], z)
            if self.rule == "attn_lrp":
                inner, up = half(inner), half(up)
            inner = (inner.detach() if self.rule == "cp_lrp" else inner) * up
        return self.linear(names[-1], inner)

    def layer(self, number: int, x: Tensor) -> Tensor:
        build, at = self.build, self.at(number)
        q, k, v = self.projected(number, self.norm(at + build.norm1, x))
        a = self.weights(number, q, k)
        context = half(a) @ half(v) if self.rule == "attn_lrp" else a @ v
        wrote = self.linear(at + build.out, context.transpose(0, 1).flatten(1))
        f = v @ self.w[f"{at}{build.out}.weight"].T.reshape(self.heads, -1, x.shape[1])
        wrote = wrote.detach().requires_grad_() if self.rule == "direct" else wrote
        if build.post1:  # a token's parts pass the norm that their sum passes
            scale = self.weight(at + build.post1) / self.scale(wrote).detach()
            f = (f, scale)
        p = x + (self.norm(at + build.post1, wrote) if build.post1 else wrote)
        ffn = self.fed(number, self.norm(at + build.norm2, x if build.parallel else p))
        ffn = ffn.detach().requires_grad_() if self.rule == "direct" else ffn
        q_sum = p + (self.norm(at + build.post2, ffn) if build.post2 else ffn)
        self.seen.append(Seen(x, a, f, p, p, q_sum, ffn, wrote))
        return q_sum

    def head(self, x: Tensor) -> Tensor:
        logits = self.norm(f"{self.build.base}{self.build.final}", x)[-1] @ self.vocabulary.T
        if cap := self.option("final_logit_softcapping", None):
            logits = cap * self.act(torch.tanh, logits / cap)
        return logits

    def bare(self, ids: list[int], rule: Rule) -> Tensor:
        """As `logits`, with the values as they are written; see `brought`."""
        return self.logits(ids, rule)


def brought(seen: Seen) -> Tensor:
    """What every head brings from every token into every sum, [H, i, j, d]."""
    f, scale = seen.f if isinstance(seen.f, tuple) else (seen.f, None)
    made = seen.a[..., None] * f[:, None]
    return (made if scale is None else made * scale[None, :, None]).detach()


def direct(hand: Decoder, ids: list[int], start: dict[int, float]) -> tuple[Tensor, list[float]]:
    """Direct contributions [L, H, n], and the feed-forwards': each vector against what becomes of
    the sum that it is in."""
    logits = hand.logits(ids, "direct")
    value = sum(sign * logits[c] for c, sign in start.items())
    slopes = torch.autograd.grad(
        value, [*(s.wrote for s in hand.seen), *(s.ffn for s in hand.seen)]
    )
    rows, fed = [], []
    for number, seen in enumerate(hand.seen):
        f = seen.f[0] if isinstance(seen.f, tuple) else seen.f
        made = torch.zeros(hand.heads, len(ids), dtype=torch.float64)
        for head in range(hand.heads):
            for i in range(len(ids)):
                for j in range(len(ids)):
                    made[head, j] += seen.a[head, i, j] * (f[head, j] @ slopes[number][i])
        rows.append(made)
        fed.append(float((seen.ffn.detach() * slopes[hand.layers + number]).sum()))
    return torch.stack(rows).detach(), fed


def _nearness(whole: Tensor, parts: Tensor) -> Tensor:
    """How near each part comes to the whole, clipped, as shares; parts [k, d]."""
    gaps = (whole - parts).abs().sum(-1)
    near = (whole.abs().sum() - gaps).clamp(min=0)
    if not bool(near.any()):
        near[gaps.argmin()] = 1.0
    return near / near.sum()


def routes(seen: Seen) -> tuple[Tensor, Tensor]:
    """A layer's map of `ifr` [n, n], and its feed-forward's shares [n]."""
    parts, n = brought(seen), len(seen.x)
    map, fed = torch.zeros(n, n, dtype=torch.float64), []
    for i in range(n):
        every = torch.cat([parts[:, i].reshape(-1, parts.shape[-1]), seen.x[i].detach()[None]])
        near = _nearness(seen.p[i].detach(), every)
        map[i] = near[:-1].reshape(-1, n).sum(0)
        map[i, i] += near[-1]
        added = (seen.q[i] - seen.y[i]).detach()
        fed.append(
            float(_nearness(seen.q[i].detach(), torch.stack([added, seen.y[i].detach()]))[0])
        )
    return map, torch.tensor(fed).double()


def alti(seen: Seen) -> Tensor:
    """A layer's map of ALTI, [n, n]; no norm stands behind the sum."""
    parts, n = brought(seen).sum(0), len(seen.x)
    rows = []
    for i in range(n):
        own = torch.stack([parts[i, j] + (seen.x[i].detach() if i == j else 0) for j in range(n)])
        rows.append(_nearness(seen.p[i].detach(), own))
    return torch.stack(rows)


def carried(hand: Decoder, ids: list[int], kind: str) -> tuple[Tensor, Tensor]:
    """DecompX: maps [L, n, n] and every token's part of every logit [n, C]."""
    w, n, build = hand.w, len(ids), hand.build
    hand.logits(ids, "true")

    def shared(u: Tensor, b: Tensor | None) -> Tensor:
        """u [..., j, d] with b added to its sum over j."""
        if kind == "none" or b is None or not bool(b.any()):
            return u
        size = {
            "absdot": lambda: (u * b[..., None, :]).sum(-1).abs() if b.dim() > 1 else (u @ b).abs(),
            "norm": lambda: u.norm(dim=-1),
            "equal": lambda: torch.ones(u.shape[:-1]).double(),
        }[kind]()
        shares = size / size.sum(-1, keepdim=True)
        return u + shares[..., None] * (b[..., None, :] if b.dim() > 1 else b)

    def normed(u: Tensor, name: str, reads: Tensor) -> Tensor:
        u = u if build.rms else u - u.mean(-1, keepdim=True)
        u = hand.weight(name) * u / hand.scale(reads)[:, None]
        return shared(u, w.get(f"{name}.bias"))

    maps = []
    u = torch.diag_embed(hand.seen[0].x.detach().T).permute(1, 2, 0).contiguous()
    for number, seen in enumerate(hand.seen):
        at = hand.at(number)
        h = normed(u, at + build.norm1, seen.x.detach())
        nothing = torch.zeros(1, h.shape[-1], dtype=torch.float64)
        origin = hand.projected(number, nothing)[2]  # [H, 1, d_head], the values' bias
        values = [hand.projected(number, h[k])[2] - origin for k in range(n)]  # each [H, j, d_head]
        out = w[f"{at}{build.out}.weight"].T.reshape(hand.heads, -1, h.shape[-1])
        written = torch.zeros_like(u)
        for i in range(n):
            for k in range(n):
                for head in range(hand.heads):
                    written[i] += seen.a[head, i, k].detach() * (values[k][head] @ out[head])
        bias = (origin @ out).sum(0)[0] + w.get(f"{at}{build.out}.bias", 0.0)
        if build.post1:
            written = normed(written, at + build.post1, seen.wrote.detach())
        p = shared(u + written, bias)
        before = u if build.parallel else p
        reads = seen.x.detach() if build.parallel else seen.p.detach()
        z = normed(before, at + build.norm2, reads)
        whole = hand.norm(at + build.norm2, reads)
        names = [at + name for name in build.feed]
        inside = hand.linear(names[0], whole)
        slope = build.act(inside) / inside
        inner = shared(z @ w[f"{names[0]}.weight"].T, w.get(f"{names[0]}.bias")) * slope[:, None]
        if len(names) == 3:
            inner = (z @ w[f"{names[1]}.weight"].T) * build.act(inside)[:, None]
        fed = shared(inner @ w[f"{names[-1]}.weight"].T, w.get(f"{names[-1]}.bias"))
        if build.post2:
            fed = normed(fed, at + build.post2, seen.ffn.detach())
        u = p + fed
        maps.append(u.norm(dim=-1))
    last = hand.seen[-1].q.detach()
    parts = normed(u, f"{build.base}{build.final}", last)[-1] @ hand.vocabulary.T
    if cap := hand.option("final_logit_softcapping", None):
        logits = hand.norm(f"{build.base}{build.final}", last)[-1] @ hand.vocabulary.T
        parts = parts * (cap * torch.tanh(logits / cap) / logits)
    return torch.stack(maps), parts
