"""Metrics as matplotlib figures: removal curves, agreement, layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..errors import InputError
from ..metrics import MEASURES, agreement_matrix
from .canvas import Picture
from .colours import scale_for

if TYPE_CHECKING:
    import pandas as pd

    from ..explanation import Explanation
    from ..metrics import Curve

# Okabe and Ito: told apart by people who do not see all colours, and in grey by the dashes.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
GREY = "#777777"


def _plain(text: str) -> str:
    """Text as itself where it cannot be said by a property: no pairs of dollars as formulas."""
    return text.replace("$", r"\$")


def _style(number: int) -> dict[str, Any]:
    colour = COLOURS[number % len(COLOURS)]
    return {"color": colour, "linestyle": DASHES[number % len(DASHES)], "linewidth": 1.6}


def _axes(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Picture(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.tick_params(labelsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def plot_curves(curves: Mapping[str, Any], *, title: str | None = None) -> Figure:
    """Probability of the target against the share of tokens removed.

    Args:
        curves: {name: `metrics.Curve`}; {name: a list of curves} is drawn as their mean and a
            band that holds eight in ten of them (random orders by seed, or one method over
            many texts); or what `metrics.faithfulness_report` gives.

    >>> from mixwidget import demo, explain, metrics, plot_curves
    >>> model = demo.load()[0]
    >>> curve = metrics.curve(explain(model, "never boring", "attcat"), model)
    >>> plot_curves({"attcat": curve}).axes[0].get_xlabel()
    'share of tokens removed'
    """
    if not curves:
        raise InputError("There is no curve to draw.")
    if "curves" in curves and "start" in curves:
        return _plot_report(curves, title)
    figure, axes = _axes(5.2, 3.4)
    lines = 0
    for name, given in curves.items():
        several = isinstance(given, list | tuple)
        style = {"color": GREY, "linewidth": 1.2} if name == "random" else _style(lines)
        lines += name != "random"
        if several:
            shares, band = _on_one_grid(given)
            low, high = np.quantile(band, (0.1, 0.9), axis=0)
            _band(axes, shares, band.mean(0), low, high, str(name), style)
        else:
            axes.plot(given.shares, given.probabilities, label=_plain(str(name)), **style)
    return _finish_curves(figure, axes, title)


def plot_band(
    bands: Mapping[str, tuple[Any, Any, Any, Any]], *, title: str | None = None
) -> Figure:
    """Removal curves with bands: {name: (shares, middle, low, high)}."""
    if not bands:
        raise InputError("There is no curve to draw.")
    figure, axes = _axes(5.2, 3.4)
    for number, (name, (shares, middle, low, high)) in enumerate(bands.items()):
        _band(axes, shares, middle, low, high, name, _style(number))
    return _finish_curves(figure, axes, title)


def plot_grid(
    values: Mapping[str, Sequence[float]], *, label: str = "", title: str | None = None
) -> Figure:
    """A metric by method (down) and layer (across), as shades with their numbers.

    Args:
        values: {method: one value for each layer}.
        label: what the values are.

    >>> from mixwidget.plots import plot_grid
    >>> len(plot_grid({"alti": [0.2, 0.4], "random": [0.1, 0.1]}).axes[0].texts)
    4
    """
    if not values:
        raise InputError("There is nothing to draw.")
    longest = max(len(row) for row in values.values())
    table = np.full((len(values), longest), np.nan)
    for number, row in enumerate(values.values()):
        table[number, : len(row)] = row
    figure = Picture(figsize=(2.6 + 0.48 * longest, 1.3 + 0.3 * len(values)), layout="constrained")
    axes = figure.subplots()
    known = table[np.isfinite(table)]
    scale = scale_for(known, signed=bool((known < 0).any()))
    image = axes.imshow(table, cmap=scale.colours, norm=scale.norm, aspect="auto")
    axes.set_xticks(range(longest), [str(layer) for layer in range(longest)], fontsize=8)
    axes.set_yticks(range(len(values)), [_plain(str(name)) for name in values], fontsize=8)
    axes.set_xlabel("layer", fontsize=9)
    for (down, across), value in np.ndenumerate(table):
        if np.isfinite(value):
            text, ink = f"{value:.2f}", scale.ink(value)
            axes.text(across, down, text, ha="center", va="center", fontsize=7, color=ink)
    figure.colorbar(image, ax=axes, shrink=0.8).ax.tick_params(labelsize=8)
    axes.set_title(_plain(title or label), loc="left", fontsize=10)
    return figure


def _plot_report(report: Mapping[str, Any], title: str | None) -> Figure:
    figure, axes = _axes(5.2, 3.4)
    shares = report["start"]["shares"]
    if "random" in report:
        floor, style = report["random"], {"color": GREY, "linewidth": 1.2}
        label = f"random ({floor['seeds']} orders)"
        _band(axes, shares, floor["mean"], floor["low"], floor["high"], label, style)
    drawn = [part for part in report["curves"].values() if "probabilities" in part]
    for number, part in enumerate(drawn):
        label = _plain(part["method"])
        axes.plot(shares, part["probabilities"], label=label, **_style(number))
    return _finish_curves(figure, axes, title, report["start"]["target"])


def _band(
    axes: Axes, x: Any, middle: Any, low: Any, high: Any, label: str, style: dict[str, Any]
) -> None:
    axes.plot(x, middle, label=_plain(label), **style)
    axes.fill_between(x, low, high, color=style["color"], alpha=0.15, linewidth=0)


def _on_one_grid(curves: Sequence[Curve]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Curves of texts of different lengths, at the same shares."""
    if not curves:
        raise InputError("There is no curve to draw.")
    shares = np.linspace(0, 1, 21)
    if all(np.array_equal(curve.shares, curves[0].shares) for curve in curves):
        shares = curves[0].shares
    return shares, np.stack([np.interp(shares, c.shares, c.probabilities) for c in curves])


