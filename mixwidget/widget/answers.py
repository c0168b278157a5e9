"""The controls of an answer: what a language model says, and which of its tokens is asked about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import traitlets
from traitlets import TraitError, validate

from ..errors import InputError
from ..session import EMPTY_REPLY, describe
from ..tokens import check_text
from .checks import Control, checked, one_of, whole_number

if TYPE_CHECKING:
    from ..models import Case

SHADES = ("probability", "dependence")
MOST_WRITTEN = 256

# Of another of these, what was chosen of the answer before is not asked about.
OTHER_ANSWER = ("text", "answer", "step")


class OfAnswers(traitlets.HasTraits):
    """An answer and its tokens. See docs/architecture.md."""

    answer = Control(None, help="What a language model says; True: what it writes.").tag(sync=True)
    step = Control(None, help="The answer's token that is asked about; None: all.").tag(sync=True)
    max_new_tokens = Control(64, help="Most tokens that are written.").tag(sync=True)
    shade = Control("probability", help=f"Of the answer: {', '.join(SHADES)}.").tag(sync=True)

    def _known_answer(self) -> int | None:
        """How many tokens the answer has; None while that is not known."""
        return None

    # What they need to know.

    def _known_case(self) -> Case | None:
        return None

    def _known_models(self) -> list[str]:
        """What the models are called; nothing where there is one."""
        return []

    @validate("answer")
    @checked
    def _check_answer(self, value: Any) -> Any:
        value = describe.plain(value)
        if value is None or value is False:
            return None
        ids = isinstance(value, list) and len(value) > 0
        if ids and all(isinstance(id, int) and not isinstance(id, bool) for id in value):
            return value
        if not isinstance(value, str | bool):
            raise TraitError(
                f"answer is {value!r}; it can be a text, token ids, True for what the model "
                "writes, or None."
            )
        if isinstance(value, str):
            check_text(value, "answer")
        if self._known_models():
            raise TraitError("An answer is explained for one model: MixView(model, text).")
        return value

    @validate("step")
    @checked
    def _check_step(self, value: Any) -> int | None:
        if value is None:
            return None
        number, count = whole_number(value, "step"), self._known_answer()
        if count is None:
            return number
        if not -count <= number < count:
            have = f"has tokens 0 to {count - 1}" if count else "is not there: set answer first"
            raise TraitError(f"step is {number}, but the answer {have}.")
        return number % count

    @validate("max_new_tokens")
    @checked
    def _check_max_new_tokens(self, value: Any) -> int:
        number = whole_number(value, "max_new_tokens")
        if not 1 <= number <= MOST_WRITTEN:
            raise TraitError(f"max_new_tokens is {number}; it can be 1 to {MOST_WRITTEN}.")
        return number

    @validate("shade")
    @checked
    def _check_shade(self, value: Any) -> str:
        return one_of(value, SHADES, "shade")


def opens_answer(text: Any, controls: dict[str, Any], names: Sequence[str]) -> bool:
    """Whether a view begins with the answer: of a chat, and where an answer is asked about."""
    if isinstance(text, str) and controls.get("answer") in (None, False):
        return False
    if names:
        raise InputError("Chats and answers are shown of one model: MixView(model, text).")
    return True


class Answered(OfAnswers):
    """What is told of the answer."""

    reply = traitlets.Dict(dict(EMPTY_REPLY), read_only=True).tag(sync=True)
    _chosen_focus: int | None
    _session: Any

    def _known_case(self) -> Case | None:
        session = getattr(self, "_session", None)
        return None if session is None else session.case

    def _known_answer(self) -> int | None:
        return len(self.reply["tokens"]) if self._known_case() is not None else None

    def _asked_of_answer(self) -> dict[str, Any]:
        """Fields of a wish."""
        return {
            "answer": self.answer,
            "longest": self.max_new_tokens,
            "step": self.step,
            "shade": self.shade,
        }

    def _of_another_answer(self, name: str) -> None:
        """What was chosen in an answer is not in another."""
        if name not in OTHER_ANSWER or not self.reply["state"]:
            return
        self._chosen_focus = None
        for own in ("step", "target"):
            if own != name and getattr(self, own) is not None:
                setattr(self, own, None)
