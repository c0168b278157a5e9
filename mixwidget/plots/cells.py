"""A matrix as coloured cells with names beside them, on a sheet or in axes of the caller's own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .canvas import SIZE, Heading, Sheet, clipped, font, widest
from .colours import ACCENT, LINE, MUTED, TEXT, Scale
from .units import Array, Layout

LONGEST_NAME = 1.1  # inches
SMALLEST = 0.085  # a cell whose token can still be named
MOST = 13.2  # inches that the cells of a picture take, so that all of it stays below 16


def heat(
    sheet: Sheet, values: Array, scale: Scale, left: float, top: float, cell: tuple[float, float]
) -> Axes:
    """A matrix as coloured cells, without labels."""
    rows, columns = values.shape
    axes = sheet.axes(left, top, columns * cell[0], rows * cell[1])
    axes.imshow(
        values,
        cmap=scale.colours,
        norm=scale.norm,
        aspect="auto",
        interpolation="nearest",
        extent=(-0.5, columns - 0.5, rows - 0.5, -0.5),
    )
    axes.set(xticks=[], yticks=[])
    for side in axes.spines.values():
        side.set(color=LINE, linewidth=0.6)
    return axes


def size_for(cell: float) -> float:
    """Size of names beside cells, in points."""
    return float(np.clip(cell * 72 * 0.82, 5.0, SIZE))


def name_height(layout: Layout, cell: float) -> float:
    """Inches that names above columns take."""
    size = size_for(cell)
    wide = min(widest(layout.texts, size), LONGEST_NAME)
    return (wide if wide > 0.92 * cell else size / 72) + 0.07


def name_units(axes: Axes, layout: Layout, cell: float, axis: str) -> None:
    """Units named along an axis, all while they can be read, then every few; focus in colour."""
    size = size_for(cell)
    step = int(np.ceil(size / 72 / cell - 0.25)) if cell < SMALLEST else 1
    places = list(range(0, len(layout.units), max(1, step)))
    texts = [clipped(layout.units[place].text, LONGEST_NAME, size) for place in places]
    if axis == "x":
        upright = min(widest(layout.texts, size), LONGEST_NAME) > 0.92 * cell
        axes.xaxis.set_ticks_position("top")
        axes.set_xticks(places, texts, rotation=90 if upright else 0, **font(size))
        labels = axes.get_xticklabels()
    else:
        axes.set_yticks(places, texts, **font(size))
        labels = axes.get_yticklabels()
    axes.tick_params(length=0, pad=2.5)
    for place, label in zip(places, labels, strict=True):
        if place == layout.focus:
            label.set(color=ACCENT, fontweight="bold")
        elif layout.units[place].special:
            label.set_color(MUTED)


def mark(axes: Axes, layout: Layout, rows: bool = True, focus: bool = True) -> None:
    """Where the second text begins, and a frame around the focus row."""
    for place in layout.breaks:
        axes.axvline(place - 0.5, color=TEXT, linewidth=0.7, dashes=(3, 3))
        if rows:
            axes.axhline(place - 0.5, color=TEXT, linewidth=0.7, dashes=(3, 3))
    if focus and rows and layout.focus is not None:
        corner, width = (-0.5, layout.focus - 0.5), len(layout.units)
        frame = Rectangle(corner, width, 1, fill=False, edgecolor=ACCENT, linewidth=1.2)
        frame.set(zorder=5, clip_on=False)
        axes.add_patch(frame)


def draw_given(
    axes: Axes,
    values: Array,
    scale: Scale,
    heading: tuple[str, str, str | None],
    columns: Layout,
    rows: Layout | Sequence[str],
    legend: str,
) -> Figure:
    """The same in given axes: a title above, names along the edges, the scale beside them."""
    count, across = values.shape
    axes.imshow(
        values,
        cmap=scale.colours,
        norm=scale.norm,
        aspect="auto",
        interpolation="nearest",
        extent=(-0.5, across - 0.5, count - 0.5, -0.5),
    )
    box, dpi = axes.get_window_extent(), figure_of(axes).dpi
    inches = (box.width / dpi, box.height / dpi)
    axes.set(xticks=[], yticks=[])
    for side in axes.spines.values():
        side.set(color=LINE, linewidth=0.6)
    name_units(axes, columns, inches[0] / across, "x")
    if isinstance(rows, Layout):
        name_units(axes, rows, inches[1] / count, "y")
    else:
        axes.set_yticks(range(count), list(rows), **font(SIZE, color=MUTED))
        axes.tick_params(length=0, pad=2.5)
    mark(axes, columns, rows=isinstance(rows, Layout))
    title_given(axes, heading, inches[0])
    figure = figure_of(axes)
    bar = figure.colorbar(
        ScalarMappable(scale.norm, scale.colours), ax=axes, extend=scale.extend, fraction=0.05
    )
    bar.set_label(legend, **font(SIZE - 1, color=MUTED))
    bar.ax.tick_params(labelsize=SIZE - 1.5, colors=MUTED, length=2, color=LINE)
    return figure


def figure_of(axes: Axes) -> Figure:
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure


def title_given(axes: Axes, heading: tuple[str, str, str | None], room: float) -> None:
    """A method's name and what is shown, above given axes."""
    made = Heading(*heading[:2], room, heading[2])
    lines = [line for line in (made.first, *made.lines) if line]
    axes.set_title("\n".join(lines), loc="left", **font(SIZE))
