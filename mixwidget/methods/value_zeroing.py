"""Value Zeroing: how much a token's output moves when another's values are taken away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch

from ..blocks import Distance, Placed, moved_by, zeroing_distances
from ..explanation import Part
from ..models import Size
from .registry import method

if TYPE_CHECKING:
    from .run import Run


def _cost(size: Size) -> float:
    """The second feed-forward product for n^2 rows instead of n; without a spec the layer again for
    each token."""
    if size.again:
        return 2.0 + size.tokens
    layer = 4 * size.width**2 + 2 * size.width * size.inner + 2 * size.tokens * size.width
    return 2 + 1.1 * size.tokens * size.width * size.inner / layer


@method(
    "value_zeroing",
    title="Value Zeroing",
    family="contributions",
    yields="maps",
    paper="Mohebbi et al.: Quantifying Context Mixing in Transformers",
    year=2023,
    link="https://aclanthology.org/2023.eacl-main.245",
    needs=("attention", "values", "passes"),
    measures="How far a token's output moves when another token's values are set to zero: the "
    "whole layer, feed-forward included.",
    formula=r"M_{ij} \propto 1 - \cos\big(o_i^{\neg j},\ o_i\big), \quad "
    r"o_i^{\neg j} = \text{output of the layer with } v_j = 0",
    ignores="What a token keeps of itself through the residual connection; tokens that matter "
    "only together, since they are taken away one at a time.",
    cost=_cost,
    options={
        "distance": (
            ("cosine", "euclidean", "spearman"),
            "how the two outputs are compared: 1 - cosine, length of the difference, or 1 - rank "
            "correlation over the features",
        )
    },
)
def value_zeroing(run: Run, *, distance: Distance = "cosine") -> Iterator[Part]:
    """C_ij = 1 - cos(o_i^-j, o_i), rows normalised. [n, n]

    o_i^-j is the layer's output with the same input and the same attention weights, v_j = 0 in
    every head (bias included). "euclidean" is ||o_i^-j - o_i||; "spearman" is 1 minus the rank
    correlation of the two over their features. A row that nothing moves keeps itself. The
    authors' code computes 1 - cos in float32, which loses small values; here it comes from the
    difference of the outputs, itself carried through the layer as a difference. In a layer without
    attention token j is taken away from what the layer's mixer reads.
    """
    for layer in run.layers(every=True):
        moved = _moved(run, layer, distance)
        total = moved.sum(-1, keepdim=True)
        eye = torch.eye(len(moved), dtype=moved.dtype, device=moved.device)
        yield run.part(layer, torch.where(total > 0, moved / total, eye))


def _moved(run: Run, layer: int, distance: Distance) -> torch.Tensor:
    record = run.trace.layers[layer]
    if record.weights is not None:
        return zeroing_distances(run.trace.block(layer), distance, run.tick)
    assert record.again is not None
    assert record.output is not None
    if getattr(record.again, "lost", False):
        run.info.setdefault("passed_on", []).append(layer)
        return torch.zeros(run.trace.tokens, run.trace.tokens, device=record.output.device)
    place = record.place or Placed(run.trace.tokens)
    columns = list(range(place.tokens))[place.rows]
    output = place.vectors(record.output)
    return moved_by(record.again, output, distance, (place.rows, columns), tick=run.tick)
