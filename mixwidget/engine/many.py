"""Many texts: explained in the order given, one bad text named and not in the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal

from ..errors import InputError
from ..explanation import Explanation, Failure, shortened
from ..models import Case, Encoding, Source, as_it_was, encode_question
from .asked import Asked
from .verbs import explain_case

Errors = Literal["raise", "row"]
Keep = Literal["all", "scores"]

# Texts that are looked at together: enough to find some of like length, and no more is held.
_WINDOW = 64

Result = Explanation | Failure


@dataclass
class Many:
    """What is done with each of many texts.

    Attributes:
        errors: "row" leaves a `Failure` where a text fails, "raise" stops there.
        keep: "scores" drops maps and layer scores, so that memory does not grow with them.
    """

    source: Source
    method: str
    focus: Any = None
    truncate: bool = False
    params: dict[str, Any] = field(default_factory=dict)
    errors: Errors = "raise"
    keep: Keep = "all"

    def __post_init__(self) -> None:
        for name, known in (("errors", ("raise", "row")), ("keep", ("all", "scores"))):
            if getattr(self, name) not in known:
                listed = " or ".join(map(repr, known))
                raise InputError(f"{name} is {getattr(self, name)!r}; it can be {listed}.")

    def explained(self, texts: Iterator[Asked]) -> Iterator[Result]:
        """A result for each text, in order; texts are taken some at a time."""
        while window := list(islice(texts, _WINDOW)):
            found = self._window(window)
            yield from (self._result(one, found[one.index]) for one in window)

    def _window(self, window: Sequence[Asked]) -> dict[int, Explanation | Exception]:
        found: dict[int, Explanation | Exception] = {}
        for one in window:
            try:
                found[one.index] = self._explained(one, self._encoded(one))
            except Exception as error:
                found[one.index] = error
                if self.errors == "raise":
                    return {other.index: error for other in window} | found
        return found

    @as_it_was
    def _encoded(self, one: Asked) -> Encoding:
        return encode_question(self.source, one.text, one.text_pair, self.truncate)

    def _explained(self, one: Asked, encoding: Encoding) -> Explanation:
        case = Case(self.source, encoding)
        made = explain_case(case, self.method, target=one.target, focus=self.focus, **self.params)
        return self._kept(one, made)

    def _kept(self, one: Asked, made: Explanation) -> Explanation:
        if self.keep == "all":
            return replace(made, id=one.id)
        info = {**{k: v for k, v in made.info.items() if k != "mixing_ratio"}, "keep": "scores"}
        return replace(
            made, id=one.id, own_scores=made.scores, maps=None, layer_scores=None, info=info
        )

    def _result(self, one: Asked, found: Explanation | Exception) -> Result:
        if isinstance(found, Explanation):
            return found
        if self.errors == "row":
            # What led there would keep the models and arrays of the failed pass in memory.
            return Failure(one.index, one.text, found.with_traceback(None), one.id)
        raise _named(found, one)


def _named(error: Exception, one: Asked) -> Exception:
    """The same error, which says first at which text it happened."""
    if len(error.args) == 1:
        which = f"Text {one.index}" + (f" (id {one.id!r})" if one.id != one.index else "")
        shown = shortened(str(one.text), 40)
        error.args = (f"{which}, {shown!r}: {error.args[0]}",)
    return error
