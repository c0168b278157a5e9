"""A sheet to draw on, in inches from its top left corner, and text as it is."""

from __future__ import annotations

import io
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure

from .colours import LINE, MUTED, TEXT, Scale

SIZE = 9.0  # points
LINE_HEIGHT = 0.175
MARGIN = 0.12
LEGEND_HEIGHT = 0.42
_DPI = 110
_BAR_HEIGHT = 0.11
# Text of users is never read as a formula, whatever the user's settings are.
_PLAIN: dict[str, Any] = {"parse_math": False, "usetex": False}
_FAMILIES = (
    *("DejaVu Sans", "Noto Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC"),
    *("WenQuanYi Micro Hei", "PingFang SC", "Hiragino Sans", "Apple SD Gothic Neo"),
    *("Microsoft YaHei", "Yu Gothic", "Malgun Gothic", "Arial Unicode MS", "Noto Sans Arabic"),
    *("Noto Sans Hebrew", "Noto Sans Devanagari", "Nirmala UI", "Noto Emoji", "Segoe UI Emoji"),
    *("Symbola", "Segoe UI Symbol", "Noto Sans Symbols2"),
)
_UNKNOWN = "□"
_JOINERS = "\u200d\ufe0e\ufe0f"
_RENDERER = RendererAgg(1, 1, 72)


class Picture(Figure):
    """A matplotlib Figure that notebooks show as it is, whether or not pyplot is imported."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        FigureCanvasAgg(self).print_figure(buffer, format="png", dpi=_DPI)
        return buffer.getvalue()


@lru_cache(maxsize=1)
def families() -> tuple[str, ...]:
    """Installed fonts, best first, that between them cover the common scripts."""
    installed = {font.name for font in font_manager.fontManager.ttflist}
    return tuple(name for name in _FAMILIES if name in installed) or ("sans-serif",)


@lru_cache(maxsize=1)
def _covered() -> tuple[frozenset[int], ...]:
    paths = [font_manager.findfont(name) for name in families()]
    return tuple(frozenset(font_manager.get_font(path).get_charmap()) for path in paths)


def drawable(text: str) -> str:
    """The text with a box for every character that no installed font has."""
    return "".join(
        c if c.isascii() or any(ord(c) in font for font in _covered()) else _UNKNOWN
        for c in text
        if c not in _JOINERS
    )


def font(size: float = SIZE, **more: Any) -> dict[str, Any]:
    """Text properties for anything that may hold a user's text."""
    return {"fontfamily": list(families()), "fontsize": size, "color": TEXT, **_PLAIN, **more}


@lru_cache(maxsize=8192)
def width_of(text: str, size: float = SIZE) -> float:
    """Inches that a text takes."""
    properties = font_manager.FontProperties(family=list(families()), size=size)
    width, _, _ = _RENDERER.get_text_width_height_descent(text, properties, ismath=False)
    return float(width) / 72


def widest(texts: Iterable[str], size: float = SIZE) -> float:
    return max((width_of(drawable(text), size) for text in texts), default=0.0)


def clipped(text: str, room: float, size: float = SIZE) -> str:
    """The text, shortened to some inches."""
    text = drawable(text)
    while len(text) > 2 and width_of(text, size) > room:
        text = f"{text[:-2]}…"
    return text


def wrapped(text: str, room: float, size: float = SIZE) -> list[str]:
    """The text in lines of at most some inches."""
    lines = [""]
    for word in drawable(text).split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if lines[-1] and width_of(longer, size) > room:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


class Heading:
    """A method's name and, below it, what is shown in words; or a title of the caller's own."""

    def __init__(self, name: str, meaning: str, room: float, own: str | None) -> None:
        self.first = "" if own is not None else drawable(name)
        told = meaning if own is None else own
        self.lines = [line for part in told.splitlines() for line in wrapped(part, room)]

    @property
    def height(self) -> float:
        count = bool(self.first) + len(self.lines)
        return LINE_HEIGHT * count + 0.1 if count else 0.0


class Sheet:
    """A figure of a fixed size; places are inches from the top left corner."""

    def __init__(self, width: float, height: float, texts: Iterable[str] = ()) -> None:
        boxes = any(_UNKNOWN in drawable(text) and _UNKNOWN not in text for text in texts)
        self.width, self.height = width, height + LINE_HEIGHT * boxes
        self.figure = Picture(figsize=(self.width, self.height), facecolor="white")
        if boxes:
            words = f"{_UNKNOWN}: a character that no installed font has"
            self.say(MARGIN, height - 0.05, words, SIZE - 2, color=MUTED)

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        below = self.height - top - height
        return self.figure.add_axes(
            (left / self.width, below / self.height, width / self.width, height / self.height)
        )

    def plane(self) -> Axes:
        """The whole sheet as axes in inches, downward."""
        axes = self.axes(0, 0, self.width, self.height)
        axes.set(xlim=(0, self.width), ylim=(self.height, 0))
        axes.axis("off")
        return axes

    def say(self, left: float, top: float, text: str, size: float = SIZE, **style: Any) -> None:
        style = {"va": "top", "ha": "left", **style}
        place = (left / self.width, 1 - top / self.height)
        self.figure.text(*place, text, **font(size, **style))

    def heading(self, heading: Heading, left: float = MARGIN, top: float = MARGIN) -> None:
        if heading.first:
            self.say(left, top, heading.first, SIZE + 0.5, fontweight="bold")
            top += LINE_HEIGHT
        for line in heading.lines:
            self.say(left, top, line)
            top += LINE_HEIGHT

    def legend(
        self, scale: Scale, words: str, left: float, top: float, inches: float = 2.2
    ) -> None:
        """A bar of the scale's colours with numbers below and words beside it."""
        width, height = inches, _BAR_HEIGHT
        axes = self.axes(left, top, width, height)
        bar = self.figure.colorbar(
            ScalarMappable(scale.norm, scale.colours),
            cax=axes,
            orientation="horizontal",
            extend=scale.extend,
            extendfrac=0.04,
        )
        most = float(scale.norm.vmax or 1.0)
        ticks = [-most, 0.0, most] if scale.signed else [0.0, most / 2, most]
        names = [number(tick) for tick in ticks]
        if scale.clipped:
            names[-1] = f"≥ {names[-1]}"
            names[0] = f"≤ {names[0]}" if scale.signed else names[0]
        bar.set_ticks(ticks, labels=names)
        axes.tick_params(labelsize=SIZE - 1.5, colors=MUTED, length=2, color=LINE)
        for label in axes.get_xticklabels():
            label.set_fontfamily(list(families()))
        bar.outline.set(edgecolor=LINE, linewidth=0.6)
        left += width + 0.16
        room = self.width - left - 0.05
        words = "\n".join(clipped(line, room, SIZE - 1) for line in words.splitlines())
        self.say(left, top + height / 2, words, SIZE - 1, color=MUTED, va="center")


def number(value: float) -> str:
    """A number for a legend, three digits of it."""
    return f"{value:.3g}".replace("-", "−")
