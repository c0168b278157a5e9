"""The verbs: from a text to an explanation."""

from .ratios import mixing_ratios
from .verbs import assemble, explain, parts, prepare, start, stream

__all__ = ["assemble", "explain", "mixing_ratios", "parts", "prepare", "start", "stream"]
