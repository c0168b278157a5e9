"""Heads: what each of them scores or attends to, and the grids of head masks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..errors import UnsupportedMethodError
from . import words
from .canvas import LEGEND_HEIGHT, LINE_HEIGHT, MARGIN, SIZE, Heading, Picture, Sheet, font, widest
from .cells import MOST, draw_given, heat, mark, name_height, name_units
from .colours import LINE, MUTED, Scale, map_scale, scale_for
from .maps import layer_number
from .units import Array, lay_out

if TYPE_CHECKING:
    from ..explanation import Explanation
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


def draw_heads(
    explanation: Explanation,
    *,
    layer: int | None = None,
    special: bool = True,
    unit: str = "tokens",
    colours: str = "blues",
    darkest: float | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """A row for each head, layers upward, a column for each token."""
    held = explanation.head_scores
    if held is None:
        raise UnsupportedMethodError(
            f"{explanation.method} says nothing of single heads; explain by logit, or by "
            "raw_attention, and draw that."
        )
    shown = range(len(held)) if layer is None else [layer_number(explanation, layer)]
    layout, signed = lay_out(explanation, unit, special), words.signed(explanation)
    rows = np.concatenate([held[one][::-1] for one in reversed(shown)]).astype(float)
    values, heads = layout.columns(rows, signed), held.shape[1]
    scale = map_scale(values, signed, colours, darkest=darkest)
    meaning = f"what each head writes {words.towards(explanation)} from each token"
    if explanation.maps is not None:
        meaning = "what each head attends to, on average over the tokens that attend"
    legend = words.legend(explanation, not signed)
    names = [f"{one}.{head}" for one in reversed(shown) for head in reversed(range(heads))]
    if ax is not None:
        called = (words.name(explanation), meaning, title)
        _between(ax, len(shown), heads)
        labels = names if len(names) <= 24 else _few(names, heads)
        return draw_given(ax, values, scale, called, layout, labels, legend)
    count = len(layout.units)
    wide = float(np.clip(8.0 / count, min(0.14, MOST / count), 0.5))
    high = float(np.clip(7.0 / len(values), min(0.1, MOST / len(values)), 0.22))
    left = MARGIN + widest(names) + 0.08
    width = max(left + wide * count + MARGIN, 5.0)
    heading = Heading(words.name(explanation), meaning, width - 2 * MARGIN, title)
    top = MARGIN + heading.height + LINE_HEIGHT + name_height(layout, wide)
    bottom = top + high * len(values)
    sheet = Sheet(width, bottom + 0.12 + LEGEND_HEIGHT, layout.texts)
    sheet.heading(heading)
    axes = heat(sheet, values, scale, left, top, (wide, high))
    labels = names if high >= 0.14 else _few(names, heads)
    axes.set_yticks(range(len(labels)), labels, **font(SIZE - 1, color=MUTED))
    axes.tick_params(length=0, pad=2.5)
    name_units(axes, layout, wide, "x")
    mark(axes, layout, rows=False)
    _between(axes, len(shown), heads)
    sheet.say(MARGIN, MARGIN + heading.height, "layer.head", SIZE - 1, color=MUTED)
    sheet.legend(scale, legend, left, bottom + 0.12)
    return sheet.figure


def _few(names: list[str], heads: int) -> list[str]:
    """Only the first head of each layer is named."""
    return [name if (i + 1) % heads == 0 else "" for i, name in enumerate(names)]


def _between(axes: Axes, layers: int, heads: int) -> None:
    for layer in range(1, layers):
        axes.axhline(layer * heads - 0.5, color=LINE, linewidth=1.2)
