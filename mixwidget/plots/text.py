"""The input's tokens, shaded by score."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch, Rectangle

from ..explanation import sink_of
from ..metrics import scores_of
from . import words
from .canvas import (
    LEGEND_HEIGHT,
    LINE_HEIGHT,
    MARGIN,
    SIZE,
    Heading,
    Picture,
    Sheet,
    drawable,
    font,
    width_of,
)
from .colours import ACCENT, LINE, MUTED, Scale, row_scale
from .maps import layer_number
from .units import Array, Layout, lay_out

if TYPE_CHECKING:
    from ..explanation import Explanation

ROOM = 7.0
TOKEN_SIZE = SIZE + 1
_HEIGHT, _STEP = 0.22, 0.29
_PAD, _GAP = 0.045, 0.035
# (unit, left, width, line)
Placed = list[tuple[int, float, float, int]]


class Block:
    """Units of one text in lines that fit into some inches."""

    def __init__(self, layout: Layout, room: float = ROOM) -> None:
        self.layout = layout
        self.places: Placed = []
        left, line = 0.0, 0
        for number, unit in enumerate(layout.units):
            width = width_of(drawable(unit.text), TOKEN_SIZE) + 2 * _PAD
            starts = number in layout.breaks
            if left > 0 and (starts or left + width > room):
                left, line = 0.0, line + 1
            elif left > 0 and not unit.glued:
                left += _GAP
            self.places.append((number, left, width, line))
            left += width
        self.lines = line + 1

    @property
    def height(self) -> float:
        return self.lines * _STEP

    @property
    def width(self) -> float:
        return max((left + width for _, left, width, _ in self.places), default=0.0)

    def draw(
        self,
        plane: Axes,
        left: float,
        top: float,
        values: Array,
        scale: Scale,
        aside: Collection[int] = (),
    ) -> None:
        """Units on the colours of their values; those set aside get none, and a dashed edge."""
        for number, x, width, line in self.places:
            beside, unit = number in aside, self.layout.units[number]
            value = 0.0 if beside else float(values[number])
            corner = (left + x, top + line * _STEP)
            edge = ACCENT if number == self.layout.focus else MUTED if beside else LINE
            edge = edge if edge != LINE or unit.special else "none"
            plane.add_patch(
                Rectangle(corner, width, _HEIGHT, facecolor=scale.colour(value), edgecolor="none")
            )
            if edge != "none":
                plane.add_patch(
                    FancyBboxPatch(
                        corner,
                        width,
                        _HEIGHT,
                        boxstyle="square,pad=0",
                        facecolor="none",
                        edgecolor=edge,
                        linestyle="dashed" if beside else "solid",
                        linewidth=1.4 if edge == ACCENT else 0.6,
                        zorder=3 if edge == ACCENT else 2,
                    )
                )
            middle = (corner[0] + width / 2, corner[1] + 0.61 * _HEIGHT)
            style = font(TOKEN_SIZE, color=scale.ink(value), ha="center", va="center_baseline")
            plane.text(*middle, drawable(unit.text), zorder=4, **style)


def scores_shown(
    explanation: Explanation, how: str | None, layer: int | None
) -> tuple[Array, str, bool]:
    """(scores [n], what they say, whether they are shares): the method's own, or a row asked for.

    Methods that score tokens per layer have no rollout: their layers are added up, as in the
    widget. Where layers pass on the same relevance, it is that of the input.
    """

    maps, layered = explanation.maps, explanation.layer_scores
    meaning = words.score_meaning(explanation)
    if layer is None and (how is None or maps is None):
        scores = scores_of(explanation)
        return scores, meaning, bool(np.isclose(float(scores.sum()), 1, atol=1e-3))
    if maps is None and layered is not None and how in ("rollout", "sum"):
        number = layer_number(explanation, layer)
        if number == len(layered) - 1 or explanation.scores_from == "first":
            return scores_of(explanation), meaning, False
        scores = layered[: number + 1].sum(0, dtype=np.float64)
        return scores, f"{meaning}, {words.up_to(number)} added up", False
    scores = scores_of(explanation, how, layer)
    number = layer_number(explanation, layer)
    if maps is None:
        return scores, f"{meaning}, at layer {number} alone", False
    focus = words.quoted(explanation.tokens[explanation.focus])
    meaning = words.map_meaning(explanation, how or "layer", number, focus)
    return scores, meaning, how == "rollout"


def draw_text(
    explanation: Explanation,
    *,
    layer: int | None = None,
    how: str | None = None,
    special: bool = True,
    unit: str = "tokens",
    colours: str = "blues",
    darkest: float | None = None,
    title: str | None = None,
) -> Picture:
    layout = lay_out(explanation, unit, special)
    scores, meaning, share = scores_shown(explanation, how, layer)
    signed = words.signed(explanation)
    values = layout.columns(scores, signed)
    sink = sink_of(explanation.tokens, scores, explanation.focus)
    aside = layout.holding(sink.positions)
    meaning = "\n".join(filter(None, (meaning, words.aside(sink) if aside else "")))
    block = Block(layout)
    width = max(block.width, 5.2) + 2 * MARGIN
    heading = Heading(words.name(explanation), meaning, width - 2 * MARGIN, title)
    top = MARGIN + heading.height
    height = top + block.height + 0.08 + LEGEND_HEIGHT
    sheet = Sheet(width, height, layout.texts)
    sheet.heading(heading)
    kept = np.delete(values, aside) if len(aside) < len(values) else values
    scale = row_scale(kept, signed, colours, darkest=darkest)
    block.draw(sheet.plane(), MARGIN, top, values, scale, aside)
    below = top + block.height + 0.08
    sheet.legend(scale, words.legend(explanation, share), MARGIN + 0.2, below)
    return sheet.figure


def label_lines(plane: Axes, left: float, top: float, lines: list[str], muted: int) -> None:
    """A few lines beside a block; those from `muted` on are comments."""
    for number, line in enumerate(lines):
        comment = number >= muted
        style = font(SIZE - 0.5 * comment, color=MUTED) if comment else font(SIZE)
        plane.text(left, top + 0.03 + number * LINE_HEIGHT, line, va="top", **style)
