"""The layer-by-head grids of head masks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .canvas import LEGEND_HEIGHT, LINE_HEIGHT, MARGIN, SIZE, Heading, Picture, Sheet, font
from .colours import MUTED, Scale, scale_for
from .maps import heat
from .units import Array

if TYPE_CHECKING:
    from ..methods import HeadMasks

_LEFT, _GAP = 0.75, 0.3


def plot_head_masks(masks: HeadMasks) -> Picture:
    """Three grids, layers upward, heads across.

    Share of maxima at one offset; best gain of syntax over the best offset; the mask itself
    (P positional, S syntactic).
    """
    layers, heads = masks.mask.shape
    gains = (masks.syntactic_shares - masks.offset_shares[:, None, None]).max(0)
    one = np.ones(1)
    grids: list[tuple[str, Array, Scale, str]] = [
        (
            "positional",
            masks.positional_shares,
            scale_for(one, False),
            "share of maxima\nat one offset",
        ),
        ("syntactic", gains, scale_for(one, True), "gain over the\nbest offset"),
        ("mask", 0.55 * masks.mask, scale_for(one, False, "greys"), ""),
    ]
    cell = max(0.26, min(0.36, 3.4 / heads))
    side, high = max(heads * cell, 2.3), layers * cell
    cell = side / heads
    words = f"heads by what they follow: {int(masks.positional.sum())} positional (P), "
    words += f"{int(masks.syntactic.sum())} syntactic (S), of {masks.mask.size}"
    width = _LEFT + 3 * side + 2 * _GAP + MARGIN
    heading = Heading("Head masks", words, width - 2 * MARGIN, None)
    top = MARGIN + heading.height + LINE_HEIGHT
    bottom = top + high + LINE_HEIGHT + 0.1
    sheet = Sheet(width, bottom + LEGEND_HEIGHT)
    sheet.heading(heading)
    for place, (title, grid, scale, told) in enumerate(grids):
        left = _LEFT + place * (side + _GAP)
        axes = heat(sheet, grid[::-1], scale, left, top, (cell, high / layers))
        axes.set_xticks(range(heads), [str(head) for head in range(heads)], **font(SIZE - 2))
        axes.tick_params(length=0, pad=2, labelcolor=MUTED)
        sheet.say(left, top - LINE_HEIGHT, title, SIZE - 0.5)
        if place == 0:
            names = ["layer 0", *(str(layer) for layer in range(1, layers))]
            axes.set_yticks(range(layers), names[::-1], **font(SIZE - 1, color=MUTED))
        if told:
            sheet.legend(scale, told, left + 0.05, bottom, inches=0.55 * side)
        for layer, head in np.argwhere(masks.mask) if title == "mask" else ():
            marks = "P" * bool(masks.positional[layer, head])
            marks += "S" * bool(masks.syntactic[layer, head])
            style = font(SIZE - 1, color="white", ha="center", va="center")
            axes.text(head, layers - 1 - layer, marks, **style)
    return sheet.figure