def _finish_curves(
    figure: Figure, axes: Axes, title: str | None, target: str | None = None
) -> Figure:
    of = f"of {target}" if target else "of the target"
    axes.set_xlabel("share of tokens removed", fontsize=9)
    lowest = min((float(np.min(line.get_ydata())) for line in axes.lines), default=0.0)
    logs = lowest < 0  # of answers
    what = "log probability per token" if logs else "probability"
    axes.set_ylabel(_plain(f"{what} {of}"), fontsize=9)
    axes.set_xlim(0, 1)
    if not logs:
        axes.set_ylim(0, 1.02)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    if title:
        axes.set_title(_plain(title), loc="left", fontsize=10)
    return figure


def plot_agreement(
    explanations: Sequence[Explanation] | pd.DataFrame,
    measure: str = "spearman",
    *,
    names: Sequence[str] | None = None,
    method: str | None = None,
    special: bool = False,
    title: str | None = None,
) -> Figure:
    """How far explanations agree with each other, as a matrix.

    Args:
        explanations: of one text, by several methods or of several models; or a frame from
            `benchmark` with the metric "agreement": means over texts.
        measure: "spearman", "kendall", or "jaccard" of the top 25%.
        names: what to call them; None: by their methods, of a frame by what it names.
        method: of a frame of several models, which method's agreement; None: the only one.
        special: whether special tokens count.

    >>> from mixwidget import demo, explain, plot_agreement
    >>> model = demo.load()[0]
    >>> found = [explain(model, "never boring", id) for id in ("alti", "globenc", "attcat")]
    >>> len(plot_agreement(found).axes[0].get_xticklabels())
    3
    """
    if hasattr(explanations, "columns"):
        values, called = _agreements_in(explanations, measure, method)
    else:
        if len(explanations) < 2:
            raise InputError("Agreement is between two explanations or more.")
        values = agreement_matrix(explanations, measure, special=special)
        called = [explanation.method for explanation in explanations]
    if names is not None:
        if isinstance(names, str) or len(names) != len(called):
            raise InputError(f"names must be {len(called)} names, one for each.")
        called = [str(name) for name in names]
    labels = [_plain(name) for name in called]
    side = 1.6 + 0.42 * len(labels)
    figure = Picture(figsize=(side + 1.2, side), layout="constrained")
    axes = figure.subplots()
    scale = scale_for(np.ones(1), signed=measure != "jaccard")
    image = axes.imshow(values, cmap=scale.colours, norm=scale.norm)
    axes.set_xticks(range(len(labels)), labels, rotation=45, ha="right", fontsize=8)
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    for (row, column), value in np.ndenumerate(values):
        if np.isnan(value):
            continue
        text, ink = f"{value:.2f}", scale.ink(value)
        axes.text(column, row, text, ha="center", va="center", fontsize=7, color=ink)
    figure.colorbar(image, ax=axes, shrink=0.8, label=_plain(measure)).ax.tick_params(labelsize=8)
    axes.set_title(_plain(title or f"agreement: {measure}"), loc="left", fontsize=10)
    return figure


