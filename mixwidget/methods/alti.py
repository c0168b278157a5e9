"""ALTI: how near a token's part comes to the whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..blocks import part_distances, proximity
from ..explanation import Part
from ..models import Size
from .registry import method

if TYPE_CHECKING:
    from .run import Run


def _cost(size: Size) -> float:
    """n^2 d (H + a few passes through memory) a layer, against the layer's own products."""
    layer = 4 * size.width**2 + 2 * size.width * size.inner + 2 * size.tokens * size.width
    apart = size.tokens * size.width**2 / layer if size.gated else 0.0
    return 0.35 + apart + size.tokens * size.width * (size.heads + 15) / layer


@method(
    "alti",
    title="ALTI",
    family="contributions",
    yields="maps",
    paper="Ferrando et al.: Measuring the Mixing of Contextual Information in the Transformer",
    year=2022,
    link="https://aclanthology.org/2022.emnlp-main.595",
    needs=("attention", "values"),
    measures="How near each token's part comes to what attention and residual make together: a "
    "part that points the same way counts, one that cancels does not.",
    formula=r"M_{ij} \propto \max\big(0,\ \|y_i\|_p - \|y_i - t_{ij}\|_p\big)",
    ignores="The feed-forward. Parts that point away from the output count as nothing.",
    cost=_cost,
    options={
        "p": ((1, 2), "the distance: 1 adds absolute differences, 2 is Euclidean"),
        "ln2": ((False, True), "push the parts through the second norm too"),
    },
)
def alti(run: Run, *, p: int = 1, ln2: bool = False) -> Iterator[Part]:
    """C_ij = max(0, ||y_i||_p - ||y_i - t_ij||_p), rows normalised. [n, n]

    y_i is the output of the first norm and t_ij the part of it that comes from j; in pre-norm,
    parallel and sandwich blocks y_i is the residual stream after attention. With `ln2` both
    are carried through the second norm of a post-norm block and y_i is the layer's output
    (the feed-forward's part in it belongs to no token); elsewhere `ln2` changes nothing. A
    row whose terms are all clipped goes to the source with the smallest distance.
    """
    for layer in run.layers():
        block = run.trace.block(layer)
        stage = block.stage("enc" if ln2 else "res_ln")
        near = proximity(block, stage, part_distances(block, stage, p, run.tick), p)
        del block, stage  # of a long text the next layer is made while nothing of this one is held
        yield run.part(layer, near)
