"""How the values of controls are checked. A wrong one raises `traitlets.TraitError`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import traitlets
from traitlets import TraitError

from ..errors import MixwidgetError
from ..session import describe
from ..tokens import check_text

Proposal = dict[str, Any]


def checked(check: Callable[[Any, Any], Any]) -> Callable[[Any, Proposal], Any]:
    """A validator of the value alone, whose typed errors become TraitErrors."""

    @wraps(check)
    def validator(self: Any, proposal: Proposal) -> Any:
        try:
            return check(self, proposal["value"])
        except MixwidgetError as error:
            raise TraitError(str(error)) from error

    return validator


def whole_number(value: Any, name: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TraitError(f"{name} must be a whole number, not {value!r}.")
    return int(value.__index__())


def one_of(value: Any, allowed: tuple[str, ...], name: str) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise TraitError(f"{name} is {value!r}; it can be {', '.join(allowed)}.")
    return value


class Control(traitlets.Any):
    """A trait whose check sees None too, which traitlets would let pass."""

    def _validate(self, obj: Any, value: Any) -> Any:
        return value if obj._cross_validation_lock else self._cross_validate(obj, value)


def target_value(value: Any) -> Any:
    """A target as it is synced: None, a number, a name, or a list of two of them."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        if len(value) != 2:
            raise TraitError("target may be a pair: (start, end), or (for, against).")
        return [target_value(part) for part in value]
    return whole_number(value, "target")


def text_value(value: Any) -> str | list[dict[str, Any]]:
    """A text, or a chat with contents that are text."""
    if isinstance(value, list | tuple) and value:
        from ..models import is_chat, messages_of

        if is_chat(value):
            chat: list[dict[str, Any]] = describe.plain(messages_of(value))
            return chat
    check_text(value, "text")
    return str(value)
