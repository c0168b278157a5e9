"""mixwidget: see how a transformer mixes information between its tokens."""

__version__ = "0.1.0"
