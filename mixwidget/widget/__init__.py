"""`MixView`, its controls and its still picture."""

from .mixview import MixView

__all__ = ["MixView"]
