"""What is shown, as a file of it needs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..explanation import Explanation
    from ..models import Case
    from .results import Result


@dataclass(frozen=True)
class Shown:
    """All that is finished for one text.

    Attributes:
        results: of every method that was computed for it, asked for or not; the one in front first.
        explanations: of the methods that are asked for, by id.
        aimed: of all results, read where the answer is read and with its target.
        faithfulness: what was measured and told last, if it is about what is shown.
    """

    case: Case
    results: list[Result]
    explanations: dict[str, Explanation]
    aimed: dict[str, Explanation]
    faithfulness: list[dict[str, Any]]
