"""What measuring a text costs, counted before it is begun: tokens times parameters."""

from __future__ import annotations

from typing import Any

from .evidence import Evidence

# A parameter's work for a token, so many in a second: two cores of a laptop.
_RATE = 2e10


class Cost:
    """Of passes over edited texts of one case."""

    def __init__(self, shared: Evidence) -> None:
        self._shared, self._parameters = shared, weighing(shared.case.source.model)

    def seconds(self, tokens: float) -> float:
        """For so many tokens, on any machine the same."""
        return tokens * self._parameters / _RATE

    def count(self, seconds: float) -> float:
        """The tokens of so many seconds."""
        return seconds * _RATE / self._parameters

    def told(self, tokens: float) -> float:
        """About how long so many tokens take here, from the passes that were made so far."""
        known = self._shared.tokens
        each = self._shared.seconds / known if known else self.seconds(1)
        return float(f"{tokens * each:.2g}")


def weighing(model: Any) -> int:
    """The parameters that work for every token: not the tables of embeddings, of which one row
    is read, nor a language model's head, which is asked at one place."""
    tables = [getattr(model, f"get_{side}_embeddings", lambda: None)() for side in _SIDES]
    spared = {id(p) for table in tables if table is not None for p in table.parameters()}
    return max(1, sum(p.numel() for p in model.parameters() if id(p) not in spared))


_SIDES = ("input", "output")
