"""The controls of a `MixView`: synced traits, each with its check.

A wrong value raises `traitlets.TraitError` and changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import Any

import traitlets
from traitlets import TraitError, validate

from ..protocol import AGGREGATES
from ..session import describe
from ..tokens import check_text
from .answers import OfAnswers
from .checks import Control, checked, one_of, target_value, text_value, whole_number

VIEWS = (
    *("text", "layers", "map", "graph", "multiples", "compare", "faithfulness", "heads"),
    "answer",
)
UNITS = ("tokens", "words")
COLOURS = ("blues", "viridis", "cividis", "greys")
MOST_COMPARED = 4


def check_method(id: Any) -> str:
    """A registered id."""
    from ..methods import get_method

    return get_method(id).id


class Controls(OfAnswers):
    """What the user sets, in Python or in the browser. See docs/architecture.md."""

    text = Control("", help="The input, a text or a chat; a change runs it.").tag(sync=True)
    text_pair = Control("", help='The second text of a pair, "" for none.').tag(sync=True)
    method = Control("", help="The id of the method in front.").tag(sync=True)
    compared = Control(help="Up to four methods to compare.").tag(sync=True)
    params = Control(help="{method: {option: value}}.").tag(sync=True)
    view = Control("graph", help=f"The open tab: {', '.join(VIEWS)}.").tag(sync=True)
    layer = Control(None, help="Layer shown, from 0; negative: from the top.").tag(sync=True)
    aggregate = Control("rollout", help="One layer alone, or combined.").tag(sync=True)
    focus = Control(None, help="The token whose row is read.").tag(sync=True)
    target = Control(None, help="What is explained; None: the prediction.").tag(sync=True)
    threshold = Control(0.1, help="Edges weaker than this share are hidden.").tag(sync=True)
    top_k = Control(0, help="Edges kept per token; 0: use the threshold.").tag(sync=True)
    unit = Control("tokens", help="tokens or words.").tag(sync=True)
    special = Control(True, help="Whether special tokens are shown.").tag(sync=True)
    colours = Control("blues", help=f"Colours: {', '.join(COLOURS)}.").tag(sync=True)
    front = Control(0, help="Which of several models is in front.").tag(sync=True)
    head = Control(-1, help="The head shown; -1: the mean of all.").tag(sync=True)

    @traitlets.default("compared")
    def _no_compared(self) -> list[str]:
        return []

    @traitlets.default("params")
    def _no_params(self) -> dict[str, Any]:
        return {}

    # What the checks of layer, head, focus and target need to know; nothing while it is unknown.

    def _known_size(self) -> tuple[int, int]:
        """Layers and heads."""
        return 0, 0

    @validate("front")
    @checked
    def _check_front(self, value: Any) -> int:
        names = self._known_models()
        if isinstance(value, str) and value in names:
            return names.index(value)
        if not names:
            if value != 0:
                raise TraitError("front is for several models: MixView([m1, m2], text).")
            return 0
        number = value if isinstance(value, str) else whole_number(value, "front")
        if isinstance(number, str) or not 0 <= number < len(names):
            known = ", ".join(f"{i} ({name})" for i, name in enumerate(names))
            raise TraitError(f"front is {value!r}; it can be {known}.")
        return number

    @validate("text")
    @checked
    def _check_text(self, value: Any) -> str | list[dict[str, Any]]:
        return text_value(value)

    @validate("text_pair")
    @checked
    def _check_text_pair(self, value: Any) -> str:
        value = "" if value is None else value
        if value != "":  # no pair
            check_text(value, "text_pair")
        return str(value)

    @validate("method")
    @checked
    def _check_method(self, value: Any) -> str:
        # Reading the registry imports torch; the recommended one is named by the worker.
        return "" if value in (None, "") else check_method(value)

    @validate("compared")
    @checked
    def _check_compared(self, value: Any) -> list[str]:
        if not isinstance(value, list | tuple):
            raise TraitError(f"compared must be a list of methods, not {value!r}.")
        ids = list(dict.fromkeys(check_method(id) for id in value))
        if len(ids) > MOST_COMPARED:
            raise TraitError(f"At most {MOST_COMPARED} methods can be compared, not {len(ids)}.")
        return ids

    @validate("params")
    @checked
    def _check_params(self, value: Any) -> dict[str, dict[str, Any]]:
        from ..methods import get_method

        if not isinstance(value, dict) or not all(isinstance(v, dict) for v in value.values()):
            raise TraitError("params must be a dict of dicts: {method: {option: value}}.")
        options = {str(id): describe.plain(given) for id, given in value.items()}
        for id, given in options.items():
            get_method(id).options(given)
        return {id: given for id, given in options.items() if given}

    @validate("view")
    @checked
    def _check_view(self, value: Any) -> str:
        return one_of(value, VIEWS, "view")

    @validate("aggregate")
    @checked
    def _check_aggregate(self, value: Any) -> str:
        return one_of(value, AGGREGATES, "aggregate")

    @validate("unit")
    @checked
    def _check_unit(self, value: Any) -> str:
        return one_of(value, UNITS, "unit")

    @validate("colours")
    @checked
    def _check_colours(self, value: Any) -> str:
        return one_of(value, COLOURS, "colours")

    @validate("special")
    @checked
    def _check_special(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise TraitError(f"special must be True or False, not {value!r}.")
        return value

    @validate("threshold")
    @checked
    def _check_threshold(self, value: Any) -> float:
        number = isinstance(value, int | float) or hasattr(value, "__float__")
        if isinstance(value, bool | str) or not number or not 0 <= float(value) <= 1:
            raise TraitError(f"threshold must be a number from 0 to 1, not {value!r}.")
        return float(value)

    @validate("top_k")
    @checked
    def _check_top_k(self, value: Any) -> int:
        number = whole_number(value, "top_k")
        if number < 0:
            raise TraitError(f"top_k must be 0 or more, not {number}.")
        return number

    @validate("layer")
    @checked
    def _check_layer(self, value: Any) -> int | None:
        count, _ = self._known_size()
        if value is None:
            return count - 1 if count else None
        number = whole_number(value, "layer")
        if not count:
            return number
        if not -count <= number < count:
            raise TraitError(f"layer is {number}, but the model has layers 0 to {count - 1}.")
        return number % count

    @validate("head")
    @checked
    def _check_head(self, value: Any) -> int:
        number, (_, count) = whole_number(value, "head"), self._known_size()
        if number < -1:
            raise TraitError(f"head must be -1 (the mean of all) or a head number, not {number}.")
        if count and number >= count:
            raise TraitError(f"head is {number}, but the model has heads 0 to {count - 1}.")
        return number

    @validate("focus")
    @checked
    def _check_focus(self, value: Any) -> int | None:
        case = self._known_case()
        if case is None or value is None:
            return None if value is None else whole_number(value, "focus")
        from ..models import check_focus

        return check_focus(value, case.source, case.encoding)

    @validate("target")
    @checked
    def _check_target(self, value: Any) -> Any:
        value = target_value(value)
        case = self._known_case()
        if case is not None and case.recorded:
            from ..models import resolve_target

            if case.encoding.answer is not None and value is not None:
                raise TraitError(
                    "A whole answer is its own target. Choose one of its tokens first: "
                    "view.step = 0."
                )
            row = describe.read_at(case)
            resolve_target(value, case.source, case.encoding, case.trace().output, row)
        return value


def given_text(text: Any, text_pair: Any) -> str | list[dict[str, Any]]:
    """What a view is given to explain, checked in the cell that makes it."""
    if text_pair:
        check_text(text_pair, "text_pair")
    return text_value(text)


def check_names(controls: dict[str, Any], known: Collection[str]) -> None:
    """Refuse a control that there is not."""
    for name in controls:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" There are {', '.join(CONTROLS)}."
            raise TypeError(f"MixView has no control {name!r}.{hint}")


CONTROLS: tuple[str, ...] = tuple(Controls.class_trait_names(sync=True))
