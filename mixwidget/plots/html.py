"""An explanation in a notebook's cell: one line of claim and the coloured text, no scripts."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import to_hex

from . import words
from .colours import ACCENT, LINE, MUTED, TEXT, row_scale
from .units import Unit, lay_out

if TYPE_CHECKING:
    from ..explanation import Explanation
    from .colours import Scale

_MOST = 600  # tokens: a book in a cell helps nobody


def html_of(explanation: Explanation) -> str:
    """Tokens on the colours of their scores; the text, the labels and the tokens are no markup."""
    layout = lay_out(explanation)
    sink = explanation.sink
    kept = np.delete(explanation.scores, sink.positions)
    scale = row_scale(kept, words.signed(explanation))
    shown = [
        _span(
            unit,
            float(explanation.scores[number]),
            scale,
            number == layout.focus,
            number in sink.positions,
        )
        for number, unit in enumerate(layout.units[:_MOST])
    ]
    left = len(layout.units) - _MOST
    more = f" … and {left} more tokens" if left > 0 else ""
    claim = f"<b>{escape(words.name(explanation))}</b>: {escape(words.score_meaning(explanation))}"
    claim += f" ({escape(words.aside(sink))})" if sink else ""
    return (
        f'<div style="background:#fff;color:{TEXT};padding:4px 6px">'
        f'<div style="font-size:90%;margin-bottom:4px">{claim}</div>'
        f'<div style="line-height:1.9">{"".join(shown).lstrip()}{more}</div></div>'
    )


def _span(unit: Unit, score: float, scale: Scale, focus: bool, aside: bool) -> str:
    edge = ACCENT if focus else MUTED if aside else LINE if unit.special else "transparent"
    shade = 0.0 if aside else score
    style = (
        f"background:{to_hex(scale.colour(shade))};color:{scale.ink(shade)};"
        f"border:1px {'dashed' if aside else 'solid'} {edge};border-radius:2px;padding:0 2px"
    )
    gap = "" if unit.glued else " "
    return f'{gap}<span style="{style}" title="{score:.4g}">{escape(unit.text)}</span>'
