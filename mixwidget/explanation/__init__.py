"""What comes out, as values without torch."""

from .answer import Answer
from .combine import Combine, Rolling, normalise_rows, rollout_rows, rollout_rows_by_layer
from .failure import Failure
from .flow import Routes, check_cost, flow_rows, flow_seconds
from .naming import named
from .readings import alike, shared_words
from .record import Explanation, Part
from .serial import dumps
from .units import REST, Unit, place_of, units_of
from .value import Sink, WordScore, plain_text, shortened, sink_of, word_scores

__all__ = [
    "REST",
    "Answer",
    "Combine",
    "Explanation",
    "Failure",
    "Part",
    "Rolling",
    "Routes",
    "Sink",
    "Unit",
    "WordScore",
    "alike",
    "check_cost",
    "dumps",
    "flow_rows",
    "flow_seconds",
    "named",
    "normalise_rows",
    "place_of",
    "plain_text",
    "rollout_rows",
    "rollout_rows_by_layer",
    "shared_words",
    "shortened",
    "sink_of",
    "units_of",
    "word_scores",
]
