"""Hidden token attribution: the layer's derivative, scaled by its input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..blocks import LayerGraph, exact_squares, sampled_squares
from ..errors import CostError, InputError, spoken
from ..explanation import Part
from ..models import Size, cut_open, forward_seconds
from .registry import method

if TYPE_CHECKING:
    from .run import Run

LIMIT_SECONDS = 600.0


def _cost(size: Size) -> float:
    """n d products, each a backward pass through attention."""
    return 0.4 * size.tokens * size.width


@method(
    "hta",
    title="HTA x input",
    family="contributions",
    yields="maps",
    paper="Brunner et al.: On Identifiability in Transformers; times the input as in Modarressi "
    "et al.: GlobEnc",
    year=2020,
    link="https://arxiv.org/abs/1908.04211",
    needs=("attention", "gradients"),
    combine="normalised",
    measures="How strongly a token's output in a layer answers to small changes of each token's "
    "input, in proportion to that input.",
    formula=r"M_{ij} = \Big\| \frac{\partial o_i}{\partial x_j} \odot x_j \Big\|_F",
    ignores="Everything beyond the first order: a change that matters only when it is large.",
    cost=_cost,
    options={
        "samples": (None, "random projections per token instead of all features; None is exact"),
        "seed": (None, "seed of the random projections"),
    },
)
def hta(run: Run, *, samples: int | None = None, seed: int = 0) -> Iterator[Part]:
    """||(d o_i / d x_j) diag(x_j)||_F for the layer's own input and output. [n, n]

    Exact by n d vector-Jacobian products a layer, in batches; refused beforehand where that
    would take more than ten minutes. With `samples=k`, k n products: the mean of
    ||s^T (d o_i / d x_j) diag(x_j)||^2 over random sign vectors s is unbiased for the square;
    the map is its root and `info["standard_error"]` [layers, n, n] the root's standard error
    (first order).
    """
    if samples is not None and (isinstance(samples, bool) or not isinstance(samples, int)):
        raise InputError(f"samples={samples!r}; give a whole number, or None for exact.")
    if samples is not None and samples < 1:
        raise InputError(f"samples={samples}; at least one is needed.")
    size = run.case.size()
    _refuse(size, samples)
    count, tokens = len(run.trace), run.trace.tokens
    generator = torch.Generator().manual_seed(seed)
    if samples is not None:
        run.info["standard_error"] = np.zeros((count, tokens, tokens), np.float32)
    for layer in run.layers():
        trace = run.trace
        record = trace.layers[layer]
        graph = LayerGraph(cut_open(record))
        if samples is None:
            yield run.part(layer, exact_squares(graph, run.tick).sqrt())
            continue
        squares, error = sampled_squares(graph, samples, generator, run.tick)
        roots = squares.sqrt()
        error = torch.where(roots > 0, error / (2 * roots), error)
        run.info["standard_error"][layer] = error.cpu().numpy()
        yield run.part(layer, roots)


def _refuse(size: Size, samples: int | None) -> None:
    share = 1.0 if samples is None else samples / size.width
    seconds = _cost(size) * share * forward_seconds(size)
    if seconds > LIMIT_SECONDS:
        products = size.tokens * (samples or size.width)
        raise CostError(
            f"HTA over {size.tokens} tokens needs {products:,} vector-Jacobian products in each "
            f"of {size.layers} layers, about {spoken(seconds)}. Shorten the text, or pass "
            "samples=16 for an estimate with its standard error."
        )
