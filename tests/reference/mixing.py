"""Naive twins of the mixing methods: double precision, explicit loops, straight from the formula.

They stand on nothing but a plain eager forward pass of the transformers model and hooks of
their own. Tensors of [n, n, d] are built without a thought.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

torch64 = torch.float64


@dataclass
class NormOf:
    """gamma, epsilon, and whether the mean is taken off."""

    gamma: Tensor
    eps: float
    centred: bool

    def part(self, u: Tensor, reads: Tensor) -> Tensor:
        """What becomes of a part u of a vector when the norm reads the vector `reads`."""
        power = reads.var(correction=0) if self.centred else reads.square().mean()
        centred = u - u.mean() if self.centred else u
        return self.gamma * centred / (power + self.eps).sqrt()


@dataclass
class Layer:
    """One layer of one text, in the notation of the formulas."""

    x: Tensor  # [n, d]
    a: Tensor  # [H, n, n]
    v: Tensor  # [H, n, d_head], bias included
    w_o: Tensor  # [H, d_head, d]
    b_o: Tensor  # [d]
    o: Tensor  # [n, d]
    norm1: NormOf | None  # those that stand after a residual sum
    norm2: NormOf | None
    after: tuple[NormOf, Tensor] | None  # on the attention branch, with its bias
    y: Tensor  # [n, d] true output of attention, residual and norm1
    q: Tensor | None  # [n, d] what norm2 reads
    zeroed: Callable[[int], Tensor]  # layer output with v_j = 0
    again: Callable[[Tensor], Tensor]  # layer output for another input

    @property
    def n(self) -> int:
        return len(self.x)

    @cached_property
    def f(self) -> Tensor:
        """f^h_j = W_O^h v^h_j, [H, n, d]"""
        return torch.stack([v @ w for v, w in zip(self.v, self.w_o, strict=True)])

    @cached_property
    def attention_out(self) -> Tensor:
        """[n, d]"""
        rows = []
        for i in range(self.n):
            rows.append(self.b_o.clone())
            for h in range(len(self.a)):
                for j in range(self.n):
                    rows[-1] += self.a[h, i, j] * self.f[h, j]
        return torch.stack(rows)

    @cached_property
    def p(self) -> Tensor:
        """[n, d]"""
        rows = []
        for x, out in zip(self.x, self.attention_out, strict=True):
            if self.after is not None:
                out = self.after[0].part(out, out) + self.after[1]
            rows.append(x + out)
        return torch.stack(rows)

    def z(self, i: int, j: int, head: int | None = None) -> Tensor:
        heads = range(len(self.a)) if head is None else [head]
        z = torch.zeros_like(self.b_o)
        for h in heads:
            z = z + self.a[h, i, j] * self.f[h, j]
        return z if self.after is None else self.after[0].part(z, self.attention_out[i])

    def u(self, stage: str, i: int, j: int) -> Tensor:
        """The part of token i that comes from j, at a stage."""
        u = self.z(i, j)
        if stage == "z":
            return u
        u = u + self.x[i] if i == j else u
        if stage in ("res_ln", "enc") and self.norm1 is not None:
            u = self.norm1.part(u, self.p[i])
        if stage == "enc" and self.norm2 is not None:
            assert self.q is not None
            u = self.norm2.part(u, self.q[i])
        return u

    def pairs(self, entry: Callable[[int, int], Any]) -> np.ndarray:
        return np.array([[float(entry(i, j)) for j in range(self.n)] for i in range(self.n)])


def norms(layer: Layer, stage: str) -> np.ndarray:
    return layer.pairs(lambda i, j: layer.u(stage, i, j).norm())


def ratio(layer: Layer, stage: str) -> np.ndarray:
    ratios = []
    for i in range(layer.n):
        zero = torch.zeros_like(layer.x[i])
        context = sum((layer.u(stage, i, j) for j in range(layer.n) if j != i), zero).norm()
        ratios.append(float(context / (context + layer.u(stage, i, i).norm())))
    return np.array(ratios)


def _normalised(map: np.ndarray) -> np.ndarray:
    return map / map.sum(-1, keepdims=True)


def raw_attention(layer: Layer) -> np.ndarray:
    return layer.pairs(lambda i, j: layer.a[:, i, j].mean())


def attention_rollout(layer: Layer) -> np.ndarray:
    return 0.5 * raw_attention(layer) + 0.5 * np.eye(layer.n)


def attention_residual(layer: Layer) -> np.ndarray:
    map, r = raw_attention(layer), ratio(layer, "enc")
    result = np.zeros_like(map)
    for i in range(layer.n):
        others = sum(map[i, j] for j in range(layer.n) if j != i)
        if others == 0:
            result[i, i] = 1
            continue
        for j in range(layer.n):
            result[i, j] = 1 - r[i] if i == j else r[i] * map[i, j] / others
    return result


def attn_norm(layer: Layer, head: int | None = None) -> np.ndarray:
    return layer.pairs(lambda i, j: layer.z(i, j, head).norm())


def attn_norm_fixed(layer: Layer) -> np.ndarray:
    return 0.5 * _normalised(attn_norm(layer)) + 0.5 * np.eye(layer.n)


def alti(layer: Layer, p: int = 1, ln2: bool = False) -> np.ndarray:
    stage = "enc" if ln2 else "res_ln"
    whole = layer.o if ln2 and layer.norm2 is not None else layer.y
    result = np.zeros((layer.n, layer.n))
    for i in range(layer.n):
        far = [
            float(torch.linalg.vector_norm(whole[i] - layer.u(stage, i, j), p))
            if i == j or bool((layer.a[:, i, j] > 0).any())
            else float("inf")
            for j in range(layer.n)
        ]
        size = float(torch.linalg.vector_norm(whole[i], p))
        near = [max(0.0, size - d) for d in far]
        if sum(near) == 0:
            near[int(np.argmin(far))] = 1.0
        result[i] = np.array(near) / sum(near)
    return result


def value_zeroing(layer: Layer, distance: str = "cosine") -> np.ndarray:
    from scipy.stats import spearmanr

    moved = np.zeros((layer.n, layer.n))
    for j in range(layer.n):
        without = layer.zeroed(j)
        for i in range(layer.n):
            here, there = without[i].double(), layer.o[i]
            if distance == "cosine":
                gap = here / here.norm() - there / there.norm()
                moved[i, j] = float(gap @ gap / 2)
            elif distance == "euclidean":
                moved[i, j] = float((here - there).norm())
            else:
                moved[i, j] = 1 - spearmanr(here.numpy(), there.numpy()).statistic
    return _normalised(moved)


def hta(layer: Layer) -> np.ndarray:
    jacobian = torch.autograd.functional.jacobian(layer.again, layer.x)  # [n, d, n, d]
    scaled = jacobian * layer.x
    return layer.pairs(lambda i, j: scaled[i, :, j].norm())


def flow(maps: np.ndarray) -> np.ndarray:
    """Maximum flow from every token after the last layer to every input token, rows sum 1."""
    layers, n, _ = maps.shape
    result = np.array([[_max_flow(maps, layers * n + i, j) for j in range(n)] for i in range(n)])
    return _normalised(result)


def _max_flow(maps: np.ndarray, source: int, sink: int) -> float:
    """Ford and Fulkerson: while there is a path with room, fill it."""
    layers, n, _ = maps.shape
    room = np.zeros(((layers + 1) * n,) * 2)
    for level in range(layers):
        room[(level + 1) * n : (level + 2) * n, level * n : (level + 1) * n] = maps[level]
    total = 0.0
    while True:
        before, queue = {source: source}, [source]
        while queue and sink not in before:
            node = queue.pop(0)
            for other in np.flatnonzero(room[node] > 1e-12):
                if int(other) not in before:
                    before[int(other)] = node
                    queue.append(int(other))
        if sink not in before:
            return total
        path = [sink]
        while path[-1] != source:
            path.append(before[path[-1]])
        steps = list(zip(path[1:], path[:-1], strict=True))
        width = min(room[step] for step in steps)
        for a, b in steps:
            room[a, b] -= width
            room[b, a] += width
        total += width


def rollout(maps: np.ndarray, normalise_first: bool = False) -> np.ndarray:
    """R^1 = M^1, R^l = M^l R^(l-1); rows of the last sum to 1."""
    combined = None
    for map in maps:
        map = _normalised(map) if normalise_first else map
        combined = map if combined is None else map @ combined
    assert combined is not None
    return _normalised(combined)


TWINS: dict[str, Callable[..., np.ndarray]] = {
    "raw_attention": raw_attention,
    "attention_rollout": attention_rollout,
    "attention_flow": attention_rollout,
    "attention_residual": attention_residual,
    "attn_norm": attn_norm,
    "attn_norm_fixed": attn_norm_fixed,
    "attn_norm_res": lambda layer: norms(layer, "res"),
    "attn_norm_res_ln": lambda layer: norms(layer, "res_ln"),
    "globenc": lambda layer: norms(layer, "enc"),
    "alti": alti,
    "value_zeroing": value_zeroing,
    "hta": hta,
}


# --- how each family is read: where its parts are, written down again, apart from the package


@dataclass
class _Places:
    """A family's parts by name. `values` cuts the values out of the projection's result
    [n, out] and gives [H, n, d_head]; `blank` zeroes token j's values in that result."""

    layers: str
    value: str
    out: str
    values: Callable[[Tensor, Any], Tensor]
    blank: Callable[[Tensor, int, Any], None]
    norm1: str | None = None
    norm2: str | None = None
    after: str | None = None
    offset: float = 0.0


