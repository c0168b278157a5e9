"""Methods that share the prediction out backwards: relevance propagation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ..explanation import Part
from ..models import HeadFilter, LayerRelevance, Walk, sd
from .class_activation import ZERO_FOCUS, attention_gradients, finish
from .head_masks import masks_for
from .registry import method

if TYPE_CHECKING:
    from .run import Run

_CHEFER = {
    "paper": "Chefer et al.: Transformer Interpretability Beyond Attention Visualization",
    "year": 2021,
    "link": "https://arxiv.org/abs/2012.09838",
}


def _walk(run: Run) -> Walk:
    return Walk(run.source, run.encoding, run.trace, run.target)


@method(
    "lrp",
    title="Layer-wise relevance propagation (LRP)",
    family="relevance",
    yields="layer_scores",
    paper="Bach et al.: On Pixel-Wise Explanations for Non-Linear Classifier Decisions by "
    "Layer-Wise Relevance Propagation; rules by Chefer et al.",
    year=2015,
    link="https://doi.org/10.1371/journal.pone.0130140",
    needs=("attention", "passes", "rules", "target"),
    scores_from="first",
    signed=True,
    downward=True,
    any_focus=True,
    measures="The prediction shared out backwards from layer to layer, each operation passing "
    "on what it got in proportion to what went in. Nothing is lost on the way.",
    formula=r"R_j = \sum_i \frac{x_j w_{ij}^{\pm}}{\sum_{j'} x_{j'} w_{ij'}^{\pm}} R_i, \quad "
    r"s_j = \sum_d R^0_{jd}",
    ignores="Biases; norms, activations and the softmax pass relevance on unchanged. Sums that "
    "nearly cancel share out very large parts of both signs.",
    cost=lambda size: 6.4,
    options={"zero_focus": ZERO_FOCUS},
)
def lrp(run: Run, *, zero_focus: bool = False) -> Iterator[Part]:
    """s_j = sum_d R_jd at the embedding output, [n]; per layer the relevance of what it reads.

    Rules of Chefer et al. 2021 (see `models/rules.py`), in float64, from one-hot on the target.
    `info["conservation"]` gives for every layer the total relevance below it over that at the
    head. A contrast of two targets is the difference of their relevance.
    """
    walk = _walk(run)
    steps = walk.layers(check=run.check)
    conserved: dict[int, list[float]] = {}
    scores = torch.zeros(run.trace.tokens)
    for layer, step in zip(run.layers(), steps, strict=True):
        scores = walk.combined(step.inputs).sum(-1)
        conserved[layer] = step.conserved
        yield run.part(layer, scores=scores)
    run.info["conservation"] = _in_order(conserved)
    yield finish(run, scores, zero_focus)


def _in_order(conserved: dict[int, list[float]]) -> list[float]:
    """Of the parts of a contrast the one that is conserved worst, layers from the bottom up."""
    return [max(conserved[k], key=lambda total: abs(total - 1)) for k in sorted(conserved)]


@method(
    "partial_lrp",
    title="Partial LRP",
    family="relevance",
    yields="scores",
    paper="Voita et al.: Analyzing Multi-Head Self-Attention",
    year=2019,
    link="https://aclanthology.org/P19-1580",
    needs=("attention", "passes", "rules", "target"),
    measures="Relevance of the last layer's attention weights in the focus token's row.",
    formula=r"s_j = \tfrac{1}{H} \sum_h \mathrm{relu}\bigl(R_{A^{L,h}}\bigr)_{fj}",
    ignores="All layers but the last.",
    cost=lambda size: 2.0,
    options={"zero_focus": ZERO_FOCUS},
)
def partial_lrp(run: Run, *, zero_focus: bool = False) -> Iterator[Part]:
    """mean_h relu(R_A) of the last layer, focus row, [n]. Voita et al. 2019."""
    walk = _walk(run)
    step = next(walk.layers(lowest=len(run.trace) - 1, check=run.check))
    run.info["conservation"] = [step.conserved[0]]
    yield finish(run, walk.combined(step.attention).relu().mean(0)[run.focus], zero_focus)


def transparent(walk: Walk, attention: Tensor, slope: Tensor) -> Tensor:
    """M = mean_h relu(dA * R_A) + I, rows normalised; [n, n]."""
    matrix = (slope.to(attention.device) * walk.combined(attention)).relu().mean(0)
    matrix = matrix + torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
    return matrix / matrix.sum(-1, keepdim=True)


def _attribution(
    run: Run,
    zero_focus: bool,
    head_filter: HeadFilter | None = None,
    attention_of: Callable[[LayerRelevance], Tensor] = lambda step: step.attention,
) -> Iterator[Part]:
    """The maps of transformer attribution, from the top layer down, and the final scores."""
    walk = _walk(run)
    _, slopes = attention_gradients(run)
    maps: dict[int, Tensor] = {}
    conserved: dict[int, list[float]] = {}
    steps = walk.layers(head_filter=head_filter, check=run.check)
    for layer, step in zip(run.layers(), steps, strict=True):
        maps[layer] = transparent(walk, attention_of(step), slopes[layer])
        conserved[layer] = step.conserved
        yield run.part(layer, maps[layer])
    run.info["conservation"] = _in_order(conserved)
    if zero_focus:
        yield finish(run, _rolled(maps)[run.focus], zero_focus)


def _rolled(maps: dict[int, Tensor]) -> Tensor:
    """The product of all layers' maps, the first layer's on the right. [n, n]"""
    product = maps[0]
    for layer in sorted(maps)[1:]:
        product = maps[layer] @ product
    return product


@method(
    "transatt",
    title="Transformer attribution",
    family="relevance",
    yields="maps",
    **_CHEFER,  # type: ignore[arg-type]
    needs=("attention", "gradients", "passes", "rules", "target"),
    downward=True,
    measures="Attention that carries relevance and whose growth would raise the target's logit, "
    "followed through the layers.",
    formula=r"M^l = \mathrm{rownorm}\Bigl(I + \tfrac{1}{H} \sum_h \mathrm{relu}\bigl("
    r"\tfrac{\partial y_c}{\partial A^{l,h}} \odot R_{A^{l,h}}\bigr)\Bigr), \quad "
    r"R^l = M^l R^{l-1}",
    ignores="What speaks against the target. The residual counts as 1 whatever its size.",
    cost=lambda size: 9.1,
    options={"zero_focus": ZERO_FOCUS},
)
def transatt(run: Run, *, zero_focus: bool = False) -> Iterator[Part]:
    """M = mean_h relu(dy_c/dA * R_A) + I, rows normalised, [n, n]; multiplied; focus row.

    Chefer et al. 2021. `zero_focus=True` sets the focus token's own score to 0.
    """
    yield from _attribution(run, zero_focus)


@method(
    "mask_lrp",
    title="Mask-LRP",
    family="relevance",
    yields="maps",
    paper="Song et al.: Better Explain Transformers by Illuminating Important Information",
    year=2024,
    link="https://arxiv.org/abs/2401.09972",
    needs=("attention", "gradients", "passes", "rules", "target"),
    downward=True,
    measures="Transformer attribution in which relevance flows down only through heads that "
    "are known to follow syntax or a fixed offset.",
    formula=r"M^l = \mathrm{rownorm}\Bigl(I + \tfrac{1}{H} \sum_h \mathrm{relu}\bigl("
    r"\tfrac{\partial y_c}{\partial A^{l,h}} \odot R_{A^{l,h}}\bigr)\Bigr), \quad "
    r"R_h \leftarrow m^{l,h} R_h",
    ignores="Heads outside the mask, and what the mask takes away: relevance is then no longer "
    "conserved. It is as good as the mask.",
    cost=lambda size: 5.5,
    options={
        "mask": (None, "Heads to keep: [layers, heads] of 0 and 1, two of them (syntactic and "
        "positional), or what head_masks gives. None: the demo model's own, or positional heads "
        "found in this text."),
        "as_released": ((False, True), "Use the un-halved relevance of attention, as the "
        "authors' code does."),
        "normalise": ((False, True), "Rescale the syntactic and the positional part so that "
        "relevance is conserved, as in the paper's text."),
        "zero_focus": ZERO_FOCUS,
    },
)  # fmt: skip
def mask_lrp(
    run: Run,
    *,
    mask: Any = None,
    as_released: bool = False,
    normalise: bool = False,
    zero_focus: bool = False,
) -> Iterator[Part]:
    """`transatt` in which each layer's heads pass on mask [L, H] times the relevance they get.

    R_A of a layer's own map is taken before its mask, so a mask of ones is `transatt`. With
    `normalise=True` the syntactic and the positional part are rescaled so that together they
    hold what came to the heads, R_A is taken after that, and where one mask is given it is
    one part. `as_released=True` uses twice R_A: the halving of the product rule is left out
    there, as in the authors' code. Song et al. 2024.
    """
    masks, note = masks_for(run, mask)
    run.info |= {"mask": np.maximum.reduce(masks).astype(int).tolist(), "mask_note": note}
    factor = 2.0 if as_released else 1.0

    def head_filter(layer: int, into_heads: Tensor) -> Tensor:
        rows = [torch.as_tensor(m[layer], device=into_heads.device) for m in masks]
        if not normalise:
            return torch.stack(rows).amax(0).expand(len(into_heads), -1)
        return _conserving(into_heads.sum((-1, -2)), rows)

    def attention_of(step: LayerRelevance) -> Tensor:
        return factor * (step.passed if normalise else step.attention)

    yield from _attribution(run, zero_focus, head_filter, attention_of)


def _conserving(by_head: Tensor, rows: list[Tensor]) -> Tensor:
    """Factors per head [parts, H] that share all of R among the masked parts.

    Part k becomes R_k |sum R_k| / (|sum R_1| + |sum R_2|) * sum R / sum R_k. by_head [parts, H].
    """
    totals = [(by_head * row).sum(-1, keepdim=True) for row in rows]
    size = torch.stack([total.abs() for total in totals]).sum(0)
    everything = by_head.sum(-1, keepdim=True)
    factors = [
        row * sd(sd(total.abs(), size) * everything, total)
        for row, total in zip(rows, totals, strict=True)
    ]
    return torch.stack(factors).sum(0)
