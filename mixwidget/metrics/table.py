"""The table of metrics: what each is called, which way is better, and how it is computed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal

from ..errors import InputError
from ..explanation import Explanation
from . import alignment, answers, comparison, faithfulness
from .evidence import Evidence, Removal

# What a metric is given besides the explanation: the model's answers, cue tokens, an answer.
Needs = Literal["model", "cues", "answer"]


@dataclass(frozen=True)
class Metric:
    """One entry of the table.

    Attributes:
        better: "higher" or "lower".
        needs: what it is given besides the explanation and its options.
        function: the plain function.
    """

    id: str
    title: str
    better: Literal["higher", "lower"]
    needs: Needs
    function: Callable[..., float]

    def check(self, options: dict[str, Any]) -> None:
        """Refuse options the metric does not have."""
        known = list(inspect.signature(self.function).parameters)[2:]
        known = [name for name in known if name != "tokenizer"]
        for name in options:
            if name not in known:
                raise InputError(
                    f"{self.id} has no option {name!r}. Its options: {', '.join(known) or 'none'}."
                )

    def removals(
        self, explanation: Explanation, shared: Evidence, options: dict[str, Any]
    ) -> list[Removal]:
        """What it will ask of the model, to be asked together with what others will."""
        if self.id in _ASKED:
            return _ASKED[self.id](explanation, shared, **options)
        if self.id not in faithfulness.REMOVAL_METRICS:
            return []
        return faithfulness.removals(self.id, explanation, shared, **options)

    def __call__(
        self,
        explanation: Explanation,
        shared: Evidence | None,
        options: dict[str, Any],
        cues: Collection[int] = (),
        answer: Collection[int] | None = None,
    ) -> float:
        """The value for one explanation."""
        if self.needs == "cues":
            return self.function(explanation, cues, **options)
        if self.needs == "answer":
            return self.function(explanation, answer, **options)
        return self.function(explanation, shared, **options)


METRICS: dict[str, Metric] = {
    metric.id: metric
    for metric in (
        Metric(
            "comprehensiveness",
            "Comprehensiveness",
            "higher",
            "model",
            faithfulness.comprehensiveness,
        ),
        Metric("sufficiency", "Sufficiency", "lower", "model", faithfulness.sufficiency),
        Metric("aopc", "AOPC", "higher", "model", faithfulness.aopc),
        Metric("log_odds", "Log-odds", "lower", "model", faithfulness.log_odds),
        Metric("top_k_drop", "Fall without the top units", "higher", "model", answers.top_k_drop),
        Metric("lds", "Linear datamodeling score", "higher", "model", answers.lds),
        Metric("kendall", "Kendall between classes", "lower", "model", comparison.kendall),
        Metric(
            "agreement", "Agreement with a method", "higher", "model", comparison.agreement_with
        ),
        Metric("precision_at_k", "Precision at k", "higher", "answer", alignment.precision_at_k),
        Metric("cue_dot", "Mass on cue tokens", "higher", "cues", alignment.cue_dot),
        Metric("cue_ap", "Average precision of cues", "higher", "cues", alignment.cue_ap),
        Metric("probes_needed", "Probes needed", "lower", "cues", alignment.probes_needed),
        Metric(
            "blank_out_rho",
            "Spearman with blank-out",
            "higher",
            "model",
            alignment.blank_out_rho,
        ),
        Metric("saliency_rho", "Spearman with saliency", "higher", "model", alignment.saliency_rho),
    )
}
# What metrics of units ask for, to be asked together.
_ASKED: dict[str, Callable[..., list[Removal]]] = {
    "top_k_drop": answers.top_removals,
    "lds": answers.lds_removals,
}
FAITHFULNESS = ("comprehensiveness", "sufficiency", "aopc", "log_odds")


def get_metric(id: Any) -> Metric:
    """The entry of an id; an unknown one raises and lists the known."""
    if isinstance(id, str) and id in METRICS:
        return METRICS[id]
    near = get_close_matches(str(id), METRICS, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise InputError(f"There is no metric {id!r}.{hint} Known: {', '.join(METRICS)}.")


@dataclass(frozen=True)
class Choice:
    """A method or metric with options, under the name it has in a table of results."""

    label: str
    id: str
    options: dict[str, Any] = field(default_factory=dict)


def choices(given: Any, what: str) -> list[Choice]:
    """What a user may say: "id", ("id", {options}), or {label: either of them}."""
    if isinstance(given, str):
        given = [given]
    if isinstance(given, dict):
        named = [(str(label), one) for label, one in given.items()]
    else:
        named = [("", one) for one in given]
    made = []
    for label, one in named:
        id, options = (one, {}) if isinstance(one, str) else _pair(one, what)
        shown = ", ".join(f"{name}={value}" for name, value in options.items())
        made.append(Choice(label or (f"{id}({shown})" if shown else id), id, dict(options)))
    labels = [choice.label for choice in made]
    if not made or len(set(labels)) < len(labels):
        raise InputError(f"Give at least one of the {what}s, and none of them twice.")
    return made


def _pair(one: Any, what: str) -> tuple[str, dict[str, Any]]:
    if isinstance(one, tuple | list) and len(one) == 2 and isinstance(one[1], dict):
        return str(one[0]), one[1]
    raise InputError(f"{one!r} is not a {what}: give its id, or (id, {{option: value}}).")
