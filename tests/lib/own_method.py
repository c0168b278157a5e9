"""A module with a method of one's own, as a user's package has it."""

from __future__ import annotations

from typing import Any

from mixwidget.methods.registry import method


@method("from_a_module")
def from_a_module(run: Any) -> Any:
    """The mean of the heads, from a module."""
    for layer in run.layers():
        yield run.part(layer, map=run.trace.weights(layer).mean(0))
