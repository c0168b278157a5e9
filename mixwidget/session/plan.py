"""A wish made concrete: which runs answer it, and how they stand."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..errors import InputError, MixwidgetError
from . import describe
from .answering import Reply, case_key
from .inbox import Wish, model_mark
from .results import Result

if TYPE_CHECKING:
    from ..explanation import Explanation
    from ..models import Case
    from ..tokens import Target


# Contributions for a model that reads, routes for one that writes.
_CARRIERS = ("alti", "ifr")
_MOST_CARRIED = 256  # tokens; the maps of longer texts are computed when they are asked for


@dataclass
class Job:
    """A run: one method on one text with one target, focus and set of options."""

    run: str
    method: str
    title: str
    options: dict[str, Any]
    state: str = "waiting"  # computing, ready, cancelled, error
    progress: float = 0.0
    begun: float = 0.0
    seconds: float = 0.0
    message: str = ""
    hint: str = ""
    error: BaseException | None = None
    done_layers: list[int] = field(default_factory=list)
    told: dict[str, Any] = field(default_factory=dict)  # what the finished run says about itself
    any_row: bool = True  # another row is read off the same run

    @property
    def open(self) -> bool:
        return self.state in ("waiting", "computing")

    def seconds_left(self) -> float | None:
        elapsed = time.perf_counter() - self.begun
        if self.state != "computing" or self.progress < 0.02 or elapsed < 0.3:
            return None
        return round(elapsed * (1 - self.progress) / self.progress, 1)

    def describe(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "state": self.state,
            "progress": round(self.progress, 3),
            "seconds_left": self.seconds_left(),
            "message": self.message,
            "done_layers": list(self.done_layers),
            **self.told,
        }


@dataclass(frozen=True)
class Plan:
    """A wish made concrete: its text, its focus and target, and its runs in order.

    Attributes:
        reply: the text with its answer.
        step: which token of the answer is asked about.
        why: the reason for the method in front where none was named.
    """

    wish: Wish
    case: Case
    reply: Reply
    step: int | None
    focus: int
    target: Target
    jobs: dict[str, Job]  # by method id
    why: str | None = None

    @property
    def front(self) -> str:
        """The method in front."""
        assert self.wish.method is not None  # a plan's wish names it
        return self.wish.method

    def next(self) -> Job | None:
        """What is to be computed: the method in front first."""
        return next((job for job in self.jobs.values() if job.open), None)

    def runs(self) -> dict[str, dict[str, Any]]:
        return {method: job.describe() for method, job in self.jobs.items()}

    def status(self) -> dict[str, str]:
        """computing until nothing is left to do, then how the method in front came out."""
        left = [job.title for job in self.jobs.values() if job.open]
        if left:
            return _status("computing", f"Computing: {', '.join(left)}")
        front = self.jobs[self.front]
        if front.state == "error":
            return _status("error", front.message, front.hint)
        if front.state == "cancelled":
            return _status("ready", f"Cancelled: {front.title}", "Run again to compute it.")
        return _status("ready", f"Ready: {front.title}")

    @property
    def answer(self) -> int:
        """Where the answer is read, whatever row is looked at."""
        return describe.read_at(self.case, self.target)

    @property
    def whole(self) -> bool:
        """Whether a whole answer is explained, which is its own target."""
        return self.case.encoding.answer is not None

    @property
    def key(self) -> tuple[str, str]:
        """Names what the model has read."""
        return case_key(self.wish, self.reply, self.step)

    def target_at(self, focus: int) -> Target:
        """The target as it is read at a row."""
        if focus == self.focus:
            return self.target
        return _target(self.wish.target, self.case, self.reply, self.step, focus)

    def predicted(self) -> Target:
        """What the model says by itself; where an answer is asked about, what stands there."""
        return _target(None, self.case, self.reply, self.step, self.focus)

    def results(self, finished: Callable[[str], Result | None]) -> list[Result]:
        """All that is finished for what is shown, asked for or not; the method in front first."""
        from ..methods import all_methods

        found = []
        for id in dict.fromkeys((self.front, *(method.id for method in all_methods()))):
            try:
                wish = replace(self.wish, method=id, compared=())
                run = make_plan(wish, self.case, self.reply, {}, finished).jobs[id].run
            except MixwidgetError:
                continue  # it has no run for this text
            result = finished(run)
            if result is not None:
                found.append(result)
        return found

    def ready(
        self, held: Callable[[str], Result | None], focus: int | None = None
    ) -> dict[str, Explanation]:
        """What is finished of the asked methods, read at a row."""
        found = {}
        row = self.focus if focus is None else focus
        for method, job in self.jobs.items():
            result = held(job.run) if job.state == "ready" else None
            whole = None if result is None else result.at(row, self.target_at(row))
            if whole is not None and method in self.wish.methods:
                found[method] = whole
        return found

    def aimed(self, explanation: Explanation) -> Explanation:
        """An explanation as one of this target: what knows no target holds for any."""
        target = self.target_at(explanation.focus)
        same = explanation.target == target
        return explanation if same else replace(explanation, target=target)

    def told(self) -> dict[str, Any]:
        """All that is small."""
        return {
            "focus": self.focus,
            "step": self.step,
            "method": self.front,
            "model_info": self.model_info(),
            "tokens": describe.tokens(self.case.encoding),
            "reply": self.reply.told(),
        }

    def model_info(self) -> dict[str, Any]:
        errors = self.case.known_errors()
        return describe.model_info(self.case, self.predicted(), self.focus, self.answer, errors)


def _status(state: str, message: str, hint: str = "") -> dict[str, str]:
    return {"state": state, "message": message, "hint": hint}


def _target(given: Any, case: Case, reply: Reply, step: int | None, focus: int) -> Target:
    """What is explained at a row: what is named, else the answer, else what the model predicts."""
    from ..models import resolve_target, whole_target

    output = case.trace().output
    if case.encoding.answer is not None:
        return whole_target(case.encoding, output)
    if given is None and step is not None and focus == describe.read_at(case):
        given = reply.ids[step]
    return resolve_target(given, case.source, case.encoding, output, focus)


def make_plan(
    wish: Wish,
    case: Case,
    reply: Reply,
    known: dict[str, Job],
    finished: Callable[[str], Result | None],
) -> Plan:
    """Resolve a wish whose text is recorded. Jobs that are known by their run stay the same
    objects; `finished` finds the results of earlier ones."""
    from ..methods import get_method, recommended
    from ..models import check_focus

    source, encoding, step = case.source, case.encoding, reply.step(wish.step)
    front, why = (wish.method, None) if wish.method else recommended(source)
    wish = replace(wish, method=front)
    focus, chosen = describe.read_at(case), False
    if wish.focus is not None:
        with contextlib.suppress(InputError):  # chosen for a longer text
            focus, chosen = check_focus(wish.focus, source, encoding), True
    target = _target(wish.target, case, reply, step, focus)
    if not chosen:
        focus = describe.read_at(case, target)
    jobs: dict[str, Job] = {}
    asked = dict.fromkeys(
        (*wish.methods, *_carrier(wish, case, target), *_by_head(wish, case, target))
    )
    for id in asked:
        method = get_method(id)
        options = method.options(wish.params.get(id, {}))
        key: list[Any] = [wish.text, wish.text_pair, options, *reply.mark(step)]
        if method.class_specific:
            key += [target.kind, target.index, target.position]
        if method.bound_to_focus(options) and encoding.answer is None:
            key.append(focus)
        run = f"{model_mark(wish.model)}{id}-{describe.fingerprint(*key)}"
        aimed = method.class_specific and target.position is not None
        any_row = not aimed and not method.bound_to_focus(options)
        job = known.get(run) or Job(run, id, method.title, options, any_row=any_row)
        result = finished(run) if job.state == "waiting" else None
        if result is not None:
            job.state, job.progress, job.done_layers = "ready", 1.0, result.done_layers
            job.told = result.told
        jobs[id] = job
    return Plan(wish, case, reply, step, focus, target, jobs, why)


def _carrier(wish: Wish, case: Case, target: Target) -> list[str]:
    """A method whose maps show the ways where those that are asked for only score tokens."""
    from ..methods import all_methods

    known = {method.id: method for method in all_methods()}
    mapped = any(known[id].yields == "maps" and not known[id].signed for id in wish.methods)
    if not wish.ways or mapped or len(case.encoding.tokens) > _MOST_CARRIED:
        return []
    writes = case.source.task in ("causal_lm", "seq2seq_lm")
    order = _CARRIERS[::-1] if writes else _CARRIERS
    return [id for id in order if not describe.refusal(known[id], case, target)][:1]


def _by_head(wish: Wish, case: Case, target: Target) -> list[str]:
    """The method that says what each head wrote into the answer, where heads are looked at."""
    from ..methods import get_method

    wanted = wish.heads and not describe.refusal(get_method("logit"), case, target)
    return ["logit"] if wanted and len(case.encoding.tokens) <= _MOST_CARRIED else []
