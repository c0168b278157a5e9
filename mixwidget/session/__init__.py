"""The worker's side of the widget; knows no widget."""

from . import describe
from .answering import EMPTY_REPLY, reply_of
from .describe import EMPTY_MODEL, plain
from .inbox import Wish
from .opening import find_openers
from .results import Result, text_array
from .session import CACHE_BYTES, Session
from .several import Several, open_session
from .shown import Shown
from .telling import logger

__all__ = [
    "CACHE_BYTES",
    "EMPTY_MODEL",
    "EMPTY_REPLY",
    "Result",
    "Session",
    "Several",
    "Shown",
    "Wish",
    "describe",
    "find_openers",
    "logger",
    "open_session",
    "plain",
    "reply_of",
    "text_array",
]
