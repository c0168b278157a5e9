"""The worker's side of the widget; knows no widget."""

from .describe import EMPTY_MODEL, plain
from .inbox import Wish
from .opening import check_text, find_opener
from .plan import Plan, make_plan
from .results import Result, text_array
from .session import CACHE_BYTES, Session
from .telling import logger

__all__ = [
    "CACHE_BYTES",
    "EMPTY_MODEL",
    "Plan",
    "Result",
    "Session",
    "Wish",
    "check_text",
    "find_opener",
    "logger",
    "make_plan",
    "plain",
    "text_array",
]
