"""An explanation in a notebook's cell: one line of claim and the coloured text, no scripts."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from matplotlib.colors import to_hex

from . import words
from .colours import ACCENT, LINE, TEXT, row_scale
from .units import Unit, lay_out

if TYPE_CHECKING:
    from ..explanation import Explanation
    from .colours import Scale

_MOST = 600  # tokens: a book in a cell helps nobody


def html_of(explanation: Explanation) -> str:
    """Tokens on the colours of their scores; the text, the labels and the tokens are no markup."""
    layout = lay_out(explanation)
    scale = row_scale(explanation.scores, words.signed(explanation))
    shown = [
        _span(unit, float(explanation.scores[number]), scale, number == layout.focus)
        for number, unit in enumerate(layout.units[:_MOST])
    ]
    left = len(layout.units) - _MOST
    more = f" … and {left} more tokens" if left > 0 else ""
    claim = f"<b>{escape(words.name(explanation))}</b>: {escape(words.score_meaning(explanation))}"
    return (
        f'<div style="background:#fff;color:{TEXT};padding:4px 6px">'
        f'<div style="font-size:90%;margin-bottom:4px">{claim}</div>'
        f'<div style="line-height:1.9">{"".join(shown).lstrip()}{more}</div></div>'
    )


def _span(unit: Unit, score: float, scale: Scale, focus: bool) -> str:
    edge = ACCENT if focus else LINE if unit.special else "transparent"
    style = (
        f"background:{to_hex(scale.colour(score))};color:{scale.ink(score)};"
        f"border:1px solid {edge};border-radius:2px;padding:0 2px"
    )
    gap = "" if unit.glued else " "
    return f'{gap}<span style="{style}" title="{score:.4g}">{escape(unit.text)}</span>'
