"""mixwidget: see how a transformer mixes information between its tokens."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import demo as demo
    from . import metrics as metrics
    from .blocks import BlockSpec as BlockSpec
    from .engine import explain as explain
    from .engine import explain_frame as explain_frame
    from .engine import mixing_ratios as mixing_ratios
    from .engine import stream as stream
    from .evaluation import Study as Study
    from .evaluation import benchmark as benchmark
    from .evaluation import study as study
    from .explanation import Explanation as Explanation
    from .explanation import Failure as Failure
    from .explanation import Part as Part
    from .methods import HeadMasks as HeadMasks
    from .methods import head_masks as head_masks
    from .methods import methods as methods
    from .models import register_family as register_family
    from .plots import plot_agreement as plot_agreement
    from .plots import plot_curves as plot_curves
    from .plots import plot_layers as plot_layers
    from .widget import MixView as MixView

# Public names and where they live. They are imported when first used, so that
# `import mixwidget` stays light: torch and transformers come with the first model.
_PUBLIC = {
    "BlockSpec": ".blocks",
    "Explanation": ".explanation",
    "Failure": ".explanation",
    "MixView": ".widget",
    "Part": ".explanation",
    "HeadMasks": ".methods",
    "benchmark": ".evaluation",
    "explain": ".engine",
    "explain_frame": ".engine",
    "mixing_ratios": ".engine",
    "head_masks": ".methods",
    "plot_agreement": ".plots",
    "plot_curves": ".plots",
    "plot_layers": ".plots",
    "register_family": ".models",
    "stream": ".engine",
    "Study": ".evaluation",
    "study": ".evaluation",
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
