"""Tokens across, layers up, edges as strong as the contributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection, PathCollection
from matplotlib.patches import Circle, Rectangle
from matplotlib.path import Path

from ..aggregate import Combine, normalise_rows
from ..errors import InputError
from . import words
from .canvas import (
    LEGEND_HEIGHT,
    LINE_HEIGHT,
    MARGIN,
    Heading,
    Picture,
    Sheet,
    clipped,
    font,
    widest,
)
from .colours import ACCENT, EDGE, LINE, MUTED, TEXT, Scale, scale_for
from .units import Array, Layout, Unit, lay_out

if TYPE_CHECKING:
    from ..explanation import Explanation

_LONGEST_NAME = 1.1
_MOST_EDGES = 6000


def steps_of(maps: Array, combine: Combine) -> Array:
    """Maps as the rollout multiplies them."""
    steps = maps.astype(np.float64)
    if combine == "with_identity":
        return steps + np.eye(steps.shape[-1])
    return normalise_rows(steps) if combine in ("normalised", "flow") else steps


@dataclass(frozen=True)
class Shares:
    """What of a node passes through every node and edge below it; each level adds up to 1.

    Attributes:
        nodes: [levels, n], level 0 is the input.
        edges: [levels - 1, n, n]: edges[l, k, j] leads from (l + 1, k) down to (l, j).
    """

    nodes: Array
    edges: Array


def trace_down(steps: Array, token: int) -> Shares:
    """All paths from a token after the last of the steps down to the input.

    A path weighs the product of its entries. With `down` the weight of the paths from the
    token to a node and `up` that of the paths from there to the input, node k carries
    down[k] up[k], and the edge from k to j carries down[k] step[k, j] up[j].
    """
    ups: list[Array] = [np.ones(steps.shape[-1])]
    for step in steps:
        ups.append(_rescaled(step @ ups[-1]))
    down: Array = np.zeros(steps.shape[-1])
    down[token] = 1.0
    nodes, edges = [_total_one(down * ups[-1])], []
    for step, up in zip(steps[::-1], ups[-2::-1], strict=True):
        edges.append(_total_one(down[:, None] * step * up))
        down = _rescaled(down @ step)
        nodes.append(_total_one(down * up))
    return Shares(np.stack(nodes[::-1]), np.stack(edges[::-1]))


def _rescaled(values: Array) -> Array:
    return values / (np.abs(values).max(initial=0.0) or 1.0)


def _total_one(values: Array) -> Array:
    return values / (values.sum() or 1.0)


def folded(layout: Layout, weights: Array, room: int, kept: set[int]) -> Layout:
    """Units of little weight joined with their neighbours, so that about `room` are left."""
    if len(layout.units) <= room:
        return layout
    unit_weights = weights @ layout.matrix()
    stay = set(np.argsort(-unit_weights, kind="stable")[:room].tolist()) | kept
    # A fold of one saves nothing.
    weak = [number not in stay for number in range(len(layout.units))]
    for number, unit in enumerate(layout.units):
        near = [i for i in (number - 1, number + 1) if 0 <= i < len(weak) and weak[i]]
        if weak[number] and not any(layout.units[i].segment == unit.segment for i in near):
            stay.add(number)
    units, focus = list[Unit](), None
    for number, unit in enumerate(layout.units):
        if number in stay:
            focus = len(units) if number == layout.focus else focus
            units.append(unit)
        elif units and units[-1].text.startswith("⋯") and units[-1].segment == unit.segment:
            tokens = units[-1].tokens + unit.tokens
            units[-1] = Unit(f"⋯{len(tokens)}", tokens, False, unit.segment, False)
        else:
            units.append(Unit("⋯1", list(unit.tokens), False, unit.segment, False))
    return Layout(units, focus, layout.tokens)


def chosen_edges(weights: Array, threshold: float, top_k: int) -> list[tuple[int, int, int, float]]:
    """(layer, upper, lower, weight) of the edges that are drawn, weakest first."""
    strongest = float(weights.max(initial=0.0))
    keep = weights >= max(threshold * strongest, 1e-12)
    if top_k > 0:
        ranks = (-weights).argsort(-1, kind="stable").argsort(-1)
        keep = (ranks < top_k) & (weights > 0)
    places = np.argwhere(keep)
    order = np.argsort(weights[keep], kind="stable")[-_MOST_EDGES:]
    return [(*(int(p) for p in places[i]), float(weights[tuple(places[i])])) for i in order]  # type: ignore[misc]


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


def draw_graph(
    explanation: Explanation,
    *,
    threshold: float = 0.1,
    top_k: int = 0,
    trace: Any = None,
    fold: int = 48,
    special: bool = True,
    unit: str = "tokens",
    colours: str = "blues",
    title: str | None = None,
) -> Picture:
    words.need_maps(explanation, "graph")
    assert explanation.maps is not None
    if not 0 <= threshold <= 1:
        raise InputError(f"threshold is {threshold}; it can be 0 to 1.")
    if isinstance(top_k, bool) or not isinstance(top_k, int) or top_k < 0:
        raise InputError(f"top_k is {top_k!r}; it can be 0 or a number of edges.")
    steps = steps_of(explanation.maps, explanation.combine)
    start = _start(explanation, trace)
    layout = lay_out(explanation, unit, special)
    shares: Array | None = None
    if start is None:
        weights = normalise_rows(steps)
        layout = folded(layout, weights.sum((0, 1)), fold, {layout.focus or 0})
        belongs = layout.matrix()
        drawn = (belongs / belongs.sum(0)).T @ weights @ belongs
    else:
        traced = trace_down(steps[: start[0] + 1], start[1])
        own = next((i for i, u in enumerate(layout.units) if start[1] in u.tokens), 0)
        layout = folded(layout, traced.nodes.max(0), fold, {own})
        belongs = layout.matrix()
        drawn, shares = belongs.T @ traced.edges @ belongs, traced.nodes @ belongs
    heading_words = _meaning(explanation, start, threshold, top_k)
    column = float(np.clip(8.6 / len(layout.units), 0.185, 0.72))
    level = float(np.clip(3.6 / len(steps), 0.42, 0.72))
    left = MARGIN + widest([f"layer {len(steps)}"]) + 0.1
    width = max(left + column * len(layout.units) + MARGIN, 5.2)
    heading = Heading(words.name(explanation), heading_words, width - 2 * MARGIN, title)
    upright = widest(layout.texts) + 0.1 > column
    names = min(widest(layout.texts), _LONGEST_NAME) + 0.2 if upright else 0.4
    top = MARGIN + heading.height + 0.15
    base = top + level * len(steps)
    height = base + names + (LEGEND_HEIGHT if shares is not None else 0.05)
    sheet = Sheet(width, height, layout.texts)
    sheet.heading(heading)
    plane = sheet.plane()
    grid = _Grid(left, base, column, level, len(steps) + 1, layout)
    grid.levels(plane, None if start is None else start[0] + 1)
    grid.edges(plane, chosen_edges(drawn, threshold, top_k), float(drawn.max(initial=0.0)))
    chosen = None if start is None else (start[0] + 1, start[1])
    grid.nodes(plane, shares, chosen)
    scale = None if shares is None else scale_for(shares[0], False, colours)
    grid.names(plane, upright, None if shares is None else shares[0], scale)
    if scale is not None and start is not None:
        name = words.quoted(explanation.tokens[start[1]])
        sheet.legend(scale, f"share of {name}", left, base + names)
    return sheet.figure


def _meaning(
    explanation: Explanation, start: tuple[int, int] | None, threshold: float, top_k: int
) -> str:
    which = f"the {top_k} strongest edges of each token"
    if top_k == 0:
        which = f"edges of at least {threshold:.0%} of the strongest"
    if start is None:
        return f"what each token takes from the layer below, as a share ({which})"
    layer, token = start
    name = words.quoted(explanation.tokens[token])
    flow = "; layers multiplied, not as a flow" if explanation.combine == "flow" else ""
    return (
        f"what went into {name} at layer {layer}, from the input: lines and dots are as strong as "
        f"the share that passes there ({which}){flow}"
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

    def edges(
        self, plane: Axes, edges: list[tuple[int, int, int, float]], strongest: float
    ) -> None:
        paths, widths, colours = [], [], []
        for layer, upper, lower, weight in edges:
            x1, x0, y1, y0 = self.x(upper), self.x(lower), self.y(layer + 1), self.y(layer)
            middle = (y0 + y1) / 2
            points = [(x1, y1), (x1, middle), (x0, middle), (x0, y0)]
            paths.append(Path(points, [Path.MOVETO, *[Path.CURVE4] * 3]))
            strength = weight / (strongest or 1.0)
            widths.append(0.4 + 3.4 * strength)
            colours.append((*_rgb(EDGE), 0.16 + 0.74 * strength))
        plane.add_collection(
            PathCollection(paths, facecolors="none", edgecolors=colours, linewidths=widths),
            autolim=False,
        )

    def nodes(self, plane: Axes, shares: Array | None, chosen: tuple[int, int] | None) -> None:
        circles, colours = [], []
        for level in range(self.count):
            for column, unit in enumerate(self.layout.units):
                share = 0.0
                if shares is not None and level < len(shares):
                    share = float(shares[level, column])
                radius = 0.02 + 0.085 * np.sqrt(share) if shares is not None else 0.028
                place = (self.x(column), self.y(level))
                circles.append(Circle(place, radius))
                seen = shares is None or share > 0.001
                colours.append(EDGE if share > 0.001 else MUTED if seen else LINE)
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
            ink = ACCENT if column == self.layout.focus else MUTED if unit.special else TEXT
            if shares is not None and scale is not None:
                ink = scale.ink(float(shares[column]))
                size = (high, width + 0.08) if upright else (width + 0.08, high)
                corner = (self.x(column) - size[0] / 2, top)
                shade = scale.colour(float(shares[column]))
                plane.add_patch(Rectangle(corner, *size, facecolor=shade, edgecolor="none"))
            if upright:
                place = (self.x(column), top + 0.04)
                style = font(color=ink, rotation=90, ha="center", va="top")
            else:
                place = (self.x(column), top + high * 0.55)
                style = font(color=ink, ha="center", va="center_baseline")
            plane.text(*place, text, zorder=4, **style)


def _rgb(colour: str) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    return to_rgb(colour)
