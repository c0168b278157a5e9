"""What is shown, as a file of it needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import MixwidgetError

if TYPE_CHECKING:
    from ..explanation import Explanation
    from ..models import Case
    from .results import Result
    from .work import Worker


@dataclass(frozen=True)
class Shown:
    """All that is finished for one text.

    Attributes:
        results: of every method that was computed for it, asked for or not; the one in front first.
        explanations: of the methods that are asked for, by id.
        aimed: of all results, read where the answer is read and with its target.
        faithfulness: what was measured and told last, if it is about what is shown.
        beside: the same of other models, by their place in `names`.
    """

    case: Case
    results: list[Result]
    explanations: dict[str, Explanation]
    aimed: dict[str, Explanation]
    faithfulness: list[dict[str, Any]]
    beside: Mapping[int, Shown] = field(default_factory=dict)
    names: tuple[str, ...] = ()

    def everything(self) -> dict[str, Explanation]:
        """The explanations that are asked for, of all models."""
        found = dict(self.explanations)
        for place, other in self.beside.items():
            found |= {f"{id}, {self.names[place]}": one for id, one in other.explanations.items()}
        return found


def shown(worker: Worker) -> Shown:
    """What a worker has finished for the shown text."""
    plan = worker.plan
    if plan is None or worker.stale():
        raise MixwidgetError("There is nothing to save yet: wait until it is computed.")
    results = plan.results(worker.finished)
    row, target = plan.answer, plan.target_at(plan.answer)
    here = [one for one in results if one.follows_focus or plan.focus == row]
    found = {result.method.id: result.at(row, target) for result in here}
    aimed = {id: plan.aimed(one) for id, one in found.items() if one is not None}
    return Shown(
        plan.case, results, plan.ready(worker.cache.get), aimed, worker.measuring.known(plan)
    )
