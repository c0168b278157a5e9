"""Several explanations of one text, and their difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..explanation import sink_of
from ..metrics import kept_places, spearman
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
    number,
    widest,
    wrapped,
)
from .cells import heat, mark, name_height, name_units, size_for
from .colours import MUTED, Scale, map_scale, row_scale, scale_for
from .maps import cell_for, check_how, layer_number, named, same_text
from .text import ROOM, Block, label_lines, scores_shown
from .units import Array, Layout, lay_out

if TYPE_CHECKING:
    from ..explanation import Explanation

_BESIDE = 1.95  # inches for the names of methods
_LONG = 120  # from so many tokens on lines are longer, so that the picture stays below 16 inches


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
    scores, meanings = zip(*(_scores(one, how, layer) for one in shown), strict=True)
    signs = [words.signed(one) for one in shown]
    values = [layout.columns(*pair) for pair in zip(scores, signs, strict=True)]
    beside = [_beside(one, row, layout) for one, row in zip(shown, scores, strict=True)]
    asides = [aside for aside, _ in beside]
    scales = [
        row_scale(np.delete(row, aside) if len(aside) < len(row) else row, sign, colours)
        for row, sign, aside in zip(values, signs, asides, strict=True)
    ]
    names = [wrapped(name, _BESIDE - 0.1) for name in called]
    said = [[_range_words(s), *told] for s, (_, told) in zip(scales, beside, strict=True)]
    for lines, row in zip(said[1:], scores[1:], strict=True):
        lines += agreement_words(first, scores[0], row, not layout.hides)
    block = Block(layout, ROOM if len(layout.units) <= _LONG else 1.8 * ROOM)

    def room_for(lines: list[str]) -> float:
        return max(block.height, LINE_HEIGHT * len(lines)) + 0.08

    heights = [room_for(a + b) for a, b in zip(names, said, strict=True)]
    lower = [room_for(lines) for lines in names[1:]]
    width = _BESIDE + max(block.width, 5.2) + 2 * MARGIN
    meaning = _meanings(called, meanings)
    heading = Heading(f"{called[0]}, compared", meaning, width - 2 * MARGIN, title)
    top = MARGIN + heading.height
    kinds = sorted(set(signs))
    more = LINE_HEIGHT + 0.1 + sum(lower) + LEGEND_HEIGHT if difference else 0.0
    height = top + sum(heights) + LEGEND_HEIGHT * len(kinds) + more
    sheet = Sheet(width, height, layout.texts)
    sheet.heading(heading)
    plane, left = sheet.plane(), MARGIN + _BESIDE
    for place, row in enumerate(values):
        block.draw(plane, left, top, row, scales[place], asides[place])
        label_lines(plane, MARGIN, top, names[place] + said[place], len(names[place]))
        top += heights[place]
    for sign in kinds:
        # Every line has a scale of its own: the bar is in parts of its end.
        open_end = any(scale.clipped for scale in scales if scale.signed == sign)
        bar = replace(scale_for(np.ones(1), sign, colours), clipped=open_end)
        told = "against  ←  score  →  for\n" if sign else ""
        sheet.legend(bar, f"{told}1 is the end of the line's scale", left, top)
        top += LEGEND_HEIGHT
    if difference:
        _gaps(sheet, block, values, (called, names, lower), top)
    return sheet.figure


def _gaps(
    sheet: Sheet,
    block: Block,
    values: list[Array],
    told: tuple[list[str], list[list[str]], list[float]],
    top: float,
) -> None:
    """The first of the values minus each of the others, as shares; told: what they are called,
    the same in lines, and the room that each takes."""
    called, names, lower = told
    plane, left = sheet.plane(), MARGIN + _BESIDE
    shares = [_shares(row) for row in values]
    gaps = [shares[0] - row for row in shares[1:]]
    scale = row_scale(np.stack(gaps), True)
    sheet.say(MARGIN, top, f"{called[0]} minus each of the others", color=MUTED)
    top += LINE_HEIGHT + 0.1
    for place, gap in enumerate(gaps):
        block.draw(plane, left, top, gap, scale)
        label_lines(plane, MARGIN, top, names[place + 1], len(names[place + 1]))
        top += lower[place]
    sheet.legend(scale, "difference of shares: blue more, orange less", left, top)


def _scores(explanation: Explanation, how: str | None, layer: int | None) -> tuple[Array, str]:
    """Scores and what they say; methods without layers have only their final ones."""
    layered = explanation.maps is not None or explanation.layer_scores is not None
    return scores_shown(explanation, *((how, layer) if layered else (None, None)))[:2]


def _beside(explanation: Explanation, scores: Array, layout: Layout) -> tuple[list[int], list[str]]:
    """Columns that are set beside the scale, and what is said of them."""
    sink = sink_of(explanation.tokens, scores, explanation.focus)
    aside = layout.holding(sink.positions)
    return aside, [f"{sink.share:.0%} beside it"] if aside else []


def _range_words(scale: Scale) -> str:
    """How far a scale goes, as the widget says it."""
    end = number(float(scale.norm.vmax or 1.0))
    more = "≥ " if scale.clipped else ""
    return f"{f'−{end}' if scale.signed else '0'} to {more}{end}"


def _meanings(called: Sequence[str], meanings: Sequence[str]) -> str:
    """What the scores say: once if all say the same, or by method."""
    if len(set(meanings)) == 1:
        return meanings[0]
    pairs = list(zip(called, meanings, strict=True))
    groups = {meaning: [name for name, own in pairs if own == meaning] for meaning in meanings}
    return "\n".join(f"{', '.join(names)}: {meaning}" for meaning, names in groups.items())


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
    first, which = shown[0], layer_number(shown[0], layer)
    rows = [one.aggregate(how, which) for one in shown]
    rows = [row / np.maximum(np.abs(row).sum(-1, keepdims=True), 1e-30) for row in rows]
    pairs = zip(rows, shown, strict=True)
    values = [layout.square(row, words.signed(one)) for row, one in pairs]
    cell = min(cell_for(len(layout.units)), 2.9 / len(layout.units))
    side, gap = cell * len(layout.units), 0.2
    left = MARGIN + min(widest(layout.texts, size_for(cell)), 1.1) + 0.08
    width = max(left + len(shown) * (side + gap) - gap + MARGIN, 5.0)
    meanings = [words.map_meaning(one, how, which, "each token (row)") for one in shown]
    meaning = f"{_meanings(called, meanings)}; shares of the row"
    heading = Heading("", meaning, width - 2 * MARGIN, title)
    names = [wrapped(name, side)[:2] for name in called]
    label = max(len(lines) for lines in names) * LINE_HEIGHT + 0.06
    above = MARGIN + heading.height
    top = above + label + name_height(layout, cell)
    second = top + side + 0.1 + LEGEND_HEIGHT
    below = second + 3 * LINE_HEIGHT + 0.06
    bottom = below + side + 0.1 + LEGEND_HEIGHT if difference else second
    sheet = Sheet(width, bottom, layout.texts)
    sheet.heading(heading)
    for place, map in enumerate(values):
        x = left + place * (side + gap)
        scale = map_scale(map, words.signed(shown[place]), colours)
        axes = heat(sheet, map, scale, x, top, (cell, cell))
        name_units(axes, layout, cell, "x")
        mark(axes, layout)
        if place == 0:
            name_units(axes, layout, cell, "y")
        for line, text in enumerate(names[place]):
            sheet.say(x, above + line * LINE_HEIGHT, text, fontweight="bold")
        sheet.legend(scale, "", x + 0.1, top + side + 0.1, inches=0.75 * side)
    if not difference:
        return sheet.figure
    gaps = [values[0] - map for map in values[1:]]
    scale = map_scale(np.stack(gaps), True)
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
