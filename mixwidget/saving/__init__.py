"""What is shown, as a file: a page, a picture, numbers."""

from .export import exported, exported_view, format_of
from .page import page_of
from .tables import Table

__all__ = ["Table", "exported", "exported_view", "format_of", "page_of"]
