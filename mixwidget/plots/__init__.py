"""Explanations as matplotlib figures that look like the widget."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .canvas import Picture
from .compare import draw_compare
from .graph import draw_graph
from .heads import draw_heads, plot_head_masks
from .html import html_of
from .maps import draw_layers, draw_map, draw_multiples
from .metrics import plot_agreement, plot_band, plot_curves, plot_grid, plot_layers
from .text import draw_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..explanation import Explanation


__all__ = [
    "KINDS",
    "Picture",
    "html_of",
    "plot_agreement",
    "plot_band",
    "plot_curves",
    "plot_explanation",
    "plot_grid",
    "plot_head_masks",
    "plot_layers",
]

_DRAW: dict[str, Callable[..., Figure]] = {
    "text": draw_text,
    "map": draw_map,
    "layers": draw_layers,
    "graph": draw_graph,
    "multiples": draw_multiples,
    "compare": draw_compare,
    "heads": draw_heads,
}
# Of every method with maps; heads are of those that say something of heads.
KINDS = tuple(kind for kind in _DRAW if kind != "heads")


def plot_explanation(explanation: Explanation, kind: str | None = None, **options: Any) -> Figure:
    """Draw an explanation. `kind` is what is drawn:

    - `text`: the input's tokens, shaded by their scores (the default)
    - `map`: one map, row = target token, column = source token
    - `layers`: layers up, tokens across: how the scores of the focus token form
    - `graph`: tokens across, layers up, edges as strong as the contributions
    - `multiples`: a small map for each layer; with `others`, a row for each method
    - `compare`: several explanations of one text, and their signed difference to this one
    - `heads`: a row for each head: what it scores (`logit`), or attends to (`raw_attention`)

    Options of every kind are

    - `special`: False hides special tokens; unsigned values of the rest are scaled up.
    - `unit`: "words" merges subwords: what they give is added, what they take averaged.
    - `colours`: scale of unsigned values: "blues", "greys", "viridis" or "cividis".
    - `title`: a heading of your own; "" for none.

    Options of some kinds are

    - `ax` (map, layers, graph, heads): axes of your own to draw in; no others are made but those
      of the scale.
    - `layer` (text, map, compare, heads): up to which layer, or which layer; the last by default.
    - `how` (text, map, layers, multiples, compare): "rollout" (from the input up to the layer),
      "layer" (that layer alone) or "sum". Text and compare show the method's own scores
      unless `how` or `layer` is given.
    - `threshold` (graph): edges weaker than this share of the strongest between two tokens of
      their layer are left out.
    - `top_k` (graph): keep this many edges of each token instead.
    - `trace` (graph): (layer, token): only what reaches this token, each edge as strong as the
      share that passes there. True traces the focus token from the last layer.
    - `fold` (graph): above so many columns those that carry least are folded together.
    - `total` (layers): whether methods with scores per layer get a row for their sum.
    - `darkest` (text, map, layers, multiples, heads): the value that takes the strongest colour;
      larger ones share it.
    - `others` (multiples, compare): further explanations of the same text.
    - `names` (multiples, compare): what to call this one and the others.
    - `of` (compare): "text", or "map" where all methods have maps.
    - `difference` (compare): False leaves the differences out.
    """
    kind = kind or "text"
    if kind not in _DRAW:
        raise InputError(f"kind is {kind!r}; it can be {', '.join(_DRAW)}.")
    draw = _DRAW[kind]
    known = list(draw.__kwdefaults__ or {})
    for name in options:
        if name not in known:
            raise InputError(
                f"The {kind} plot has no option {name!r}. Its options: {', '.join(known)}."
            )
    return draw(explanation, **options)
