"""The layer-by-head grid of head masks as a matplotlib figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from ..heads import HeadMasks


def plot_head_masks(masks: HeadMasks) -> Figure:
    """Three grids, layers upward, heads across; heads in the mask are framed.

    Share of maxima at one offset; best gain of syntax over the best offset; the mask itself
    (P positional, S syntactic, with the relation that is followed best).
    """
    layers, heads = masks.mask.shape
    gains = masks.syntactic_shares - masks.offset_shares[:, None, None]
    grids = [
        ("share of maxima at one offset", masks.positional_shares, "Blues", (0.0, 1.0)),
        ("syntax: gain over the best offset", gains.max(0), "RdBu_r", (-1.0, 1.0)),
        ("mask", masks.mask.astype(float), "Greys", (0.0, 1.6)),
    ]
    size = (1.0 + 3 * max(2.2, 0.34 * heads), 1.0 + max(1.6, 0.34 * layers))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(1, 3, sharey=True, squeeze=False)[0]
    for axis, (title, grid, colours, (low, high)) in zip(axes, grids, strict=True):
        image = axis.imshow(grid, cmap=colours, vmin=low, vmax=high, origin="lower")
        axis.set_title(title, fontsize=9)
        axis.set_xlabel("head")
        axis.set_xticks(range(heads))
        axis.set_yticks(range(layers))
        if title != "mask":
            figure.colorbar(image, ax=axis, shrink=0.8)
    axes[0].set_ylabel("layer")
    for layer, head in np.argwhere(masks.mask):
        marks = "P" * bool(masks.positional[layer, head])
        if masks.syntactic[layer, head]:
            marks += "S"
        axes[2].text(head, layer, marks, ha="center", va="center", color="white", fontsize=7)
    return figure