def _agreements_in(
    frame: Any, measure: str, method: str | None
) -> tuple[NDArray[np.float64], list[str]]:
    """The matrix of a benchmark's means, and the names of its rows."""
    if measure not in MEASURES:
        raise InputError(f"measure is {measure!r}; it can be {', '.join(MEASURES)}.")
    rows = frame[frame["example"].isna() & frame["metric"].str.startswith(f"agreement_{measure}")]
    side = "model" if "model" in frame else "method"
    if side == "model":
        known = list(dict.fromkeys(rows["method"]))
        if method is None and len(known) > 1:
            raise InputError(f"Say whose agreement: method= one of {', '.join(known)}.")
        rows = rows if method is None else rows[rows["method"] == method]
    pairs = [tuple(str(pair).split(" ~ ")) for pair in rows[side]]
    if not pairs or rows["metric"].nunique() != 1 or any(len(pair) != 2 for pair in pairs):
        raise InputError(
            f"The frame must hold one agreement_{measure}: benchmark([model, other], texts, "
            'metrics=["agreement"]).'
        )
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    values = np.eye(len(names))
    for (one, other), mean in zip(pairs, rows["mean"], strict=True):
        i, j = names.index(one), names.index(other)
        values[i, j] = values[j, i] = mean
    return values, names


def plot_layers(
    values: Mapping[str, Sequence[float]] | pd.DataFrame,
    *,
    label: str = "",
    title: str | None = None,
    errors: Mapping[str, Sequence[float]] | None = None,
) -> Figure:
    """A metric by layer, one line for each method.

    Args:
        values: {method: one value for each layer}, or a frame from `benchmark` whose metrics
            are one metric at several layers: [("cue_dot", {"layer": 0}), ...].
        label: what the values are.
        errors: {method: standard error for each layer}; drawn as bars.

    >>> from mixwidget import plot_layers
    >>> plot_layers({"alti": [0.2, 0.4, 0.5]}, label="cue_dot").axes[0].get_ylabel()
    'cue_dot'
    """
    if hasattr(values, "columns"):
        values, errors, label = _by_layer(values, label)
    if not values:
        raise InputError("There is nothing to draw.")
    figure, axes = _axes(5.2, 3.2)
    for number, (name, row) in enumerate(values.items()):
        style = {"color": GREY, "linewidth": 1.2} if name == "random" else _style(number)
        bars = None if errors is None else errors.get(name)
        layers, heights = np.arange(len(row)), np.asarray(row, dtype=np.float64)
        text = _plain(str(name))
        axes.errorbar(layers, heights, yerr=bars, marker="o", markersize=3, label=text, **style)
    longest = max(len(row) for row in values.values())
    axes.set_xticks(range(0, longest, max(1, longest // 16)))
    axes.set_xlabel("layer", fontsize=9)
    axes.set_ylabel(_plain(label), fontsize=9)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    if title:
        axes.set_title(_plain(title), loc="left", fontsize=10)
    return figure


def _by_layer(frame: Any, label: str) -> tuple[dict[str, list[float]], dict[str, list[float]], str]:
    """Means and errors of a benchmark's per-layer metrics, by method in order of the layers."""
    rows = frame[frame["example"].isna()] if "example" in frame else frame
    found = rows["metric"].str.extract(r"^(?P<metric>\w+)\(.*?layer=(?P<layer>\d+)")
    rows = rows.assign(base=found["metric"], layer=found["layer"]).dropna(subset=["layer"])
    if rows.empty or rows["base"].nunique() != 1:
        raise InputError(
            'The frame must hold one metric at several layers: metrics=[("cue_dot", '
            '{"layer": 0}), ...].'
        )
    rows = rows.assign(layer=rows["layer"].astype(int)).sort_values("layer", kind="stable")
    groups = {name: rows[rows["method"] == name] for name in dict.fromkeys(frame["method"])}
    groups = {name: group for name, group in groups.items() if len(group)}
    means = {name: group["mean"].tolist() for name, group in groups.items()}
    errors = {name: group["stderr"].tolist() for name, group in groups.items()}
    return means, errors, label or str(rows["base"].iloc[0])
