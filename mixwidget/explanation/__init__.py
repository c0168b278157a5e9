"""What comes out, as values without torch."""

from .combine import Combine, Rolling, normalise_rows
from .failure import Failure
from .flow import check_cost, flow_rows, flow_seconds
from .record import Explanation, Part
from .serial import dumps
from .value import WordScore, shortened

__all__ = [
    "Combine",
    "Explanation",
    "Failure",
    "Part",
    "Rolling",
    "WordScore",
    "check_cost",
    "dumps",
    "flow_rows",
    "flow_seconds",
    "normalise_rows",
    "shortened",
]
