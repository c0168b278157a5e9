"""The widget's colour scales, for matplotlib."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from matplotlib.colors import Colormap, ListedColormap, Normalize, to_rgb
from numpy.typing import NDArray

from ..errors import InputError

# Weak to strong on a light ground, and orange below zero to blue above: as in js/src/colour.ts.
_STOPS = {
    "blues": "#ffffff #d8e7f7 #a3c8ec #5f9fdb #2a74bd #0f4d92 #082f60",
    "greys": "#ffffff #e2e2e2 #bdbdbd #8f8f8f #5f5f5f #333333 #141414",
    "viridis": "#fde725 #b5de2b #6ece58 #35b779 #1f9e89 #26828e #31688e #3e4989 #482878 #440154",
    "cividis": "#fee838 #d9c55c #b0a473 #8b8778 #6c6e72 #4a546d #213b6e #00224e",
    "signed": "#7a3403 #b85a0c #e48b3d #f6c08e #fbf7f2 #a9cbee #5c9bd8 #256db5 #0c4282",
}
SCALES = tuple(name for name in _STOPS if name != "signed")
TEXT, MUTED, LINE, ACCENT, EDGE = "#1f2328", "#5b6470", "#d0d5db", "#b3470a", "#1c5fa8"
_LEVELS = 256
# How far a scale goes beyond what most values reach, as in js/src/colour.ts.
_BEYOND = 1.6
_FAINTEST = 0.1


@lru_cache
def colour_map(name: str) -> Colormap:
    """256 colours between a scale's stops, mixed in linear light."""
    stops = _linear(np.array([to_rgb(stop) for stop in _STOPS[name].split()]))
    at = np.linspace(0, len(stops) - 1, _LEVELS)
    mixed = np.stack([np.interp(at, np.arange(len(stops)), stops[:, c]) for c in range(3)], -1)
    gamma = np.where(mixed <= 0.0031308, 12.92 * mixed, 1.055 * mixed ** (1 / 2.4) - 0.055)
    return ListedColormap(gamma.clip(0, 1), name=f"mixwidget_{name}")


def _linear(colours: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)


@dataclass(frozen=True)
class Scale:
    """Colours for values: one hue from zero up, or two around zero.

    Attributes:
        clipped: some values lie beyond and share the last colour; the legend says so.
    """

    colours: Colormap
    norm: Normalize
    signed: bool
    clipped: bool = False

    @property
    def extend(self) -> str:
        """Which ends of a colour bar are open."""
        if not self.clipped:
            return "neither"
        return "both" if self.signed else "max"

    def colour(self, value: float) -> tuple[float, float, float]:
        red, green, blue, _ = self.colours(self.norm(value))
        return red, green, blue

    def ink(self, value: float) -> str:
        """Black or white, whichever reads better on the colour of the value."""
        light = float(_linear(np.array(self.colour(value))) @ (0.2126, 0.7152, 0.0722))
        return TEXT if (light + 0.05) / 0.057 >= 1.05 / (light + 0.05) else "white"


def scale_for(
    values: NDArray[np.floating],
    signed: bool,
    colours: str = "blues",
    *,
    darkest: float | None = None,
    most: float = 0.0,
) -> Scale:
    """A scale up to the largest value, or up to `darkest`.

    Where the largest lies far above `most`, the size that most values stay below, it shares the
    last colour with all that is beyond: it would leave the others blank.
    """
    if colours not in SCALES:
        raise InputError(f"colours is {colours!r}; it can be {', '.join(SCALES)}.")
    if darkest is not None and not darkest > 0:
        raise InputError(f"darkest is {darkest!r}; it must be a number above 0.")
    peak = float(_sizes(values).max(initial=0.0))
    top = peak if darkest is None else float(darkest)
    if darkest is None and 0 < _BEYOND * most < 0.98 * peak:
        top = _BEYOND * most
    top = top or 1.0
    norm = Normalize(-top if signed else 0.0, top, clip=True)
    return Scale(colour_map("signed" if signed else colours), norm, signed, peak > top * 1.0001)


def row_scale(
    values: NDArray[np.floating],
    signed: bool,
    colours: str = "blues",
    *,
    darkest: float | None = None,
) -> Scale:
    """A scale for rows [..., n]: one token far above all others of its row does not set it,
    unless next to nothing is left for the others: they stay pale then."""
    sizes = np.sort(_sizes(values), axis=-1)
    most = float(sizes[..., -2].max()) if sizes.shape[-1] > 1 else 0.0
    most = max(most, _FAINTEST * float(sizes.max()) / _BEYOND) if most > 0 else 0.0
    return scale_for(values, signed, colours, darkest=darkest, most=most)


def map_scale(
    values: NDArray[np.floating],
    signed: bool,
    colours: str = "blues",
    *,
    darkest: float | None = None,
) -> Scale:
    """A scale for maps [..., rows, n]: a diagonal, or one strong column, does not set it."""
    sizes = np.sort(_sizes(values), axis=None)
    below = max(0.0, 1 - 1.2 / max(values.shape[-1], 1))
    most = float(sizes[min(int(below * sizes.size), sizes.size - 1)]) if sizes.size else 0.0
    return scale_for(values, signed, colours, darkest=darkest, most=most)


def _sizes(values: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.where(np.isfinite(values), np.abs(values), 0.0)
