"""Methods that share the prediction out backwards: relevance propagation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ..errors import UnsupportedMethodError
from ..explanation import Part
from ..models import HeadFilter, LayerRelevance, Walk, attention_on_axis, sd
from .class_activation import ZERO_FOCUS, attention_gradients, finish
from .head_masks import masks_for
from .registry import method
from .run import blocks_of

if TYPE_CHECKING:
    from .run import Run

_CHEFER = {
    "paper": "Chefer et al.: Transformer Interpretability Beyond Attention Visualization",
    "year": 2021,
    "link": "https://arxiv.org/abs/2012.09838",
}


# More or less than this of what a layer should hold is not put down to rounding.
_UNKEPT = 1e-3


def _walk(run: Run, **options: Any) -> Walk:
    return Walk(run.source, run.encoding.inputs, run.resolved, check=run.check, **options)


def _told(run: Run, walk: Walk, conserved: dict[int, list[float]], kept: bool = True) -> None:
    """How much of the relevance every layer held, and which rules were met."""
    # Of the parts of a contrast the one that is conserved worst, layers from the bottom up.
    worst = [max(conserved[k], key=lambda total: abs(total - 1)) for k in sorted(conserved)]
    run.info |= {"conservation": worst, "rules": walk.met}
    lost = max((abs(total - 1) for total in worst), default=0.0)
    if kept and not lost <= _UNKEPT:
        warnings.warn(
            f"{run.method.id} of {run.source.name}: relevance is not conserved, a layer holds "
            f"{lost:.1%} more or less than the prediction. Do not trust these scores.",
            stacklevel=5,  # the caller of `explain`
        )


@method(
    "lrp",
    title="Layer-wise relevance propagation (LRP)",
    family="relevance",
    yields="layer_scores",
    paper="Bach et al.: On Pixel-Wise Explanations for Non-Linear Classifier Decisions by "
    "Layer-Wise Relevance Propagation; rules by Chefer et al.",
    year=2015,
    link="https://doi.org/10.1371/journal.pone.0130140",
    needs=("gradients", "passes", "rules", "target"),
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
    cost=lambda size: 7.8,
    options={"zero_focus": ZERO_FOCUS},
)
def lrp(run: Run, *, zero_focus: bool = False) -> Iterator[Part]:
    """s_j = sum_d R_jd at the embedding output, [n]; per layer the relevance of what it reads.

    Rules of Chefer et al. 2021 (see `models/rules.py`), in float64, from one-hot on the target.
    `info["conservation"]` gives for every layer the total relevance below it over that at the
    head. A contrast of two targets is the difference of their relevance.
    """
    walk = _walk(run)
    conserved: dict[int, list[float]] = {}
    for step in walk.layers():
        scores = walk.combined(step.scores)
        conserved[step.layer] = step.conserved
        for block in blocks_of(run, walk.sides, step.layer)[::-1]:
            yield run.part(block, scores=scores)
        run.report(1 - step.layer / len(walk.sides))
    run.report(1.0)
    _told(run, walk, conserved)
    yield finish(run, walk.combined(walk.entered), zero_focus)


@method(
    "partial_lrp",
    title="Partial LRP",
    family="relevance",
    yields="scores",
    paper="Voita et al.: Analyzing Multi-Head Self-Attention",
    year=2019,
    link="https://aclanthology.org/P19-1580",
    needs=("gradients", "passes", "rules", "target"),
    measures="Relevance of the last layer's attention weights in the focus token's row.",
    formula=r"s_j = \tfrac{1}{H} \sum_h \mathrm{relu}\bigl(R_{A^{L,h}}\bigr)_{fj}",
    ignores="All layers but the last.",
    cost=lambda size: 3.0,
    options={"zero_focus": ZERO_FOCUS},
)
def partial_lrp(run: Run, *, zero_focus: bool = False) -> Iterator[Part]:
    """mean_h relu(R_A) of the last layer, focus row, [n]. Voita et al. 2019."""
    walk = _walk(run, attentions=True)
    for step in walk.layers():
        if step.attention:
            number = max(step.attention)
            relevance = walk.combined(step.attention[number])
            break
    else:
        raise UnsupportedMethodError(
            f"{type(run.source.model).__name__} computes no attention that relevance comes to."
        )
    _told(run, walk, {0: step.conserved})
    name = run.trace.names[_placed_at(run, walk)[number]] if run.source.decodes else ""
    heads = attention_on_axis(name, relevance, walk.sizes)
    yield finish(run, heads.relu().mean(0)[run.focus], zero_focus)


def _placed_at(run: Run, walk: Walk) -> list[int]:
    """Which block of the recorded pass each attention of the walk belongs to."""
    blocks = run.trace.attending
    if len(blocks) != walk.attentions:
        raise UnsupportedMethodError(
            f"{type(run.source.model).__name__} computes {walk.attentions} attentions in a pass "
            f"that is followed back, and {len(blocks)} in the recorded one."
        )
    return blocks


def transparent(attention: Tensor, slope: Tensor) -> Tensor:
    """M = mean_h relu(dA * R_A) + I, rows normalised; [n, n]."""
    matrix = (slope.to(attention.device) * attention).relu().mean(0)
    matrix = matrix + torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
    return matrix / matrix.sum(-1, keepdim=True)


def _attribution(
    run: Run,
    zero_focus: bool,
    head_filter: HeadFilter | None = None,
    attention_of: Callable[[LayerRelevance], dict[int, Tensor]] = lambda step: step.attention,
) -> Iterator[Part]:
    """The maps of transformer attribution, from the top layer down, and the final scores."""
    walk = _walk(run, attentions=True, head_filter=head_filter)
    _, slopes = attention_gradients(run)
    maps: dict[int, Tensor] = {}
    conserved: dict[int, list[float]] = {}
    for step in walk.layers():
        conserved[step.layer] = step.conserved
        for number in sorted(step.attention, reverse=True):
            layer = _placed_at(run, walk)[number]
            relevance = walk.combined(attention_of(step)[number])
            heads = attention_on_axis(run.trace.names[layer], relevance, walk.sizes)
            maps[layer] = transparent(heads, slopes[layer])
            yield run.part(layer, maps[layer])
        run.report(1 - step.layer / len(walk.sides))
    run.report(1.0)
    _told(run, walk, conserved, head_filter is None)
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
    cost=lambda size: 10.5,
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
    cost=lambda size: 10.5,
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

    def head_filter(number: int, into_heads: Tensor) -> Tensor:
        layer = run.trace.attending[number]
        rows = [torch.as_tensor(m[layer], device=into_heads.device) for m in masks]
        if not normalise:
            return torch.stack(rows).amax(0)
        return _conserving(into_heads.sum((-1, -2)), rows)

    def attention_of(step: LayerRelevance) -> dict[int, Tensor]:
        held = step.passed if normalise else step.attention
        return {number: factor * relevance for number, relevance in held.items()}

    yield from _attribution(run, zero_focus, head_filter, attention_of)


def _conserving(by_head: Tensor, rows: list[Tensor]) -> Tensor:
    """Factors per head [H] that share all of R among the masked parts.

    Part k becomes R_k |sum R_k| / (|sum R_1| + |sum R_2|) * sum R / sum R_k. by_head [H].
    """
    totals = [(by_head * row).sum(-1, keepdim=True) for row in rows]
    size = torch.stack([total.abs() for total in totals]).sum(0)
    everything = by_head.sum(-1, keepdim=True)
    factors = [
        row * sd(sd(total.abs(), size) * everything, total)
        for row, total in zip(rows, totals, strict=True)
    ]
    return torch.stack(factors).sum(0)
