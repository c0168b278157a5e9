"""The worker's side of the widget; knows no widget."""

from . import describe
from .describe import EMPTY_MODEL, plain
from .inbox import Wish
from .opening import find_opener
from .results import Result, text_array
from .session import CACHE_BYTES, Session
from .shown import Shown
from .telling import logger

__all__ = [
    "CACHE_BYTES",
    "EMPTY_MODEL",
    "Result",
    "Session",
    "Shown",
    "Wish",
    "describe",
    "find_opener",
    "logger",
    "plain",
    "text_array",
]
