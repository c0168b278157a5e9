"""Maps: one, one row of every layer, or many small ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..errors import InputError, UnsupportedMethodError
from ..explanation import alike, flow_rows
from ..explanation import named as named_models
from . import words
from .canvas import (
    LEGEND_HEIGHT,
    LINE_HEIGHT,
    MARGIN,
    SIZE,
    Heading,
    Sheet,
    font,
    widest,
    wrapped,
)
from .cells import (
    LONGEST_NAME,
    MOST,
    SMALLEST,
    draw_given,
    heat,
    mark,
    name_height,
    name_units,
    size_for,
)
from .colours import MUTED, map_scale, row_scale
from .units import Array, lay_out

if TYPE_CHECKING:
    from ..explanation import Explanation

HOWS = ("rollout", "layer", "sum")


def check_how(how: str) -> None:
    if how not in HOWS:
        raise InputError(f"how is {how!r}; it can be {', '.join(HOWS)}.")


def layer_number(explanation: Explanation, layer: int | None) -> int:
    """The layer counted from 0, of maps or of scores per layer; the last for None."""
    layered = explanation.layer_scores if explanation.maps is None else explanation.maps
    count = 0 if layered is None else len(layered)
    layer = -1 if layer is None else layer
    if not -count <= layer < count:
        raise InputError(f"layer is {layer}, but there are layers 0 to {count - 1}.")
    return layer % count


def cell_for(count: int) -> float:
    """Side of a cell that suits a number of tokens."""
    count = max(count, 1)
    return float(np.clip(6.4 / count, min(0.105, MOST / count), 0.32))


def draw_map(
    explanation: Explanation,
    *,
    layer: int = -1,
    how: str = "rollout",
    special: bool = True,
    unit: str = "tokens",
    colours: str = "blues",
    darkest: float | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    words.need_maps(explanation, "map")
    check_how(how)
    layout = lay_out(explanation, unit, special)
    signed = words.signed(explanation)
    which = layer_number(explanation, layer)
    values = layout.square(explanation.aggregate(how, which), signed)
    scale = map_scale(values, signed, colours, darkest=darkest)
    meaning = words.map_meaning(explanation, how, which, "each token (row)")
    share = how == "rollout" or bool(np.allclose(values.sum(-1), 1, atol=1e-3))
    legend = words.legend(explanation, share)
    if ax is not None:
        called = (words.name(explanation), meaning, title)
        return draw_given(ax, values, scale, called, layout, layout, legend)
    cell = cell_for(len(values))
    side = cell * len(values)
    left = MARGIN + 0.2 + min(widest(layout.texts, size_for(cell)), LONGEST_NAME) + 0.06
    width = max(left + side + MARGIN, 5.0)
    heading = Heading(words.name(explanation), meaning, width - 2 * MARGIN, title)
    top = MARGIN + heading.height + LINE_HEIGHT + name_height(layout, cell)
    sheet = Sheet(width, top + side + 0.12 + LEGEND_HEIGHT, layout.texts)
    sheet.heading(heading)
    axes = heat(sheet, values, scale, left, top, (cell, cell))
    name_units(axes, layout, cell, "x")
    name_units(axes, layout, cell, "y")
    mark(axes, layout)
    sheet.say(left, MARGIN + heading.height, "from", SIZE - 1, color=MUTED)
    sheet.say(MARGIN, top + side / 2, "into", SIZE - 1, color=MUTED, rotation=90, va="center")
    sheet.legend(scale, legend, left, top + side + 0.12)
    return sheet.figure


def _rows_of(explanation: Explanation, how: str | None, total: bool) -> tuple[Array, str, bool]:
    """([rows, n], what they say, whether the last row is the method's total)"""
    if explanation.maps is not None:
        how = how or "rollout"
        check_how(how)
        count = len(explanation.maps)
        focus = words.quoted(explanation.tokens[explanation.focus])
        if how == "rollout" and explanation.combine == "flow":  # other rows would cost as much each
            steps = (explanation.maps[: layer + 1] for layer in range(count))
            rows = np.stack([flow_rows(maps, [explanation.focus])[0] for maps in steps])
        else:
            maps = [explanation.aggregate(how, layer) for layer in range(count)]
            rows = np.stack(maps)[:, explanation.focus]
        way = {
            "rollout": "from the input",
            "layer": "in that layer alone",
            "sum": "in all layers up to it, added up",
        }[how]
        return rows, f"what went into {focus} at each layer, {way}", False
    if explanation.layer_scores is None:
        raise UnsupportedMethodError(
            f"{explanation.method} gives one score for each token and nothing per layer; "
            'use kind="text".'
        )
    if how not in (None, "layer", "sum"):
        raise InputError(f'how is {how!r}; {explanation.method} can be shown by "layer" or "sum".')
    if how == "sum" and explanation.scores_from == "first":
        raise InputError(
            f"Layers of {explanation.method} pass on the same relevance: they are not added up."
        )
    rows = explanation.layer_scores.astype(float)
    meaning = f"{words.score_meaning(explanation)}, layer by layer"
    if how == "sum":
        return rows.cumsum(0), f"{meaning}, added up", False
    return (np.vstack([rows, explanation.scores]) if total else rows), meaning, total


def draw_layers(
    explanation: Explanation,
    *,
    how: str | None = None,
    total: bool = True,
    special: bool = True,
    unit: str = "tokens",
    colours: str = "blues",
    darkest: float | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    rows, meaning, totalled = _rows_of(explanation, how, total and ax is None)
    layout = lay_out(explanation, unit, special)
    signed = words.signed(explanation)
    values = layout.columns(rows, signed)
    layers = len(values) - totalled
    count = len(layout.units)
    wide = float(np.clip(8.0 / count, min(0.14, MOST / count), 0.55))
    high, gap = min(0.24, MOST / len(values)), 0.1
    names = ["layer 0", *(str(layer) for layer in range(1, layers))]
    # Totals are larger than what single layers give: a scale of most values would end below them.
    suited = row_scale if totalled else map_scale
    scale = suited(values, signed, colours, darkest=darkest)
    share = explanation.maps is not None and bool(np.allclose(rows.sum(-1), 1, atol=1e-3))
    legend = words.legend(explanation, share)
    if ax is not None:
        called = (words.name(explanation), meaning, title)
        return draw_given(ax, values[::-1], scale, called, layout, names[::-1], legend)
    left = MARGIN + widest([*names, "all layers"]) + 0.08
    width = max(left + wide * len(layout.units) + MARGIN, 5.0)
    heading = Heading(words.name(explanation), meaning, width - 2 * MARGIN, title)
    top = MARGIN + heading.height + name_height(layout, wide)
    bottom = top + high * len(values) + gap * totalled
    sheet = Sheet(width, bottom + 0.12 + LEGEND_HEIGHT, layout.texts)
    sheet.heading(heading)
    first = top + (high + gap) * totalled
    axes = heat(sheet, values[:layers][::-1], scale, left, first, (wide, high))
    axes.set_yticks(range(layers), names[::-1], **font(SIZE, color=MUTED))
    axes.tick_params(length=0, pad=2.5)
    mark(axes, layout, rows=False)
    if totalled:
        axes = heat(sheet, values[layers:], scale, left, top, (wide, high))
        axes.set_yticks([0], ["all layers"], **font(SIZE, color=MUTED))
        mark(axes, layout, rows=False)
    name_units(axes, layout, wide, "x")
    sheet.legend(scale, legend, left, bottom + 0.12)
    return sheet.figure


def same_text(explanation: Explanation, others: Sequence[Explanation]) -> list[Explanation]:
    """All of them, if they are of one text."""
    for other in others:
        if other.text == explanation.text and not alike(explanation.tokens, other.tokens):
            raise InputError(
                "others are of models that cut this text into other tokens, so that no map or row "
                "lies on another. MixView([m1, m2], text) compares them by words, and so does "
                'benchmark(..., metrics=[("agreement", {"unit": "words"})]).'
            )
        if [str(token) for token in other.tokens] != [str(token) for token in explanation.tokens]:
            raise InputError("others must be explanations of the same text as this one.")
    return [explanation, *others]


def named(shown: Sequence[Explanation], names: Sequence[str] | None) -> list[str]:
    """Names of explanations: their methods', and whose they are if they are of several models; or
    the caller's own."""
    if names is None:
        paths = list(dict.fromkeys(str(one.info.get("model", "")) for one in shown))
        if len(paths) < 2:
            return [words.name(one) for one in shown]
        models = dict(zip(paths, named_models(paths), strict=True))
        return [f"{words.name(one)}, {models[str(one.info.get('model', ''))]}" for one in shown]
    if isinstance(names, str) or len(names) != len(shown):
        raise InputError(f"names must be {len(shown)} texts: for this explanation and the others.")
    return [str(name) for name in names]


def _thumbnail_cell(count: int, across: int, down: int) -> float:
    """None is so large that all of them together are wider or higher than 16 inches."""
    liked = float(np.clip((1.9 if across <= 4 else 1.45) / count, 0.02, 0.2))
    return min(liked, (12.4 / across - 0.12) / count, (14 / down - 0.27) / count)


def draw_multiples(
    explanation: Explanation,
    *,
    others: Sequence[Explanation] = (),
    names: Sequence[str] | None = None,
    how: str = "layer",
    special: bool = True,
    unit: str = "tokens",
    colours: str = "blues",
    darkest: float | None = None,
    title: str | None = None,
) -> Figure:
    check_how(how)
    shown = same_text(explanation, others)
    called = named(shown, names)
    for one in shown:
        words.need_maps(one, "map")
    layout = lay_out(explanation, unit, special)
    count = max(len(one.maps) for one in shown if one.maps is not None)
    across = count if others else min(count, 4 if count <= 8 else 6)
    down = len(shown) if others else -(-count // across)
    cell = _thumbnail_cell(len(layout.units), across, down)
    side, labels = cell * len(layout.units), cell >= SMALLEST
    left = MARGIN + (min(widest(layout.texts, size_for(cell)), LONGEST_NAME) + 0.06) * labels
    beside = 1.6 if others else 0.0
    gap, step = 0.12, side + LINE_HEIGHT + 0.09
    width = max(left + beside + across * (side + gap) + MARGIN - gap, 4.6)
    way = {"rollout": "from the input up to", "layer": "in", "sum": "summed up to"}[how]
    meaning = f"what went into each token (row), {way} each layer"
    name = "" if others else called[0]
    heading = Heading(name, meaning, width - 2 * MARGIN, title)
    top = MARGIN + heading.height + (name_height(layout, cell) if labels else 0.0)
    bottom = top + down * step
    sheet = Sheet(width, bottom + (MARGIN if others else LEGEND_HEIGHT), layout.texts)
    sheet.heading(heading)
    for row, one in enumerate(shown):
        assert one.maps is not None
        two = words.signed(one)
        maps = [layout.square(one.aggregate(how, layer), two) for layer in range(len(one.maps))]
        # One scale for all layers of a method, as in the widget: layers can be compared.
        scale = map_scale(np.stack(maps), two, colours, darkest=darkest)
        for layer, values in enumerate(maps):
            place = (row, layer) if others else divmod(layer, across)
            x, y = left + beside + place[1] * (side + gap), top + place[0] * step
            axes = heat(sheet, values, scale, x, y, (cell, cell))
            mark(axes, layout, focus=False)
            if labels and place[0] == 0:
                name_units(axes, layout, cell, "x")
            if labels and place[1] == 0:
                name_units(axes, layout, cell, "y")
            sheet.say(x, y + side + 0.03, f"layer {layer}", SIZE - 2, color=MUTED)
        if others:
            label = wrapped(called[row], beside - 0.1)
            y = top + row * step + side / 2 - LINE_HEIGHT * len(label)
            for number, line in enumerate(label):
                sheet.say(MARGIN, y + number * LINE_HEIGHT, line)
            sheet.legend(scale, "", MARGIN + 0.1, top + row * step + side / 2 + 0.05, inches=1.1)
        else:
            sheet.legend(scale, "one scale for all layers", left, bottom)
    return sheet.figure
