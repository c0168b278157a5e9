"""Several explanations of one text, and their difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from . import words
from .canvas import (
    LEGEND_HEIGHT,
    LINE_HEIGHT,
    MARGIN,
    SIZE,
    Heading,
    Picture,
    Sheet,
    clipped,
    widest,
    wrapped,
)
from .colours import MUTED, scale_for
from .maps import (
    cell_for,
    check_how,
    heat,
    layer_number,
    mark,
    name_height,
    name_units,
    named,
    same_text,
    size_for,
)
from .text import ROOM, Block, label_lines, scores_shown
from .units import Array, Layout, lay_out

if TYPE_CHECKING:
    from ..explanation import Explanation

_BESIDE = 1.95  # inches for the names of methods


def draw_compare(
    explanation: Explanation,
    *,
    others: Sequence[Explanation] = (),
    names: Sequence[str] | None = None,
    of: str = "text",
    difference: bool = True,
    layer: int | None = None,
    how: str | None = None,
    special: bool = True,
    unit: str = "tokens",
    colours: str = "blues",
    title: str | None = None,
) -> Picture:
    if not others:
        raise InputError("Give others=[...]: explanations of the same text to compare with.")
    if of not in ("text", "map"):
        raise InputError(f'of is {of!r}; it can be "text" or "map".')
    shown = same_text(explanation, others)
    layout = lay_out(explanation, unit, special)
    called = named(shown, names)
    if of == "map":
        return _maps(shown, called, layout, difference, layer, how or "rollout", colours, title)
    return _texts(shown, called, layout, difference, layer, how, colours, title)


def agreement_words(first: Explanation, a: Array, b: Array, special: bool) -> list[str]:
    """Spearman's rank correlation of two lists of scores, with and without special tokens."""
    from ..metrics.comparison import kept_places, spearman

    ordinary = kept_places(first, special=False)
    without = _rounded(spearman(a[ordinary], b[ordinary]))
    if not special or len(ordinary) == len(a):
        return [f"Spearman {without}"]
    return [f"Spearman {_rounded(spearman(a, b))}", f"{without} without special tokens"]


def _rounded(rho: float) -> str:
    return "undefined" if np.isnan(rho) else f"{rho:.2f}".replace("-", "−")


def _shares(scores: Array) -> Array:
    """Scores brought to a common size: their absolute values add up to 1."""
    return scores / (np.abs(scores).sum() or 1.0)


def _texts(
    shown: list[Explanation],
    called: list[str],
    layout: Layout,
    difference: bool,
    layer: int | None,
    how: str | None,
    colours: str,
    title: str | None,
) -> Picture:
    first = shown[0]
    scores = [_shares(scores_shown(one, how, layer)[0]) for one in shown]
    pairs = zip(scores, shown, strict=True)
    values = [layout.columns(row, words.signed(one)) for row, one in pairs]
    names = [wrapped(name, _BESIDE - 0.1) for name in called]
    said = [[], *(agreement_words(first, scores[0], row, not layout.hides) for row in scores[1:])]
    block = Block(layout, ROOM)

    def room_for(lines: list[str]) -> float:
        return max(block.height, LINE_HEIGHT * len(lines)) + 0.08

    heights = [room_for(a + b) for a, b in zip(names, said, strict=True)]
    lower = [room_for(lines) for lines in names[1:]]
    width = _BESIDE + max(block.width, 5.2) + 2 * MARGIN
    meaning = scores_shown(first, how, layer)[1]
    heading = Heading(f"{called[0]}, compared", meaning, width - 2 * MARGIN, title)
    top = MARGIN + heading.height
    more = LINE_HEIGHT + 0.1 + sum(lower) + LEGEND_HEIGHT if difference else 0.0
    sheet = Sheet(width, top + sum(heights) + LEGEND_HEIGHT + more, layout.texts)
    sheet.heading(heading)
    plane, left = sheet.plane(), MARGIN + _BESIDE
    for number, row in enumerate(values):
        scale = scale_for(row, words.signed(shown[number]), colours)
        block.draw(plane, left, top, row, scale)
        label_lines(plane, MARGIN, top, names[number] + said[number], len(names[number]))
        top += heights[number]
    both = any(words.signed(one) for one in shown)
    scale = scale_for(np.ones(1), both, colours)
    sheet.legend(scale, "relative to the strongest token of each line", left, top)
    if not difference:
        return sheet.figure
    top += LEGEND_HEIGHT
    gaps = [values[0] - row for row in values[1:]]
    scale = scale_for(np.stack(gaps), True)
    sheet.say(MARGIN, top, f"{called[0]} minus each of the others", color=MUTED)
    top += LINE_HEIGHT + 0.1
    for number, gap in enumerate(gaps):
        block.draw(plane, left, top, gap, scale)
        label_lines(plane, MARGIN, top, names[number + 1], len(names[number + 1]))
        top += lower[number]
    sheet.legend(scale, "difference of shares: blue more, orange less", left, top)
    return sheet.figure


