"""Many texts: explained in the order given, one bad text named and not in the way."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal

from ..errors import InputError
from ..explanation import Explanation, Failure, shortened
from ..methods import ONE_BACK, get_method
from ..models import (
    Case,
    Encoding,
    Source,
    Together,
    as_it_was,
    batch_tokens,
    batches,
    encode_question,
    runs_together,
)
from .asked import Asked
from .verbs import explain_case, finish, start

Errors = Literal["raise", "row"]
Keep = Literal["all", "scores"]

# Texts that are looked at together: enough to find some of like length, and no more is held.
_WINDOW = 64

Result = Explanation | Failure


@dataclass(frozen=True)
class Batch:
    """Texts that run together, and within how many tokens; 0 for one that runs alone."""

    texts: list[tuple[Asked, Encoding]]
    tokens: int


@dataclass
class Many:
    """What is done with each of many texts.

    Attributes:
        errors: "row" leaves a `Failure` where a text fails, "raise" stops there.
        keep: "scores" drops maps and layer scores, so that memory does not grow with them.
        batch_tokens: tokens in one pass; None chooses by the memory that is free.
    """

    source: Source
    method: str
    focus: Any = None
    truncate: bool = False
    params: dict[str, Any] = field(default_factory=dict)
    errors: Errors = "raise"
    keep: Keep = "all"
    batch_tokens: int | None = None

    def __post_init__(self) -> None:
        for name, known in (("errors", ("raise", "row")), ("keep", ("all", "scores"))):
            if getattr(self, name) not in known:
                listed = " or ".join(map(repr, known))
                raise InputError(f"{name} is {getattr(self, name)!r}; it can be {listed}.")

    def explained(self, texts: Iterator[Asked]) -> Iterator[Result]:
        """A result for each text, in order; texts are taken some at a time."""
        while window := list(islice(texts, _WINDOW)):
            found = self._window(window)
            for one in window:
                yield self._result(one, found[one.index])

    def _window(self, window: Sequence[Asked]) -> dict[int, Explanation | Exception]:
        found: dict[int, Explanation | Exception] = {}
        ready: list[tuple[Asked, Encoding]] = []
        for one in window:
            try:
                ready.append((one, self._encoded(one)))
            except Exception as error:
                found[one.index] = error
                if self.errors == "raise":  # what stands before it is still explained
                    break
        shadow: Source | None = None  # for all batches: what is folded for one serves the next
        for batch in self._batches(ready):
            if batch.tokens and shadow is None:
                shadow = self.source.shadowed()
            found |= self._together(batch, shadow)
        return found

    @as_it_was
    def _encoded(self, one: Asked) -> Encoding:
        return encode_question(self.source, one.text, one.text_pair, self.truncate)

    def _batches(self, ready: list[tuple[Asked, Encoding]]) -> Iterator[Batch]:
        """Texts that run together; one by one where the method or the model wants it so."""
        if len(ready) < 2 or not (self._shares and runs_together(self.source)):
            yield from (Batch([one], 0) for one in ready)
            return
        lengths = [len(encoding.tokens) for _, encoding in ready]
        longest = max(lengths)
        if not self.source.anatomy.proved_for(longest):  # alone: compared with the model's own
            yield Batch([ready.pop(lengths.index(longest))], 0)
        encodings = [encoding for _, encoding in ready]
        tokens = self.batch_tokens or batch_tokens(self.source, longest, self._slopes)
        for rows in batches(encodings, tokens):
            yield Batch([ready[row] for row in rows], tokens)

    @property
    def _shares(self) -> bool:
        """Whether the method reads a recorded pass, or takes slopes, of which several texts can
        be made at once. One that runs layers again needs their arguments for its text alone."""
        entry = get_method(self.method)
        return self._slopes or set(entry.needs) <= {"attention", "values"}

    @property
    def _slopes(self) -> bool:
        return self.method in ONE_BACK and self.params.get("at") != "layers"

    def _together(self, batch: Batch, shadow: Source | None) -> dict[int, Explanation | Exception]:
        if len(batch.texts) == 1 or shadow is None:
            return self._apart(batch.texts)
        together = Together(shadow, [encoding for _, encoding in batch.texts], self._slopes)
        begin = time.perf_counter()
        found: dict[int, Explanation | Exception] = {}
        try:
            runs = [
                start(case, self.method, target=one.target, focus=self.focus, params=self.params)
                for (one, _), case in zip(batch.texts, together.cases, strict=True)
            ]
            together.resolve = [run.resolved for run in runs]
            for (one, _), run in zip(batch.texts, runs, strict=True):
                made = finish(run, begin)
                begin = time.perf_counter()
                made.info["batch_tokens"] = batch.tokens
                found[one.index] = self._kept(one, made)
        except Exception:  # a text may be what is wrong: the others are not to suffer from it
            return found | self._apart([one for one in batch.texts if one[0].index not in found])
        return found

    def _apart(self, texts: list[tuple[Asked, Encoding]]) -> dict[int, Explanation | Exception]:
        return {
            one.index: self._explained(one, Case(self.source, encoding)) for one, encoding in texts
        }

    def _explained(self, one: Asked, case: Case) -> Explanation | Exception:
        try:
            made = explain_case(
                case, self.method, target=one.target, focus=self.focus, **self.params
            )
            return self._kept(one, made)
        except Exception as error:
            return error

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