def _split_heads(result: Tensor, heads: int) -> Tensor:
    return result.reshape(len(result), heads, -1).transpose(0, 1)


def _plain_values(result: Tensor, config: Any) -> Tensor:
    groups = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    values = _split_heads(result, groups)
    return values.repeat_interleave(config.num_attention_heads // groups, 0)


def _blank_row(result: Tensor, j: int, config: Any) -> None:
    result[:, j] = 0


def _gpt2_values(result: Tensor, config: Any) -> Tensor:
    return _split_heads(result[:, 2 * config.n_embd :], config.n_head)


def _blank_gpt2(result: Tensor, j: int, config: Any) -> None:
    result[:, j, 2 * config.n_embd :] = 0


def _neox_values(result: Tensor, config: Any) -> Tensor:
    joined = _split_heads(result, config.num_attention_heads)
    return joined[..., 2 * joined.shape[-1] // 3 :]


def _blank_neox(result: Tensor, j: int, config: Any) -> None:
    joined = result[0, j].reshape(config.num_attention_heads, -1)
    joined[:, 2 * joined.shape[-1] // 3 :] = 0
    result[0, j] = joined.flatten()


_BERT = _Places(
    "encoder.layer",
    "attention.self.value",
    "attention.output.dense",
    _plain_values,
    _blank_row,
    norm1="attention.output.LayerNorm",
    norm2="output.LayerNorm",
)
_LLAMA = _Places("layers", "self_attn.v_proj", "self_attn.o_proj", _plain_values, _blank_row)
_PLACES = {
    "bert": _BERT,
    "gpt2": _Places("h", "attn.c_attn", "attn.c_proj", _gpt2_values, _blank_gpt2),
    "llama": _LLAMA,
    "gpt_neox": _Places(
        "layers",
        "attention.query_key_value",
        "attention.dense",
        _neox_values,
        _blank_neox,
    ),
    "gemma2": _Places(
        "layers",
        "self_attn.v_proj",
        "self_attn.o_proj",
        _plain_values,
        _blank_row,
        after="post_attention_layernorm",
        offset=1.0,
    ),
}
FAMILIES = list(_PLACES)


def _norm(module: Any, offset: float) -> NormOf:
    eps = getattr(module, "eps", None) or module.variance_epsilon
    centred = isinstance(module, torch.nn.LayerNorm)
    return NormOf(module.weight.detach().double() + offset, float(eps), centred)


def read(model: Any, inputs: dict[str, Tensor]) -> list[Layer]:
    """Run a double-precision eager copy of the model and take its layers apart."""
    twin = copy.deepcopy(model).double().eval()
    twin.set_attn_implementation("eager")
    config = twin.config
    places = _PLACES[config.model_type]
    modules = twin.base_model.get_submodule(places.layers)
    calls: list[dict[str, Any]] = [{} for _ in modules]
    hooks = []
    for module, call in zip(modules, calls, strict=True):
        hooks += _watch(module, call, places)
    with torch.no_grad():
        result = twin(**inputs, output_attentions=True, use_cache=False)
    for hook in hooks:
        hook.remove()
    attentions = [weights[0].double() for weights in result.attentions]
    return [
        _layer(module, call, weights, places, config)
        for module, call, weights in zip(modules, calls, attentions, strict=True)
    ]


def _watch(module: Any, call: dict[str, Any], places: _Places) -> list[Any]:
    def enter(_: Any, args: Any, kwargs: Any) -> None:
        call["x"], call["args"], call["kwargs"] = args[0], args[1:], kwargs

    def leave(_: Any, args: Any, result: Any) -> None:
        call["o"] = result[0] if isinstance(result, tuple) else result

    def value(_: Any, args: Any, result: Tensor) -> None:
        call["v"] = result[0]

    hooks = [
        module.register_forward_pre_hook(enter, with_kwargs=True),
        module.register_forward_hook(leave),
        module.get_submodule(places.value).register_forward_hook(value),
    ]
    if places.norm2 is not None:

        def second(_: Any, args: Any) -> None:
            call["q"] = args[0][0]

        norm2 = module.get_submodule(places.norm2)
        hooks.append(norm2.register_forward_pre_hook(second))
    return hooks


def _layer(
    module: Any, call: dict[str, Any], weights: Tensor, places: _Places, config: Any
) -> Layer:
    out = module.get_submodule(places.out)
    matrix = out.weight if type(out).__name__ == "Conv1D" else out.weight.T  # [in, d]
    heads = len(weights)
    bias = out.bias if out.bias is not None else torch.zeros(matrix.shape[1], dtype=torch64)
    after = None
    if places.after is not None:
        norm = module.get_submodule(places.after)
        after = (_norm(norm, places.offset), torch.zeros_like(bias))

    def again(x: Tensor) -> Tensor:
        result = module(x[None], *call["args"], **call["kwargs"])
        return (result[0] if isinstance(result, tuple) else result)[0]

    def zeroed(j: int) -> Tensor:
        def blank(_: Any, args: Any, result: Tensor) -> Tensor:
            result = result.clone()
            places.blank(result, j, config)
            return result

        hook = module.get_submodule(places.value).register_forward_hook(blank)
        try:
            with torch.no_grad():
                return again(call["x"][0])
        finally:
            hook.remove()

    def norm_at(path: str | None) -> NormOf | None:
        return None if path is None else _norm(module.get_submodule(path), places.offset)

    layer = Layer(
        x=call["x"][0].double(),
        a=weights,
        v=places.values(call["v"], config).double(),
        w_o=matrix.detach().reshape(heads, -1, matrix.shape[1]),
        b_o=bias.detach(),
        o=call["o"][0].double(),
        norm1=norm_at(places.norm1),
        norm2=norm_at(places.norm2),
        after=after,
        y=torch.empty(0),
        q=call.get("q"),
        zeroed=zeroed,
        again=again,
    )
    layer.y = layer.p
    if places.norm1 is not None:
        with torch.no_grad():
            layer.y = module.get_submodule(places.norm1)(layer.p)
    return layer