def _maps(
    shown: list[Explanation],
    called: list[str],
    layout: Layout,
    difference: bool,
    layer: int | None,
    how: str,
    colours: str,
    title: str | None,
) -> Picture:
    check_how(how)
    for one in shown:
        words.need_maps(one, "map")
    first, number = shown[0], layer_number(shown[0], -1 if layer is None else layer)
    rows = [one.aggregate(how, number) for one in shown]
    rows = [row / np.maximum(np.abs(row).sum(-1, keepdims=True), 1e-30) for row in rows]
    pairs = zip(rows, shown, strict=True)
    values = [layout.square(row, words.signed(one)) for row, one in pairs]
    cell = min(cell_for(len(layout.units)), 2.9 / len(layout.units))
    side, gap = cell * len(layout.units), 0.2
    left = MARGIN + min(widest(layout.texts, size_for(cell)), 1.1) + 0.08
    width = max(left + len(shown) * (side + gap) - gap + MARGIN, 5.0)
    meaning = words.map_meaning(first, how, number, "each token (row)")
    heading = Heading("", f"{meaning}; shares of the row", width - 2 * MARGIN, title)
    names = [wrapped(name, side)[:2] for name in called]
    label = max(len(lines) for lines in names) * LINE_HEIGHT + 0.06
    above = MARGIN + heading.height
    top = above + label + name_height(layout, cell)
    second = top + side + 0.1 + LEGEND_HEIGHT
    below = second + 3 * LINE_HEIGHT + 0.06
    bottom = below + side + 0.1 + LEGEND_HEIGHT if difference else second
    sheet = Sheet(width, bottom, layout.texts)
    sheet.heading(heading)
    both = any(words.signed(one) for one in shown)
    scale = scale_for(np.stack(values), both, colours, clip=True)
    for place, map in enumerate(values):
        x = left + place * (side + gap)
        axes = heat(sheet, map, scale, x, top, (cell, cell))
        name_units(axes, layout, cell, "x")
        mark(axes, layout)
        if place == 0:
            name_units(axes, layout, cell, "y")
        for line, text in enumerate(names[place]):
            sheet.say(x, above + line * LINE_HEIGHT, text, fontweight="bold")
    sheet.legend(scale, "share of the row", left, top + side + 0.1)
    if not difference:
        return sheet.figure
    gaps = [values[0] - map for map in values[1:]]
    scale = scale_for(np.stack(gaps), True, clip=True)
    for place, map in enumerate(gaps, start=1):
        x = left + place * (side + gap)
        mark(heat(sheet, map, scale, x, below, (cell, cell)), layout)
        told = agreement_words(
            first, rows[0][first.focus], rows[place][first.focus], not layout.hides
        )
        subject = f"{called[0]} minus {called[place]}"
        for line, text in enumerate([clipped(subject, side), *told]):
            sheet.say(x, second + line * LINE_HEIGHT, text, SIZE - 0.5, color=MUTED)
    sheet.legend(scale, "difference of shares", left + side + gap, below + side + 0.1)
    return sheet.figure
