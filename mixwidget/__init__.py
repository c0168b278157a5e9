"""mixwidget: see how a transformer mixes information between its tokens."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import demo as demo
    from . import metrics as metrics
    from .blocks.spec import BlockSpec as BlockSpec
    from .engine.ratios import mixing_ratios as mixing_ratios
    from .engine.verbs import explain as explain
    from .engine.verbs import stream as stream
    from .evaluation import benchmark as benchmark
    from .explanation.record import Explanation as Explanation
    from .explanation.record import Part as Part
    from .methods.catalogue import methods as methods
    from .methods.head_masks import HeadMasks as HeadMasks
    from .methods.head_masks import head_masks as head_masks
    from .models.families import register_family as register_family
    from .plots.metrics import plot_agreement as plot_agreement
    from .plots.metrics import plot_curves as plot_curves
    from .plots.metrics import plot_layers as plot_layers
    from .widget.mixview import MixView as MixView

# Public names and where they live. They are imported when first used, so that
# `import mixwidget` stays light: torch and transformers come with the first model.
_PUBLIC = {
    "BlockSpec": ".blocks.spec",
    "Explanation": ".explanation.record",
    "MixView": ".widget.mixview",
    "Part": ".explanation.record",
    "HeadMasks": ".methods.head_masks",
    "benchmark": ".evaluation",
    "explain": ".engine.verbs",
    "mixing_ratios": ".engine.ratios",
    "head_masks": ".methods.head_masks",
    "plot_agreement": ".plots.metrics",
    "plot_curves": ".plots.metrics",
    "plot_layers": ".plots.metrics",
    "register_family": ".models.families",
    "stream": ".engine.verbs",
}

__all__ = [
    *_PUBLIC,
    "demo",
    "methods",
    "metrics",
]


def __getattr__(name: str) -> Any:
    if name in ("demo", "methods", "metrics"):  # packages; `methods` can be called
        return import_module(f".{name}", __name__)
    if name in _PUBLIC:
        value = getattr(import_module(_PUBLIC[name], __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
