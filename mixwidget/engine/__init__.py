"""The verbs: from a text to an explanation."""

from .answers import dependence_of
from .asked import Asked
from .explaining import explain, shown
from .frames import explain_frame, token_frame
from .many import Many
from .ratios import mixing_ratios, ratios_by_layer
from .verbs import assemble, explain_case, parts, prepare, start, stream

__all__ = [
    "Asked",
    "Many",
    "assemble",
    "dependence_of",
    "explain",
    "explain_case",
    "explain_frame",
    "mixing_ratios",
    "parts",
    "prepare",
    "ratios_by_layer",
    "shown",
    "start",
    "stream",
    "token_frame",
]
