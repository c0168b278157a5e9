"""Methods that measure the size of what one token gives another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ..blocks import StageName, head_norms, mixing_ratio, vector_norms
from ..errors import InputError
from ..explanation import Part
from ..models import Size
from .registry import method

if TYPE_CHECKING:
    from .run import Run

_KOBAYASHI_2020 = {
    "paper": "Kobayashi et al.: Attention is Not Only a Weight: Analyzing Transformers with "
    "Vector Norms",
    "year": 2020,
    "link": "https://aclanthology.org/2020.emnlp-main.574",
}
_KOBAYASHI_2021 = {
    "paper": "Kobayashi et al.: Incorporating Residual and Normalization Layers into Analysis "
    "of Masked Language Models",
    "year": 2021,
    "link": "https://aclanthology.org/2021.emnlp-main.373",
}
_GLOBENC = {
    "paper": "Modarressi et al.: GlobEnc: Quantifying Global Token Attribution by Incorporating "
    "the Whole Encoder Layer in Transformers",
    "year": 2022,
    "link": "https://aclanthology.org/2022.naacl-main.19",
}
_U = r"u_{ij} = \textstyle\sum_h A^h_{ij} W_O^h v^h_j + [i{=}j]\, x_i"


def _cost(size: Size) -> float:
    """The proof, two projections, and H x H Gram matrices that every pair makes use of."""
    if size.gated:
        layer = 4 * size.width**2 + 2 * size.width * size.inner + 2 * size.tokens * size.width
        return 0.4 + size.tokens * size.width**2 / layer
    return 0.4 + 1.25 * size.tokens * size.heads**2 / size.width**2


def _measured(run: Run, name: StageName) -> Iterator[tuple[int, Tensor]]:
    """(layer, ||u_ij||) at a stage of every layer; the mixing ratios go into the run's info."""
    ratios = run.info["mixing_ratio"] = np.zeros((len(run.trace), run.trace.tokens), np.float32)
    for layer in run.layers():
        block = run.trace.block(layer)
        stage = block.stage(name)
        own = block.own_vectors(stage)
        ratios[layer] = mixing_ratio(block, stage, own).cpu().numpy()
        yield layer, vector_norms(block, stage, own)


@method(
    "attn_norm",
    title="Attention norm (N)",
    family="vector norms",
    yields="maps",
    **_KOBAYASHI_2020,  # type: ignore[arg-type]
    needs=("attention", "values"),
    measures="How long the vector is that attention brings from one token to another: the "
    "weight together with what it is a weight of.",
    formula=r"M_{ij} = \Big\| \sum_h A^h_{ij} W_O^h v^h_j \Big\|",
    ignores="The residual connection, the norms and the feed-forward.",
    cost=_cost,
    options={"head": (None, "one head's vectors alone, counted from 0; None sums all heads")},
)
def attn_norm(run: Run, *, head: int | None = None) -> Iterator[Part]:
    """||z_ij||, z_ij = sum_h A^h_ij W_O^h v^h_j, heads summed before the norm. [n, n]

    With `head`, ||A^h_ij W_O^h v^h_j|| of that head. Value biases are in v; the output bias
    belongs to no token. `info["mixing_ratio"]` [layers, n] is the ratio at this stage.
    """
    if head is None:
        for layer, norms in _measured(run, "z"):
            yield run.part(layer, norms)
        return
    heads = run.trace.heads
    if isinstance(head, bool) or not isinstance(head, int) or not 0 <= head < heads:
        raise InputError(f"head={head!r}, but this model has heads 0 to {heads - 1}.")
    for layer in run.layers():
        block = run.trace.block(layer)
        yield run.part(layer, head_norms(block, block.stage("z"), head))


