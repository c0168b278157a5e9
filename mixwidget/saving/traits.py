"""What a view would show of explanations that were made without one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..session import describe, reply_of

if TYPE_CHECKING:
    from ..explanation import Explanation
    from ..models import Case


def traits_of(case: Case, explanations: list[Explanation]) -> dict[str, Any]:
    """Traits as a view would have them, for explanations made without one."""
    from ..models import resolve_target

    first, *others = explanations
    reply, output = reply_of(case), case.trace().output
    whole = case.encoding.answer is not None
    predicted = (
        first.target
        if whole
        else resolve_target(None, case.source, case.encoding, output, first.focus)
    )
    answer = describe.read_at(case, first.target)
    info = describe.model_info(case, predicted, first.focus, answer, case.known_errors())
    return {
        "text": case.encoding.text,
        "text_pair": case.encoding.text_pair or "",
        "method": first.method,
        "compared": [one.method for one in others][:4],
        "params": {one.method: one.params for one in explanations},
        "focus": first.focus,
        "target": None if first.target.index == predicted.index else first.target.index,
        "layer": info["layers"] - 1,
        "model_info": info,
        "tokens": describe.tokens(case.encoding),
        "reply": reply,
        **({"view": "answer"} if reply["state"] else {}),
        "catalogue": describe.catalogue(case, predicted),
    }
