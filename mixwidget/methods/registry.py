"""The table of methods. A method is one decorated generator; everything else reads this table."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from ..errors import InputError, UnknownMethodError
from ..explanation import Combine

if TYPE_CHECKING:
    from ..explanation import Part
    from ..models import Size

Family = Literal[
    "attention",
    "vector norms",
    "contributions",
    "gradients",
    "class activation",
    "relevance",
    "perturbation",
    "baseline",
]
Yields = Literal["maps", "layer_scores", "scores"]
# What a score is a score of: what a state is made of, attention, a weight for a target, a slope,
# what is added to a target's score, what removing takes from its probability, nothing.
Says = Literal["made", "attention", "weight", "slope", "adds", "removal", "nothing"]


@dataclass(frozen=True)
class Param:
    """One option of a method."""

    name: str
    default: Any
    choices: tuple[Any, ...] | None
    help: str


@dataclass(frozen=True)
class Method:
    """One entry of the table; readable without loading a model.

    Attributes:
        id: permanent. `title` may change.
        yields: what its parts hold: maps, scores per layer, or only final scores.
        needs: what it runs on besides the tokens: "attention", "values", "gradients",
            "passes" (more forward passes), "rules" (relevance rules for the model's family),
            "target", "answer" (a model that writes text).
        combine: how its maps make a rollout; see `aggregate.Combine`.
        scores_from: "rollout" or "last" (maps), "sum", "mean" or "first" (layer scores; first:
            layers pass on the same relevance, and are not added up), "own".
        signed: whether scores may be negative.
        says: what a score is a score of, for a sentence about it.
        measures, formula, ignores: for the method's card, in words and in TeX.
        cost: time beyond the model's own pass, in forward passes, for a size.
        downward: streams from the top layer down.
        any_focus: its scores are the same whatever the focus token (maps hold every token's
            row anyway).
    """

    id: str
    title: str
    family: Family
    yields: Yields
    paper: str
    year: int
    link: str
    needs: tuple[str, ...]
    combine: Combine
    scores_from: str
    signed: bool
    says: Says
    measures: str
    formula: str
    ignores: str
    cost: Callable[[Size], float]
    downward: bool
    any_focus: bool
    params: tuple[Param, ...]
    run: Callable[..., Iterator[Part]]

    @property
    def class_specific(self) -> bool:
        """Whether it explains a target rather than a token."""
        return "target" in self.needs

    @property
    def records(self) -> bool:
        """Whether it reads the recorded pass; others make a pass of their own, or several."""
        reads = {"attention", "values"} & set(self.needs)
        return not self.class_specific or bool(reads) or self.family == "class activation"

    def bound_to_focus(self, options: dict[str, Any]) -> bool:
        """Whether a run with these options holds for its own focus token only."""
        if options.get("zero_focus"):
            return True
        return self.combine == "flow" if self.yields == "maps" else not self.any_focus

    def options(self, given: dict[str, Any]) -> dict[str, Any]:
        """Defaults with the given options put in; unknown or wrong ones raise."""
        known = {param.name: param for param in self.params}
        for name, value in given.items():
            if name not in known:
                listed = ", ".join(known) or "none"
                raise InputError(f"{self.id} has no option {name!r}. Its options: {listed}.")
            choices = known[name].choices
            if choices is not None and value not in choices:
                listed = ", ".join(repr(choice) for choice in choices)
                raise InputError(f"{name}={value!r} is not possible for {self.id}; use {listed}.")
        return {name: given.get(name, param.default) for name, param in known.items()}


_log = logging.getLogger("mixwidget")

# In the order in which menus and tables list them.
_MODULES = (
    "attention",
    "norms",
    "alti",
    "value_zeroing",
    "ifr",
    "decompx",
    "logit",
    "hta",
    "gradients",
    "class_activation",
    "relevance",
    "attn_lrp",
    "perturbation",
    "shapley",
    "context_cite",
)

# Methods that take one backward pass from the target, and may take it for several texts at once.
ONE_BACK = frozenset(
    {
        *("gradient", "gradient_x_input", "cat", "attcat", "attn_grad", "grad_sam", "grad_cam"),
        "gae",
    }
)

_METHODS: dict[str, Method] = {}


def method(
    id: str,
    *,
    title: str = "",
    family: Family = "contributions",
    yields: Yields = "maps",
    paper: str = "",
    year: int = 0,
    link: str = "",
    needs: tuple[str, ...] = ("attention", "values"),
    measures: str = "",
    formula: str = "",
    ignores: str = "",
    cost: Callable[[Size], float] = lambda size: 1.0,
    combine: Combine = "product",
    scores_from: str | None = None,
    signed: bool = False,
    says: Says | None = None,
    downward: bool = False,
    any_focus: bool = False,
    options: dict[str, tuple[tuple[Any, ...] | None, str]] | None = None,
) -> Callable[[Callable[..., Iterator[Part]]], Callable[..., Iterator[Part]]]:
    """Register a generator `def f(run, *, option=default, ...)` under a permanent id.

    `options` gives for each keyword its allowed values (None: any) and a help line. What is left
    out of the card is filled in: the title from the id, what it measures from the docstring.
    Defined anew in its own module (a cell that runs again) it takes the place of the one before.
    """

    def register(function: Callable[..., Iterator[Part]]) -> Callable[..., Iterator[Part]]:
        _check_free(id, function)
        default_from = {"maps": "rollout", "layer_scores": "sum", "scores": "own"}[yields]
        _METHODS[id] = Method(
            id=id,
            title=title or id.replace("_", " ").capitalize(),
            family=family,
            yields=yields,
            paper=paper or "your own",
            year=year or date.today().year,
            link=link,
            needs=needs,
            combine=combine,
            scores_from=scores_from or default_from,
            signed=signed,
            says=says or _says(family, signed, "target" in needs),
            measures=measures or (inspect.getdoc(function) or id).partition("\n\n")[0],
            formula=formula,
            ignores=ignores,
            cost=cost,
            downward=downward,
            any_focus=any_focus,
            params=_params(function, options or {}),
            run=function,
        )
        return function

    return register


def _says(family: Family, signed: bool, for_target: bool) -> Says:
    """Of a method whose card does not say it."""
    if family == "baseline":
        return "nothing"
    if signed:
        return "adds"
    if family == "gradients":
        return "slope"
    if for_target:
        return "weight"
    return "attention" if family == "attention" else "made"


def _params(
    function: Callable[..., Any], options: dict[str, tuple[tuple[Any, ...] | None, str]]
) -> tuple[Param, ...]:
    keywords = list(inspect.signature(function).parameters.items())[1:]
    told = {name: options.get(name, (None, "")) for name, _ in keywords}
    return tuple(Param(name, keyword.default, *told[name]) for name, keyword in keywords)


def _check_free(id: str, function: Callable[..., Any]) -> None:
    """An id is free, or was taken by what is now defined anew."""
    if id not in _METHODS:
        return
    before = _METHODS[id].run
    if before.__module__ != function.__module__ or before.__module__.startswith(f"{__package__}."):
        raise InputError(
            f"A method {id!r} is already registered, by {before.__module__}; ids are permanent. "
            "Give yours another id."
        )
    _log.warning("The method %r is defined anew and takes the place of the one before.", id)


def get_method(id: Any) -> Method:
    """The entry of an id; an unknown one raises and lists the known. "module:id" imports the
    module first that registers it: so worker processes know a method of one's own."""
    _load()
    if isinstance(id, str) and ":" in id:
        module, _, id = id.rpartition(":")
        try:
            import_module(module)
        except ImportError as error:
            raise InputError(
                f"The module {module!r} of a method cannot be imported: {error}."
            ) from error
    if isinstance(id, str) and id in _METHODS:
        return _METHODS[id]
    near = get_close_matches(str(id), _METHODS, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise UnknownMethodError(
        f"There is no method {id!r}.{hint} Known: {', '.join(sorted(_METHODS))}."
    )


def all_methods() -> list[Method]:
    """Every entry, in the order of the families."""
    _load()
    return list(_METHODS.values())


@functools.cache
def _load() -> None:
    """Methods register themselves when their module is imported; some are before the others."""
    for name in _MODULES:
        import_module(f".{name}", __package__)
    homes = [f"{__package__}.{name}" for name in _MODULES]
    place = {home: number for number, home in enumerate(homes)}
    ordered = sorted(_METHODS.values(), key=lambda one: place.get(one.run.__module__, len(homes)))
    _METHODS.clear()
    _METHODS.update({one.id: one for one in ordered})


def forget(id: str) -> None:
    """Take an entry out again (for tests and for people trying out a method of their own)."""
    _METHODS.pop(id, None)