@method(
    "attn_norm_fixed",
    title="Attention norm, half residual",
    family="vector norms",
    yields="maps",
    **_GLOBENC,  # type: ignore[arg-type]
    needs=("attention", "values"),
    measures="The vectors' lengths as shares of a row, half of each token kept by the residual.",
    formula=r"M_{ij} = \tfrac12 \frac{N_{ij}}{\sum_k N_{ik}} + \tfrac12 [i{=}j], \quad "
    r"N_{ij} = \|z_{ij}\|",
    ignores="The residual's true share, which is assumed to be one half; norms and feed-forward.",
    cost=_cost,
)
def attn_norm_fixed(run: Run) -> Iterator[Part]:
    """0.5 N / rowsum + 0.5 I with N of `attn_norm`. [n, n]

    A token to which attention brings nothing keeps all of itself.
    """
    for layer, norms in _measured(run, "z"):
        total = norms.sum(-1, keepdim=True)
        eye = torch.eye(len(norms), dtype=norms.dtype, device=norms.device)
        shares = torch.where(total > 0, norms / total, eye)
        yield run.part(layer, 0.5 * shares + 0.5 * eye)


@method(
    "attn_norm_res",
    title="Norm with residual (N_RES)",
    family="vector norms",
    yields="maps",
    **_KOBAYASHI_2021,  # type: ignore[arg-type]
    needs=("attention", "values"),
    measures="The length of what one token gives another through attention and, to itself, "
    "through the residual connection.",
    formula=r"M_{ij} = \|u_{ij}\|, \quad " + _U,
    ignores="The norms and the feed-forward.",
    cost=_cost,
)
def attn_norm_res(run: Run) -> Iterator[Part]:
    """||z_ij + [i = j] x_i||. [n, n] `info["mixing_ratio"]` is the ratio at this stage."""
    for layer, norms in _measured(run, "res"):
        yield run.part(layer, norms)


@method(
    "attn_norm_res_ln",
    title="Norm with residual and LayerNorm (N_RESLN)",
    family="vector norms",
    yields="maps",
    **_KOBAYASHI_2021,  # type: ignore[arg-type]
    needs=("attention", "values"),
    measures="The length of what one token gives another in what the first norm puts out.",
    formula=r"M_{ij} = \|t_{ij}\|, \quad "
    r"t_{ij} = \gamma_1 \odot \frac{u_{ij} - \bar u_{ij}}{\sqrt{\mathrm{var}(p_i) + \epsilon}}, "
    r"\quad " + _U,
    ignores="The feed-forward and the second norm. Where no norm follows the residual sum "
    "(GPT-2, Llama) it is the same as N_RES.",
    cost=_cost,
)
def attn_norm_res_ln(run: Run) -> Iterator[Part]:
    """||t_ij||, t_ij = gamma1 c(z_ij + [i = j] x_i) / sqrt(var(p_i) + eps). [n, n]

    The norm is the linear map it is once the scale of its input is known. Post-norm blocks
    only: in the others no norm follows the sum and t_ij is what `attn_norm_res` measures.
    `info["mixing_ratio"]` is the ratio at this stage.
    """
    for layer, norms in _measured(run, "res_ln"):
        yield run.part(layer, norms)


@method(
    "globenc",
    title="GlobEnc (N_ENC)",
    family="vector norms",
    yields="maps",
    **_GLOBENC,  # type: ignore[arg-type]
    needs=("attention", "values"),
    measures="The length of what one token gives another in the layer's output: attention, "
    "residual and both norms.",
    formula=r"M_{ij} = \Big\| \gamma_2 \odot \frac{t_{ij} - \bar t_{ij}}"
    r"{\sqrt{\mathrm{var}(q_i) + \epsilon}} \Big\|, \quad "
    r"t_{ij} = \gamma_1 \odot \frac{u_{ij} - \bar u_{ij}}{\sqrt{\mathrm{var}(p_i) + \epsilon}}",
    ignores="What the feed-forward does to the vectors. Where no norm follows the residual sum "
    "(GPT-2, Llama) it is the same as N_RES.",
    cost=_cost,
)
def globenc(run: Run) -> Iterator[Part]:
    """||gamma2 c(t_ij) / sqrt(var(q_i) + eps)||, t_ij of `attn_norm_res_ln`. [n, n]

    In pre-norm, parallel and sandwich blocks no norm stands after a residual sum, so there is
    nothing to push through and the map is that of `attn_norm_res`. `info["mixing_ratio"]` is
    the ratio at this stage, which `attention_residual` uses.
    """
    for layer, norms in _measured(run, "enc"):
        yield run.part(layer, norms)
