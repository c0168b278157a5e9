"""Many texts in the forms people have them, one after the other with what is asked of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from itertools import count, repeat
from typing import Any

from ..errors import InputError
from ..models import is_chat

_FORMS = (
    "Several texts may be a list, a tuple, a Series, an array, a generator or a column of a dataset"
)


@dataclass(frozen=True)
class Asked:
    """One text of many.

    Attributes:
        index: its number.
        id: its number, or its label in a Series.
    """

    index: int
    id: Any
    text: Any
    text_pair: Any = None
    target: Any = None


def is_many(text: Any) -> bool:
    """Whether these are several texts; what is neither one nor several is refused in words."""
    if isinstance(text, str | bytes | Mapping) or not isinstance(text, Iterable) or is_chat(text):
        return False
    if isinstance(text, list | tuple) and any(isinstance(one, Mapping) for one in text):
        first = next(i for i, one in enumerate(text) if not isinstance(one, Mapping) or
                     "role" not in one)  # fmt: skip
        raise InputError(f"Message {first} has no role; give each a role and a content.")
    if hasattr(text, "columns") or hasattr(text, "column_names"):
        known = getattr(text, "column_names", None) or getattr(text, "columns", [])
        raise InputError(
            f"text is a table with the columns {', '.join(map(str, known))}. Pass one of them "
            '(data["text"]), or use explain_frame.'
        )
    if isinstance(text, set | frozenset):
        raise InputError(f"text is a set, which has no order. {_FORMS}.")
    if getattr(text, "ndim", 1) != 1:
        raise InputError(f"text has {getattr(text, 'ndim', 0)} dimensions, not one. {_FORMS}.")
    return True


def for_one(**given: Any) -> None:
    """Refuse what has a value for each of several texts where there is one."""
    for name, value in given.items():
        if value is not None:
            raise InputError(f"{name} is for several texts; for one pass {name[:-1]}=...")


def count_of(texts: Any) -> int | None:
    return len(texts) if isinstance(texts, Sized) else None


def asked(texts: Any, text_pairs: Any, target: Any, targets: Any) -> Iterator[Asked]:
    """The texts with their pairs and targets, taken as they are needed. Checked at the call."""
    _check_target(target, targets)
    pairs = repeat(text_pairs) if text_pairs is None or isinstance(text_pairs, str) else text_pairs
    wanted = repeat(target) if targets is None else targets
    for name, values in (("text_pairs", pairs), ("targets", wanted)):
        if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
            raise InputError(f"{name} is {type(values).__name__}; give one for each text.")
        given, needed = count_of(values), count_of(texts)
        if given is not None and needed is not None and given != needed:
            raise InputError(f"There are {needed} texts but {given} {name}.")
    labels = getattr(texts, "index", None)  # a Series'; lists and tuples have a method
    ids = count() if labels is None or callable(labels) else iter(labels)
    return _one_by_one(texts, ids, pairs, wanted)


def _check_target(target: Any, targets: Any) -> None:
    if target is not None and targets is not None:
        raise InputError("target is one for all texts and targets one for each: give one of them.")
    if isinstance(target, list) or (hasattr(target, "__len__") and hasattr(target, "dtype")):
        raise InputError(
            f"target is a list of {len(target)} for several texts. For one target for each text "
            "pass targets=[...]; for a contrast in all of them a tuple: target=(for, against)."
        )


def _one_by_one(
    texts: Iterable[Any], ids: Iterator[Any], pairs: Iterable[Any], targets: Iterable[Any]
) -> Iterator[Asked]:
    others, wanted = iter(pairs), iter(targets)
    number = -1
    for number, text in enumerate(texts):
        try:
            pair, target = next(others), next(wanted)
        except StopIteration:
            raise InputError(
                f"There are more texts than text_pairs or targets: none is left for text {number}."
            ) from None
        yield Asked(number, _plain(next(ids)), _plain(text), _plain(pair), _plain(target))
    for name, values, given in (("text_pairs", others, pairs), ("targets", wanted, targets)):
        if not isinstance(given, repeat) and next(values, values) is not values:
            raise InputError(f"There are {number + 1} texts, but more {name}.")


def _plain(value: Any) -> Any:
    """Texts and numbers of numpy as Python's; what a Series holds for nothing is None."""
    if hasattr(value, "dtype") and hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    return None if isinstance(value, float) and value != value else value
