"""`MixView`, its controls and its still picture."""

from ..errors import MissingExtraError

try:
    from .mixview import MixView
except ModuleNotFoundError as error:
    if error.name not in ("anywidget", "ipywidgets", "traitlets"):
        raise
    raise MissingExtraError(
        f"MixView needs {error.name}, which is not installed: pip install anywidget ipywidgets. "
        "Without it explain(...).plot() draws the same pictures."
    ) from error

__all__ = ["MixView"]
