"""The verbs: from a text to an explanation."""

from .explaining import explain
from .frames import explain_frame
from .ratios import mixing_ratios
from .verbs import assemble, explain_case, parts, prepare, start, stream

__all__ = [
    "assemble",
    "explain",
    "explain_case",
    "explain_frame",
    "mixing_ratios",
    "parts",
    "prepare",
    "start",
    "stream",
]
