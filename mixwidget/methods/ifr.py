"""Information flow routes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..blocks import shares
from ..explanation import Part
from ..models import Size
from .registry import method

if TYPE_CHECKING:
    from .run import Run


def _cost(size: Size) -> float:
    """n^2 H d a layer, against the layer's own products."""
    layer = 4 * size.width**2 + 2 * size.width * size.inner + 2 * size.tokens * size.width
    return 0.4 + 3 * size.tokens * size.width * size.heads / layer


@method(
    "ifr",
    title="Information flow routes",
    family="contributions",
    yields="maps",
    paper="Ferrando and Voita: Information Flow Routes: Automatically Interpreting Language "
    "Models at Scale",
    year=2024,
    link="https://aclanthology.org/2024.emnlp-main.965",
    needs=("attention", "values"),
    measures="How near the vector that each head brings from each token, and the residual, come "
    "to what they make together, as shares of a row. Its routes are the edges above a threshold.",
    formula=r"a \propto \max\big(0,\ \|p_i\|_1 - \|p_i - \text{part}\|_1\big), \quad "
    r"M_{ij} = \textstyle\sum_h a^h_{ij} + [i{=}j]\, a^{res}_i",
    ignores="What the logit depends on: it says what a state is made of. Parts that point away "
    "from it count as nothing. The feed-forward's share is told apart.",
    cost=_cost,
    options={
        "as_released": (
            (False, True),
            "With the constants of the authors' tool: 1e-6 in distances, no part below 1e-5.",
        )
    },
)
def ifr(run: Run, *, as_released: bool = False) -> Iterator[Part]:
    """M_ij = sum_h a^h_ij + [i = j] a_res, rows 1, [n, n]; scores are the rollout's focus row.

    The parts of p_i = x_i + attention are A^h_ij g^h_j of every head and x_i; biases are in none.
    A row whose parts are all clipped goes to the nearest. `info["feed_forward"]` [layers, n] is
    the feed-forward's share of the layer's output (1 minus it the residual's; NaN where a norm
    follows in a family without a spec), `info["residual"]`
    that of x_i. `Explanation.routes(tau)` gives the subgraph. Ferrando and Voita 2024.
    """
    size = (len(run.trace), run.trace.tokens)
    fed = run.info["feed_forward"] = np.zeros(size, np.float32)
    kept = run.info["residual"] = np.zeros(size, np.float32)
    for layer in run.layers():
        made = shares(run.trace.block(layer), as_released, run.tick)
        fed[layer] = made.feed_forward.cpu().numpy()
        kept[layer] = made.residual.cpu().numpy()
        yield run.part(layer, made.map)
