"""Naive twin of the relevance methods on decoders with rotary positions: Llama (grouped heads, a
gated feed-forward), Mixtral (a router and experts), GPT-NeoX (both branches beside each other).

Every layer is computed again in double precision from its weights, in plain matrices, and walked
down by the rules of `relevance.py` beside this file. Elementwise products halve what they get;
positions turn queries and keys by a sum of two parts, which the rule for sums shares out.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tests.reference.relevance import Result, add, linear, sd


def relevance(model: Any, ids: Tensor, target: int, mask: Any = None) -> Result:
    """Relevance from one at the last token's logit of `target`."""
    model = copy.deepcopy(model).double().eval()
    model.set_attn_implementation("eager")
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")
    base = model.base_model
    output = model(input_ids=ids, output_attentions=True, output_hidden_states=True)
    slopes = torch.autograd.grad(output.logits[0, -1, target], output.attentions)
    n = ids.shape[1]
    inputs = [hidden[0].detach() for hidden in output.hidden_states[: len(base.layers)]]
    cosine, sine = (t[0] for t in base.rotary_emb(inputs[0][None], torch.arange(n)[None]))
    kind = Parallel if model.config.model_type == "gpt_neox" else Gated
    layers = [kind(layer, model.config, x, cosine, sine) for layer, x in zip(base.layers, inputs)]

    head = model.get_output_embeddings()
    last = normed(base.final_layer_norm if kind is Parallel else base.norm, layers[-1].output)
    r = torch.zeros(n, head.weight.shape[0]).double()
    r[n - 1, target] = 1
    r = linear(last, head.weight.detach(), r)
    result = Result([], [], [slope[0] for slope in slopes])
    for number in range(len(layers) - 1, -1, -1):
        keep = None if mask is None else mask[number]
        r_a, r = layers[number].down(r, keep)
        result.attention.insert(0, r_a)
        result.inputs.insert(0, r)
        result.totals.insert(0, float(r.sum()))
    return result


def normed(norm: Any, x: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True) if hasattr(norm, "bias") else x
    eps = norm.eps if hasattr(norm, "eps") else norm.variance_epsilon
    y = norm.weight.detach() * centred / (centred.pow(2).mean(-1, keepdim=True) + eps).sqrt()
    return y + norm.bias.detach() if hasattr(norm, "bias") else y


def projected(layer: Any, x: Tensor) -> Tensor:
    made = x @ layer.weight.detach().T
    return made if layer.bias is None else made + layer.bias.detach()


