"""What is shown, as a file: a page, a picture, numbers."""

from .export import exported, format_of
from .page import finished_results, make_page, measured, page_of

__all__ = ["exported", "finished_results", "format_of", "make_page", "measured", "page_of"]
