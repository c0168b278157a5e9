"""Methods that look at attention weights alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch

from ..explanation import Part
from .registry import method

if TYPE_CHECKING:
    from ..engine import Run

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
    cost=lambda size: 0.05,
)
def raw_attention(run: Run) -> Iterator[Part]:
    """M = mean over heads of A, [n, n]. Scores are the focus row of the last layer."""
    for layer in run.layers():
        yield run.part(layer, run.trace.weights(layer).mean(0))


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
    cost=lambda size: 0.05,
)
def attention_rollout(run: Run) -> Iterator[Part]:
    """M = 0.5 W + 0.5 I with W the mean over heads; layers are multiplied."""
    for layer in run.layers():
        mean = run.trace.weights(layer).mean(0)
        yield run.part(layer, 0.5 * mean + 0.5 * torch.eye(len(mean), device=mean.device))
