"""Naive twin of the relevance methods: double precision, straight from the rules.

It runs a plain eager pass of the transformers model in float64, reads what every projection
read by hooks of its own, and knows each family's modules by its own table. Rules are written
by the four sign cases, one output feature at a time where that is close to the formula.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

# family -> (layers, query, key, value, out, up, down, pre-norm)
PLACES: dict[str, tuple[str, str, str, str, str, str, str, bool]] = {
    "bert": (
        "bert.encoder.layer",
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
        "attention.output.dense",
        "intermediate.dense",
        "output.dense",
        False,
    ),
    "distilbert": (
        "distilbert.transformer.layer",
        "attention.q_lin",
        "attention.k_lin",
        "attention.v_lin",
        "attention.out_lin",
        "ffn.lin1",
        "ffn.lin2",
        False,
    ),
    "gpt2": (
        "transformer.h",
        "attn.c_attn",
        "attn.c_attn",
        "attn.c_attn",
        "attn.c_proj",
        "mlp.c_fc",
        "mlp.c_proj",
        True,
    ),
    "opt": (
        "model.decoder.layers",
        "self_attn.q_proj",
        "self_attn.k_proj",
        "self_attn.v_proj",
        "self_attn.out_proj",
        "fc1",
        "fc2",
        True,
    ),
}
for _name in ("roberta", "electra"):
    PLACES[_name] = (PLACES["bert"][0].replace("bert", _name, 1), *PLACES["bert"][1:])

# family and head -> (projections from the last to the first, which token the first reads:
# a number, or None for all of them)
HEADS: dict[tuple[str, str], tuple[list[str], int | None]] = {
    ("bert", "class"): (["classifier", "bert.pooler.dense"], 0),
    ("roberta", "class"): (["classifier.out_proj", "classifier.dense"], 0),
    ("electra", "class"): (["classifier.out_proj", "classifier.dense"], 0),
    ("distilbert", "class"): (["classifier", "pre_classifier"], 0),
    ("gpt2", "class"): (["score"], None),
    ("opt", "class"): (["score"], None),
    ("bert", "token"): (["cls.predictions.decoder", "cls.predictions.transform.dense"], None),
    ("roberta", "token"): (["lm_head.decoder", "lm_head.dense"], None),
    ("electra", "token"): (["generator_lm_head", "generator_predictions.dense"], None),
    ("distilbert", "token"): (["vocab_projector", "vocab_transform"], None),
    ("gpt2", "token"): (["lm_head"], None),
    ("opt", "token"): (["lm_head"], None),
    **{
        (family, "span"): (["qa_outputs"], None)
        for family in ("bert", "roberta", "electra", "distilbert", "gpt2")
    },
}


def sd(a: Tensor, b: Tensor) -> Tensor:
    made = torch.zeros_like(a + b)
    where = (b != 0).expand_as(made)
    made[where] = (a / (b + 1e-9)).expand_as(made)[where]
    return made


def linear(x: Tensor, w: Tensor, r: Tensor) -> Tensor:
    """x [n, in], w [out, in], r [n, out]: four sign cases, two of which count."""
    given = torch.zeros_like(x)
    for i in range(w.shape[0]):
        if not bool(r[:, i].any()):
            continue
        positive = x.clamp(min=0) * w[i].clamp(min=0) + x.clamp(max=0) * w[i].clamp(max=0)
        given += positive * sd(r[:, i], positive.sum(-1))[:, None]
    return given


def add(a: Tensor, b: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
    share = sd(r, a + b)
    of_a, of_b = a * share, b * share
    weight_a, weight_b = of_a.sum().abs(), of_b.sum().abs()
    total_a = sd(weight_a, weight_a + weight_b) * r.sum()
    total_b = sd(weight_b, weight_a + weight_b) * r.sum()
    return of_a * sd(total_a, of_a.sum()), of_b * sd(total_b, of_b.sum())


@dataclass
class Result:
    """Relevance of one prediction by one rule set."""

    attention: list[Tensor]  # R_A of each layer, halved, [H, n, n]
    inputs: list[Tensor]  # R of what each layer reads, [n, d]
    slopes: list[Tensor]  # dy/dA, [H, n, n]
    totals: list[float] = field(default_factory=list)

    def transatt(self, factor: float = 1.0) -> Tensor:
        """[L, n, n]"""
        maps = []
        for r, slope in zip(self.attention, self.slopes, strict=True):
            m = (slope * r * factor).clamp(min=0).mean(0) + torch.eye(r.shape[-1]).double()
            maps.append(m / m.sum(-1, keepdim=True))
        return torch.stack(maps)


def _at(module: Any, path: str) -> Any:
    for step in path.split("."):
        module = getattr(module, step)
    return module


def _weight(module: Any) -> Tensor:
    weight = module.weight.detach()
    return weight.T if type(module).__name__ == "Conv1D" else weight


def relevance(
    model: Any, inputs: dict[str, Tensor], kind: str, start: list[tuple[int, ...]], mask: Any = None
) -> Result:
    """Relevance from ones at the logits named in `start`: (class,), (token, vocabulary entry)
    or (token, 0 for a start and 1 for an end)."""
    model = copy.deepcopy(model).double().eval()
    model.set_attn_implementation("eager")
    family = model.config.model_type
    layers_at, q_at, k_at, v_at, out_at, up_at, down_at, pre = PLACES[family]
    layers = _at(model, layers_at)
    names, row = HEADS[family, kind]
    seen: dict[Any, tuple[Tensor, Tensor]] = {}
    watched = [_at(layer, path) for layer in layers for path in (q_at, k_at, v_at, out_at, up_at)]
    watched += [_at(layer, down_at) for layer in layers] + [_at(model, name) for name in names]
    watched += list(layers)
    handles = [
        module.register_forward_hook(
            lambda m, args, kwargs, made: seen.__setitem__(
                m, ((args[0] if args else kwargs["hidden_states"]).detach(), made)
            ),
            with_kwargs=True,
        )
        for module in dict.fromkeys(watched)
    ]
    given = {k: v for k, v in inputs.items() if k != "use_cache"}
    output = model(**given, output_attentions=True)
    for handle in handles:
        handle.remove()
    logits = _logits(output, kind)
    objective = sum(logits[at] for at in start)
    slopes = torch.autograd.grad(objective, output.attentions)

    n = inputs["input_ids"].shape[1]
    r = torch.zeros_like(logits)
    for at in start:
        r[at] = 1
    if kind == "class" and row is None:  # each token is scored and the last one's score read
        r = torch.zeros(n, logits.shape[-1]).double()
        r[n - 1, start[0][0]] = 1
    r = r.detach().reshape(-1, r.shape[-1])
    for name in names:
        module = _at(model, name)
        x = seen[module][0]
        r = linear(x.reshape(-1, x.shape[-1]), _weight(module), r)
    if row is not None:
        placed = torch.zeros(n, r.shape[-1]).double()
        placed[row] = r[0]
        r = placed

    result = Result([], [], [slope[0] for slope in slopes])
    for number in range(len(layers) - 1, -1, -1):
        layer, weights = layers[number], output.attentions[number][0].detach()
        heads = len(weights)
        x = seen[layer][0][0]
        up, down, out = _at(layer, up_at), _at(layer, down_at), _at(layer, out_at)
        ffn_in, inner = seen[up][0].reshape(n, -1), seen[down][0].reshape(n, -1)
        ffn_out = seen[down][1].detach().reshape(n, -1)
        attended = seen[out][1].detach().reshape(n, -1)
        middle = x + attended if pre else ffn_in
        branch, straight = add(ffn_out, middle, r)
        r = linear(ffn_in, _weight(up), linear(inner, _weight(down), branch)) + straight
        branch, straight = add(attended, x, r)
        context = seen[out][0].reshape(n, -1)
        branch = linear(context, _weight(out), branch)

        query, key, value = _states(layer, (q_at, k_at, v_at), seen, n, heads)
        read = seen[_at(layer, q_at)][0].reshape(n, -1)
        into = branch.reshape(n, heads, -1).transpose(0, 1)
        r_a, r_q, r_k, r_v = [], [], [], []
        for h in range(heads):
            share = sd(into[h], weights[h] @ value[h])
            r_a.append(weights[h] * (share @ value[h].T) / 2)
            keep = 1.0 if mask is None else float(mask[number][h])
            r_v.append(keep * value[h] * (weights[h].T @ share) / 2)
            share = sd(keep * r_a[h], query[h] @ key[h].T)
            r_q.append(query[h] * (share @ key[h]) / 2)
            r_k.append(key[h] * (share.T @ query[h]) / 2)
        r = straight
        for which, parts in enumerate((r_q, r_k, r_v)):
            joined = torch.stack(parts).transpose(0, 1).reshape(n, -1)
            r = r + linear(read, _split(layer, (q_at, k_at, v_at), which), joined)
        result.attention.insert(0, torch.stack(r_a))
        result.inputs.insert(0, r)
        result.totals.insert(0, float(r.sum()))
    return result


def _logits(output: Any, kind: str) -> Tensor:
    if kind == "span":
        return torch.stack([output.start_logits[0], output.end_logits[0]], -1)
    return output.logits[0]


def _states(
    layer: Any, paths: tuple[str, str, str], seen: dict[Any, Any], n: int, heads: int
) -> list[Tensor]:
    made = [seen[_at(layer, path)][1].detach().reshape(n, -1) for path in paths]
    if len(set(paths)) == 1:
        made = list(made[0].chunk(3, -1))
    return [states.reshape(n, heads, -1).transpose(0, 1) for states in made]


def _split(layer: Any, paths: tuple[str, str, str], which: int) -> Tensor:
    weight = _weight(_at(layer, paths[which]))
    return weight.chunk(3)[which] if len(set(paths)) == 1 else weight