@dataclass
class Heads:
    """Attention of one layer: q [H, n, w]; k, v [G, n, w], shared by H / G heads each; positions
    turn the first numbers of q and k."""

    q: Tensor
    k: Tensor
    v: Tensor
    cosine: Tensor
    sine: Tensor

    def __post_init__(self) -> None:
        n, width = self.q.shape[1:]
        self.groups = len(self.q) // len(self.k)
        self.turned_q, self.turned_k = self.turn(self.q), self.turn(self.k)
        scores = self.turned_q @ self.each(self.turned_k).transpose(1, 2) * width**-0.5
        later = torch.ones(n, n, dtype=torch.bool).triu(1)
        self.a = scores.masked_fill(later, -torch.inf).softmax(-1)
        self.context = (self.a @ self.each(self.v)).transpose(0, 1).reshape(n, -1)

    def each(self, x: Tensor) -> Tensor:
        return torch.stack([x[h // self.groups] for h in range(len(self.q))])

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = x[..., : self.cosine.shape[-1]]
        first, second = x.chunk(2, -1)
        return x * self.cosine, torch.cat([-second, first], -1) * self.sine

    def turn(self, x: Tensor) -> Tensor:
        straight, crossed = self.parts(x)
        return torch.cat([straight + crossed, x[..., straight.shape[-1] :]], -1)

    def turn_back(self, x: Tensor, r: Tensor) -> Tensor:
        width = self.cosine.shape[-1]
        of_straight, of_crossed = add(*self.parts(x), r[..., :width])
        first, second = of_crossed.chunk(2, -1)  # made of the second half and of the first
        return torch.cat([of_straight + torch.cat([second, first], -1), r[..., width:]], -1)

    def down(self, r: Tensor, keep: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """R_A, and relevance of q, k, v as they were projected."""
        n, heads = len(r), len(self.q)
        r = r.reshape(n, heads, -1).transpose(0, 1)
        values, keys = self.each(self.v), self.each(self.turned_k)
        r_a, r_q = [], []
        r_k, r_v = torch.zeros_like(self.k), torch.zeros_like(self.v)
        for h in range(heads):
            share = sd(r[h], self.a[h] @ values[h])
            r_a.append(self.a[h] * (share @ values[h].T) / 2)
            kept = 1.0 if keep is None else float(keep[h])
            r_v[h // self.groups] += kept * values[h] * (self.a[h].T @ share) / 2
            share = sd(kept * r_a[h], self.turned_q[h] @ keys[h].T)
            r_q.append(self.turned_q[h] * (share @ keys[h]) / 2)
            r_k[h // self.groups] += keys[h] * (share.T @ self.turned_q[h]) / 2
        return (
            torch.stack(r_a),
            self.turn_back(self.q, torch.stack(r_q)),
            self.turn_back(self.k, r_k),
            r_v,
        )


def by_head(x: Tensor, heads: int) -> Tensor:
    return x.reshape(len(x), heads, -1).transpose(0, 1)


def joined(x: Tensor) -> Tensor:
    return x.transpose(0, 1).reshape(x.shape[1], -1)


class Gated:
    """x + attention(norm(x)), then + feed-forward(norm of that), which is gated or of experts."""

    def __init__(self, layer: Any, config: Any, x: Tensor, cosine: Tensor, sine: Tensor) -> None:
        self.layer, self.x, at = layer, x, layer.self_attn
        self.h = normed(layer.input_layernorm, x)
        counts = (config.num_attention_heads, *[config.num_key_value_heads] * 2)
        places = (at.q_proj, at.k_proj, at.v_proj)
        states = [by_head(projected(p, self.h), c) for p, c in zip(places, counts, strict=True)]
        self.heads = Heads(*states, cosine, sine)
        self.attended = projected(at.o_proj, self.heads.context)
        self.middle = x + self.attended
        self.z = normed(layer.post_attention_layernorm, self.middle)
        self.made = self.experts() if hasattr(layer.mlp, "experts") else self.feed_forward()
        self.output = self.middle + self.made

    def feed_forward(self) -> Tensor:
        mlp = self.layer.mlp
        gate, up = projected(mlp.gate_proj, self.z), projected(mlp.up_proj, self.z)
        self.inner = torch.nn.functional.silu(gate) * up
        return projected(mlp.down_proj, self.inner)

    def experts(self) -> Tensor:
        mlp = self.layer.mlp
        shares = (self.z @ mlp.gate.weight.detach().T).softmax(-1)
        best = shares.topk(mlp.gate.top_k, -1)
        self.chosen = best.indices
        self.weights = best.values / best.values.sum(-1, keepdim=True)
        self.seen: list[tuple[int, Tensor, Tensor]] = []  # expert, its inner, its weighted output
        whole = torch.zeros_like(self.z)
        for e in range(len(mlp.experts.down_proj)):
            gate, up = (self.z @ mlp.experts.gate_up_proj[e].detach().T).chunk(2, -1)
            inner = torch.nn.functional.silu(gate) * up
            weight = (self.weights * (self.chosen == e)).sum(-1, keepdim=True)
            if bool(weight.any()):
                put_out = weight * (inner @ mlp.experts.down_proj[e].detach().T)
                self.seen.append((e, inner, put_out))
                whole = whole + put_out
        return whole

    def below_experts(self, r: Tensor) -> Tensor:
        """Relevance of z. Experts were added one after the other, each to those before it."""
        mlp, of_z = self.layer.mlp, torch.zeros_like(self.z)
        of_router = torch.zeros(len(r), mlp.gate.weight.shape[0]).double()
        for place in range(len(self.seen) - 1, -1, -1):
            e, inner, put_out = self.seen[place]
            if place:
                before = torch.stack([made for _, _, made in self.seen[:place]]).sum(0)
                r, of_expert = add(before, put_out, r)
            else:
                of_expert = r
            of_expert = of_expert * (self.chosen == e).any(-1, keepdim=True)
            of_router[:, e] = of_expert.sum(-1) / 2
            of_inner = linear(inner, mlp.experts.down_proj[e].detach(), of_expert / 2)
            both = torch.cat([of_inner / 2, of_inner / 2], -1)
            of_z += linear(self.z, mlp.experts.gate_up_proj[e].detach(), both)
        return of_z + linear(self.z, mlp.gate.weight.detach(), of_router)

    def below_feed_forward(self, r: Tensor) -> Tensor:
        mlp = self.layer.mlp
        of_inner = linear(self.inner, mlp.down_proj.weight.detach(), r)
        of_gate = linear(self.z, mlp.gate_proj.weight.detach(), of_inner / 2)
        return of_gate + linear(self.z, mlp.up_proj.weight.detach(), of_inner / 2)

    def down(self, r: Tensor, keep: Any) -> tuple[Tensor, Tensor]:
        straight, branch = add(self.middle, self.made, r)
        routed = hasattr(self.layer.mlp, "experts")
        r = straight + (self.below_experts if routed else self.below_feed_forward)(branch)
        straight, branch = add(self.x, self.attended, r)
        at = self.layer.self_attn
        branch = linear(self.heads.context, at.o_proj.weight.detach(), branch)
        r_a, *states = self.heads.down(branch, keep)
        r = straight
        for place, state in zip((at.q_proj, at.k_proj, at.v_proj), states, strict=True):
            r = r + linear(self.h, place.weight.detach(), joined(state))
        return r_a, r


class Parallel:
    """(feed-forward(norm(x)) + attention(another norm(x))) + x."""

    def __init__(self, layer: Any, config: Any, x: Tensor, cosine: Tensor, sine: Tensor) -> None:
        self.layer, self.x, at, mlp = layer, x, layer.attention, layer.mlp
        self.h, self.z = (
            normed(norm, x) for norm in (layer.input_layernorm, layer.post_attention_layernorm)
        )
        fused = by_head(projected(at.query_key_value, self.h), config.num_attention_heads)
        self.heads = Heads(*fused.chunk(3, -1), cosine, sine)
        self.attended = projected(at.dense, self.heads.context)
        self.inner = torch.nn.functional.gelu(projected(mlp.dense_h_to_4h, self.z))
        self.made = projected(mlp.dense_4h_to_h, self.inner)
        self.output = self.made + self.attended + x

    def down(self, r: Tensor, keep: Any) -> tuple[Tensor, Tensor]:
        at, mlp = self.layer.attention, self.layer.mlp
        both, straight = add(self.made + self.attended, self.x, r)
        of_made, of_attended = add(self.made, self.attended, both)
        of_inner = linear(self.inner, mlp.dense_4h_to_h.weight.detach(), of_made)
        straight = straight + linear(self.z, mlp.dense_h_to_4h.weight.detach(), of_inner)
        of_context = linear(self.heads.context, at.dense.weight.detach(), of_attended)
        r_a, *states = self.heads.down(of_context, keep)
        fused = joined(torch.cat(states, -1))
        return r_a, straight + linear(self.h, at.query_key_value.weight.detach(), fused)
