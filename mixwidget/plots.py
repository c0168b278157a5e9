"""Explanations as matplotlib figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, TwoSlopeNorm
from matplotlib.figure import Figure

from .errors import InputError, UnsupportedMethodError

if TYPE_CHECKING:
    from .explanation import Explanation

UNSIGNED, SIGNED = "Blues", "RdBu_r"
KINDS = ("text", "map", "layers")
_INCH_PER_CHARACTER = 0.105
_LINE_INCHES = 7.5


def plot_explanation(explanation: Explanation, kind: str | None = None, **options: Any) -> Figure:
    """Draw an explanation; `kind` defaults to the tokens shaded by their scores.

    text     the input's tokens, shaded by `scores`
    map      one map; options: layer (-1), how ("rollout", "layer" or "sum")
    layers   the focus row of every layer; option: how
    """
    kind = kind or "text"
    if kind not in KINDS:
        raise InputError(f"kind is {kind!r}; it can be {', '.join(KINDS)}.")
    return {"text": _text, "map": _map, "layers": _layers}[kind](explanation, **options)


def _plain(text: str) -> str:
    """Text as itself: matplotlib would read pairs of dollar signs as formulas."""
    return text.replace("$", r"\$")


def _scale(values: np.ndarray) -> tuple[str, Normalize]:
    """Colour scale for values: one hue from zero up, or two hues around zero."""
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    if bool((values < 0).any()):
        return SIGNED, TwoSlopeNorm(0.0, -largest, largest)
    return UNSIGNED, Normalize(0.0, largest)


def _title(explanation: Explanation, what: str) -> str:
    return _plain(f"{explanation.method}: {what}")


def _what_scores_say(explanation: Explanation) -> str:
    from .methods.registry import get_method

    if get_method(explanation.method).class_specific:
        return f"what drove {explanation.target.label}"
    return f"what went into {explanation.tokens[explanation.focus]}"


def _text(explanation: Explanation) -> Figure:
    lines = _wrapped([token.text for token in explanation.tokens])
    figure = Figure(figsize=(_LINE_INCHES + 0.4, 0.42 * len(lines) + 1.0), layout="constrained")
    axes = figure.subplots()
    axes.set_xlim(0, _LINE_INCHES)
    axes.set_ylim(len(lines), 0)
    axes.axis("off")
    name, norm = _scale(explanation.scores)
    colours = colormaps[name]
    for row, line in enumerate(lines):
        for index, left, width in line:
            colour = colours(norm(explanation.scores[index]))
            dark = float(np.dot(colour[:3], (0.299, 0.587, 0.114))) < 0.55
            axes.text(
                left + width / 2,
                row + 0.5,
                _plain(explanation.tokens[index].text),
                ha="center",
                va="center",
                fontfamily="monospace",
                fontsize=10,
                color="white" if dark else "black",
                bbox={"boxstyle": "square,pad=0.25", "facecolor": colour, "edgecolor": "none"},
            )
    axes.set_title(_title(explanation, _what_scores_say(explanation)), loc="left", fontsize=10)
    _legend(figure, axes, name, norm)
    return figure


def _wrapped(texts: list[str]) -> list[list[tuple[int, float, float]]]:
    """Tokens in lines: (index, left, width) in inches."""
    lines: list[list[tuple[int, float, float]]] = [[]]
    left = 0.0
    for index, text in enumerate(texts):
        width = _INCH_PER_CHARACTER * max(len(text), 1) + 0.14
        if left + width > _LINE_INCHES and lines[-1]:
            lines.append([])
            left = 0.0
        lines[-1].append((index, left, width))
        left += width
    return lines


def _legend(figure: Figure, axes: Axes, name: str, norm: Normalize) -> None:
    from matplotlib.cm import ScalarMappable

    bar = figure.colorbar(
        ScalarMappable(norm, colormaps[name]), ax=axes, orientation="horizontal", aspect=40
    )
    bar.ax.tick_params(labelsize=8)


def _map(explanation: Explanation, *, layer: int = -1, how: str = "rollout") -> Figure:
    values = explanation.aggregate(how, layer)
    tokens = [_plain(token.text) for token in explanation.tokens]
    side = min(12.0, 2.0 + 0.22 * len(tokens))
    figure = Figure(figsize=(side + 0.8, side), layout="constrained")
    axes = figure.subplots()
    name, norm = _scale(values)
    image = axes.imshow(values, cmap=name, norm=norm, interpolation="nearest")
    _token_ticks(axes, tokens, "x")
    _token_ticks(axes, tokens, "y")
    axes.set_xlabel("source")
    axes.set_ylabel("target")
    number = layer % len(explanation.maps) if explanation.maps is not None else layer
    what = {"rollout": "input to layer", "layer": "layer", "sum": "sum up to layer"}[how]
    axes.set_title(_title(explanation, f"{what} {number}"), fontsize=10)
    figure.colorbar(image, ax=axes, shrink=0.8)
    return figure


def _layers(explanation: Explanation, *, how: str = "rollout") -> Figure:
    if explanation.layer_scores is not None:
        rows = explanation.layer_scores
        what = _what_scores_say(explanation)
    elif explanation.maps is not None:
        count = len(explanation.maps)
        rows = np.stack(
            [explanation.aggregate(how, layer)[explanation.focus] for layer in range(count)]
        )
        what = f"what went into {explanation.tokens[explanation.focus]}, layer by layer"
    else:
        raise UnsupportedMethodError(
            f"{explanation.method} gives one score for each token and nothing per layer; "
            'use kind="text".'
        )
    tokens = [_plain(token.text) for token in explanation.tokens]
    size = (min(14.0, 2.0 + 0.3 * len(tokens)), 1.6 + 0.25 * len(rows))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    name, norm = _scale(rows)
    image = axes.imshow(
        rows, cmap=name, norm=norm, aspect="auto", origin="lower", interpolation="nearest"
    )
    _token_ticks(axes, tokens, "x")
    axes.set_ylabel("layer")
    axes.set_title(_title(explanation, what), fontsize=10)
    figure.colorbar(image, ax=axes)
    return figure


def _token_ticks(axes: Axes, tokens: list[str], axis: str) -> None:
    """Every token named while they can be read, then every few."""
    step = max(1, len(tokens) // 64)
    places = list(range(0, len(tokens), step))
    labels = [tokens[place] for place in places]
    if axis == "x":
        axes.set_xticks(places, labels, rotation=90, fontsize=8)
    else:
        axes.set_yticks(places, labels, fontsize=8)
