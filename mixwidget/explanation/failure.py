"""What stands in the place of an explanation that could not be made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .value import shortened


@dataclass(frozen=True)
class Failure:
    """A text of many that could not be explained; it has no `scores`.

    Attributes:
        index: its number among the texts, from 0.
        text: as it was given.
        error: what went wrong.
        id: as in `Explanation`: its number, or its label in a Series.
    """

    index: int
    text: Any
    error: Exception
    id: Any = None

    def __repr__(self) -> str:
        text = shortened(str(self.text), 40)
        reason = shortened(f"{type(self.error).__name__}: {self.error}", 120)
        return f"<Failure {self.index}: {text!r}, {reason}>"
