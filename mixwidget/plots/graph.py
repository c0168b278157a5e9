"""Tokens across, layers up, edges as strong as the contributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle, PathPatch, Rectangle
from matplotlib.path import Path

from ..errors import InputError
from ..explanation import normalise_rows
from . import words
from .canvas import (
    LEGEND_HEIGHT,
    LINE_HEIGHT,
    MARGIN,
    Heading,
    Sheet,
    clipped,
    font,
    widest,
)
from .cells import MOST, figure_of, title_given
from .colours import ACCENT, EDGE, LINE, MUTED, TEXT, Scale, scale_for
from .graph_model import (
    Edge,
    chosen_edges,
    folded,
    steps_of,
    strongest_between,
    total_one,
    trace_down,
    without_folds,
)
from .units import Array, Layout, lay_out

if TYPE_CHECKING:
    from ..explanation import Explanation

_LONGEST_NAME = 1.1
_BINS = 10  # steps of strength that edges are drawn in
_PIXEL = 0.75  # of the widget, in points


def _start(explanation: Explanation, trace: Any) -> tuple[int, int] | None:
    """(layer, token) to trace from; None for no trace."""
    assert explanation.maps is not None
    count, tokens = len(explanation.maps), len(explanation.tokens)
    if trace is None or trace is False:
        return None
    if trace is True:
        return count - 1, explanation.focus
    try:
        layer, token = (int(part) for part in trace)
    except (TypeError, ValueError) as error:
        raise InputError(f"trace is {trace!r}; it can be True or (layer, token).") from error
    if not -count <= layer < count or not -tokens <= token < tokens:
        raise InputError(
            f"trace is {trace!r}, but there are layers 0 to {count - 1} and tokens 0 to "
            f"{tokens - 1}."
        )
    return layer % count, token % tokens


def _checked(threshold: float, top_k: int | None) -> int:
    if not 0 <= threshold <= 1:
        raise InputError(f"threshold is {threshold}; it can be 0 to 1.")
    top_k = 0 if top_k is None else top_k
    if isinstance(top_k, bool) or not isinstance(top_k, int) or top_k < 0:
        raise InputError(f"top_k is {top_k!r}; it can be 0 or a number of edges.")
    return top_k


def draw_graph(
    explanation: Explanation,
    *,
    threshold: float = 0.1,
    top_k: int | None = 0,
    trace: Any = None,
    fold: int = 48,
    special: bool = True,
    unit: str = "tokens",
    colours: str = "blues",
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    words.need_maps(explanation, "graph")
    assert explanation.maps is not None
    top_k = _checked(threshold, top_k)
    steps = steps_of(explanation.maps, explanation.combine)
    start = _start(explanation, trace)
    origin = explanation.focus if start is None else start[1]
    layout = lay_out(explanation, unit, special, keep=origin)
    own = next(i for i, one in enumerate(layout.units) if origin in one.tokens)
    named = layout.units[own]
    name = named.text if named.special else words.quoted(named.text)
    top = None if start is None else start[0]
    layout, drawn, shares = _edges_of(steps, layout, own, fold, top)
    heading_words = _meaning(explanation, start, name, threshold, top_k) + _fold_words(layout)
    count = len(layout.units)
    column = float(np.clip(8.6 / count, min(0.185, MOST / count), 0.72))
    level = float(np.clip(3.6 / len(steps), min(0.42, 12 / len(steps)), 0.72))
    left = MARGIN + widest([f"layer {len(steps)}"]) + 0.1
    width = max(left + column * len(layout.units) + MARGIN, 5.2)
    heading = Heading(words.name(explanation), heading_words, width - 2 * MARGIN, title)
    upright = widest(layout.texts) + 0.1 > column
    names = min(widest(layout.texts), _LONGEST_NAME) + 0.2 if upright else 0.4
    base = MARGIN + heading.height + 0.15 + level * len(steps)
    height = base + names + (LEGEND_HEIGHT if shares is not None else 0.05)
    if ax is not None:
        called = (words.name(explanation), heading_words, title)
        sheet, plane = None, _prepared(ax, called, width, (base + names, MARGIN + heading.height))
    else:
        sheet = Sheet(width, height, layout.texts)
        sheet.heading(heading)
        plane = sheet.plane()
    grid = _Grid(left, base, column, level, len(steps) + 1, layout)
    grid.levels(plane, None if start is None else start[0] + 1)
    _draw_edges(grid, plane, drawn, chosen_edges(drawn, threshold, top_k), shares is not None)
    chosen = None if start is None else (start[0] + 1, start[1])
    grid.nodes(plane, shares, chosen)
    scale = None
    if shares is not None:
        single = [not unit.fold for unit in layout.units]
        scale = scale_for(shares[0, single], False, colours)
    grid.names(plane, upright, None if shares is None else shares[0], scale)
    if sheet is None:
        return figure_of(plane)
    if scale is not None:
        sheet.legend(scale, f"share of {name}", left, base + names)
    return sheet.figure


def _prepared(
    ax: Axes, called: tuple[str, str, str | None], width: float, ends: tuple[float, float]
) -> Axes:
    """Given axes, measured as the sheet is, with the heading above."""
    ax.set(xlim=(0, width), ylim=ends)
    ax.axis("off")
    title_given(ax, called, ax.get_window_extent().width / figure_of(ax).dpi)
    return ax


def _edges_of(
    steps: Array, layout: Layout, own: int, fold: int, top: int | None
) -> tuple[Layout, Array, Array | None]:
    """Columns, edges between them, and where a trace starts at layer `top` what each node holds."""
    shares: Array | None = None
    if top is None:
        given = (steps * (1 - np.eye(steps.shape[-1]))).sum((0, 1))
        layout = folded(layout, given, fold, {own})
        belongs = layout.matrix()
        # Rows sum to 1 again where special tokens are hidden.
        drawn = normalise_rows((belongs / belongs.sum(0)).T @ normalise_rows(steps) @ belongs)
    else:
        traced = trace_down(steps[: top + 1], layout.units[own].tokens)
        layout = folded(layout, traced.nodes.max(0), fold, {own})
        belongs = layout.matrix()
        drawn, shares = belongs.T @ traced.edges @ belongs, traced.nodes @ belongs
        shares[0] = total_one(shares[0])
    return layout, without_folds(drawn, layout), shares


def _draw_edges(grid: _Grid, plane: Any, drawn: Array, edges: list[Edge], traced: bool) -> None:
    """A trace shows what stays as well; all edges together only what moves."""
    if traced:
        peak = float(drawn.max(initial=0.0))
        grid.edges(plane, edges, peak, thick=1.0, crowd=_crowd(len(edges), 0.55))
        return
    grid.kept(plane, edges)
    between = [edge for edge in edges if edge[1] != edge[2]]
    peak = float(strongest_between(drawn).max(initial=0.0))
    grid.edges(plane, between, peak, thick=0.6, crowd=_crowd(len(edges), 0.22))


def _crowd(count: int, least: float) -> float:
    """How much fainter and thinner edges are drawn where many would run together."""
    return min(1.0, max(least, float(np.sqrt(700 / max(count, 1)))))


def _fold_words(layout: Layout) -> str:
    count = sum(unit.fold for unit in layout.units)
    return (
        f"; {count} tokens of little weight are folded (⋯), their edges left out" if count else ""
    )


def _meaning(
    explanation: Explanation,
    start: tuple[int, int] | None,
    name: str,
    threshold: float,
    top_k: int,
) -> str:
    which = f"the {top_k} strongest edges of each token"
    if top_k == 0:
        which = f"edges of at least {threshold:.0%} of their layer's strongest between two tokens"
    if start is None:
        return (
            "what each token takes from the layer below, as a share; grey is what it keeps of "
            f"itself ({which})"
        )
    flow = "; layers multiplied, not as a flow" if explanation.combine == "flow" else ""
    return (
        f"what went into {name} at layer {start[0]}, from the input: lines and dots are as strong "
        f"as the share that passes there ({which}){flow}"
    )


@dataclass(frozen=True)
class _Grid:
    """Places of nodes: columns from the left, levels from the bottom, in inches."""

    left: float
    base: float
    column: float
    level: float
    count: int
    layout: Layout

    def x(self, column: int) -> float:
        return self.left + (column + 0.5) * self.column

    def y(self, level: int) -> float:
        return self.base - level * self.level

    @property
    def right(self) -> float:
        return self.left + self.column * len(self.layout.units)

    def levels(self, plane: Axes, chosen: int | None) -> None:
        for level in range(self.count):
            y = self.y(level)
            plane.plot([self.left, self.right], [y, y], color=LINE, linewidth=0.6, zorder=0)
            name = "input" if level == 0 else f"layer {level - 1}"
            style = font(color=ACCENT if level == chosen else MUTED, ha="right")
            plane.text(self.left - 0.08, y, name, va="center_baseline", **style)
        for place in self.layout.breaks:
            x = self.left + place * self.column
            style = {"color": TEXT, "linewidth": 0.7, "dashes": (3, 3)}
            plane.plot([x, x], [self.y(self.count - 1), self.base], **style)

    def ends(self, edge: Edge) -> list[tuple[float, float]]:
        layer, upper, lower, _ = edge
        return [(self.x(upper), self.y(layer + 1)), (self.x(lower), self.y(layer))]

    def kept(self, plane: Axes, edges: list[Edge]) -> None:
        """What tokens keep of themselves: upright lines in a quiet colour."""
        own = [edge for edge in edges if edge[1] == edge[2]]
        widths = [(0.5 + 3 * weight) * _PIXEL for *_, weight in own]
        lines = LineCollection([self.ends(edge) for edge in own], colors=MUTED, linewidths=widths)
        lines.set(alpha=0.35, zorder=1, gid="kept")
        plane.add_collection(lines, autolim=False)

    def edges(
        self, plane: Axes, edges: list[Edge], strongest: float, thick: float, crowd: float
    ) -> None:
        """Straight lines; strength goes with the root of the weight.

        One path for each step of strength: lines that cross in it do not add up to a darker one.
        """
        bins: list[list[Edge]] = [[] for _ in range(_BINS)]
        for edge in edges:
            share = edge[3] / (strongest or 1.0)
            bins[min(max(int(np.ceil(_BINS * np.sqrt(share))) - 1, 0), _BINS - 1)].append(edge)
        for number, found in enumerate(bins):
            if not found:
                continue
            strength = (number + 0.7) / _BINS
            width = 0.7 + 5.3 * strength * thick
            if crowd < 1 and strength < 0.6:
                width = min(width * crowd, 1.0)
            points = [end for edge in found for end in self.ends(edge)]
            path = Path(points, [Path.MOVETO, Path.LINETO] * len(found))
            style = {"edgecolor": EDGE, "facecolor": "none", "linewidth": width * _PIXEL}
            alpha = (0.16 + 0.74 * strength) * crowd
            plane.add_patch(PathPatch(path, alpha=alpha, zorder=2, gid="edges", **style))

    def nodes(self, plane: Axes, shares: Array | None, chosen: tuple[int, int] | None) -> None:
        circles, colours = [], []
        for level in range(self.count):
            for column, unit in enumerate(self.layout.units):
                share = 0.0
                if shares is not None and level < len(shares):
                    share = float(shares[level, column])
                radius = 0.017 + 0.073 * np.sqrt(share) if shares is not None else 0.027
                place = (self.x(column), self.y(level))
                circles.append(Circle(place, radius))
                seen = shares is None or share > 0.001
                single = share > 0.001 and not unit.fold
                colours.append(EDGE if single else MUTED if seen else LINE)
                if chosen is not None and level == chosen[0] and chosen[1] in unit.tokens:
                    ring = Circle(place, radius + 0.045, fill=False, edgecolor=ACCENT)
                    ring.set(linewidth=1.8, zorder=6)
                    plane.add_patch(ring)
        dots = PatchCollection(circles, facecolors=colours, edgecolors="none", zorder=5)
        plane.add_collection(dots, autolim=False)

    def names(self, plane: Axes, upright: bool, shares: Array | None, scale: Scale | None) -> None:
        """Names under the input, shaded by their share where something is traced."""
        for column, unit in enumerate(self.layout.units):
            room = _LONGEST_NAME if upright else self.column - 0.06
            text = clipped(unit.text, room)
            width, high = widest([text]), LINE_HEIGHT
            top = self.base + 0.13
            ink = MUTED if unit.special or unit.fold else TEXT
            ink = ACCENT if column == self.layout.focus else ink
            if shares is not None and scale is not None and not unit.fold:
                ink = scale.ink(float(shares[column]))
                size = (high, width + 0.08) if upright else (width + 0.08, high)
                corner = (self.x(column) - size[0] / 2, top)
                shade = scale.colour(float(shares[column]))
                plane.add_patch(Rectangle(corner, *size, facecolor=shade, edgecolor="none"))
            if upright:
                place = (self.x(column), top + 0.04)
                style = font(color=ink, rotation=270, ha="center", va="top")
            else:
                place = (self.x(column), top + high * 0.55)
                style = font(color=ink, ha="center", va="center_baseline")
            plane.text(*place, text, zorder=4, **style)
