"""Methods that look at attention weights alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..blocks import mixing_ratio
from ..explanation import Part, flow_rows, flow_seconds
from ..explanation import check_cost as check_flow_cost
from ..models import forward_seconds
from .registry import method

if TYPE_CHECKING:
    from .run import Run

_ABNAR = {
    "paper": "Abnar and Zuidema: Quantifying Attention Flow in Transformers",
    "year": 2020,
    "link": "https://aclanthology.org/2020.acl-main.385",
}


@method(
    "raw_attention",
    title="Raw attention",
    family="attention",
    yields="maps",
    paper="Vaswani et al.: Attention Is All You Need",
    year=2017,
    link="https://arxiv.org/abs/1706.03762",
    needs=("attention",),
    scores_from="last",
    measures="How much each token attends to each other, averaged over heads.",
    formula=r"M_{ij} = \frac{1}{H} \sum_h A^h_{ij}",
    ignores="What is attended to: values, residual connection, norms and feed-forward.",
    cost=lambda size: 0.15,
)
def raw_attention(run: Run) -> Iterator[Part]:
    """M = mean over heads of A, [n, n]. Scores are the focus row of the last layer.

    `head_scores` [L, H, n]: what each head attends to, the mean over the tokens that attend.
    """
    for layer in run.layers():
        weights = run.trace.weights(layer)
        seen = weights.sum((0, -1)) > 0  # an encoder-decoder's other side does not attend
        yield run.part(layer, weights.mean(0), heads=weights[:, seen].mean(1))


@method(
    "attention_rollout",
    title="Attention rollout",
    family="attention",
    yields="maps",
    **_ABNAR,  # type: ignore[arg-type]
    needs=("attention",),
    measures="Attention followed through the layers, half of each token kept by the residual.",
    formula=r"M = \tfrac12 W + \tfrac12 I, \quad R^l = M^l R^{l-1}",
    ignores="Values and norms; the residual's true share, which is assumed to be one half.",
    cost=lambda size: 0.15,
)
def attention_rollout(run: Run) -> Iterator[Part]:
    """M = 0.5 W + 0.5 I with W the mean over heads; layers are multiplied."""
    for layer in run.layers():
        mean = run.trace.weights(layer).mean(0)
        yield run.part(layer, 0.5 * mean + 0.5 * torch.eye(len(mean), device=mean.device))


@method(
    "attention_flow",
    title="Attention flow",
    family="attention",
    yields="maps",
    **_ABNAR,  # type: ignore[arg-type]
    needs=("attention",),
    combine="flow",
    measures="The most that could flow from a token back to each input token, if attention "
    "weights were the widths of pipes between the layers.",
    formula=r"M = \tfrac12 W + \tfrac12 I, \quad "
    r"F_{ij} \propto \mathrm{maxflow}\big((L, i) \to (0, j)\big) "
    r"\text{ with capacities } M^l",
    ignores="Values and norms. Each input token is asked alone, so that flows to different "
    "tokens use the same pipes: wide pipes make all tokens look alike.",
    cost=lambda size: flow_seconds(size.layers, size.tokens) / forward_seconds(size),
)
def attention_flow(run: Run) -> Iterator[Part]:
    """M = 0.5 W + 0.5 I; scores are the maximum flows from the focus token, sum 1.

    The maps come at once; the flows of the focus row follow as the final scores. Other rows
    and layers are computed when `Explanation.rollout` is asked for them. Departure: the paper
    leaves the flows as they are, here rows sum to 1.
    """
    check_flow_cost(len(run.trace), run.trace.tokens)
    maps = []
    for layer in run.trace.attending:
        run.check()
        mean = run.trace.weights(layer).mean(0)
        maps.append(run.part(layer, 0.5 * mean + 0.5 * torch.eye(len(mean), device=mean.device)))
        yield maps[-1]

    def progress(share: float) -> None:
        run.check()
        run.report(share)

    stacked = np.stack([part.map for part in maps if part.map is not None])
    flow = flow_rows(stacked, rows=[run.focus], progress=progress)
    yield run.final(torch.from_numpy(flow[0]))


@method(
    "attention_residual",
    title="Attention with measured residual",
    family="attention",
    yields="maps",
    paper="Modarressi et al.: GlobEnc: Quantifying Global Token Attribution by Incorporating "
    "the Whole Encoder Layer in Transformers (its W_RES)",
    year=2022,
    link="https://aclanthology.org/2022.naacl-main.19",
    needs=("attention", "values"),
    measures="Attention to the other tokens, with what a token keeps of itself measured from "
    "the vectors instead of assumed.",
    formula=r"M_{ij} = r_i \frac{W_{ij}}{\sum_{k \ne i} W_{ik}} \ (j \ne i), \quad "
    r"M_{ii} = 1 - r_i, \quad "
    r"r_i = \frac{\|\sum_{j \ne i} u_{ij}\|}{\|\sum_{j \ne i} u_{ij}\| + \|u_{ii}\|}",
    ignores="The size of the values, within what comes from other tokens; the feed-forward.",
    cost=lambda size: 0.35,
)
def attention_residual(run: Run) -> Iterator[Part]:
    """W without its diagonal, rows normalised, times r_i, and 1 - r_i on the diagonal. [n, n]

    r_i is the mixing ratio of `globenc`; it is in `info["mixing_ratio"]`, [layers, n]. A row
    with nothing off its diagonal keeps itself.
    """
    ratios = run.info["mixing_ratio"] = np.zeros((len(run.trace), run.trace.tokens), np.float32)
    for layer in run.layers():
        block = run.trace.block(layer)
        ratio = mixing_ratio(block, block.stage("enc"))
        others = block.weights.mean(0)
        others.fill_diagonal_(0)
        total = others.sum(-1)
        ratio = torch.where(total > 0, ratio, torch.zeros_like(ratio))
        share = torch.where(total > 0, ratio / total, torch.zeros_like(ratio))
        ratios[layer] = ratio.cpu().numpy()
        yield run.part(layer, others * share[:, None] + torch.diag(1 - ratio))
