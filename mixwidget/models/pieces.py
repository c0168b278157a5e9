"""A tensor's parts, one for each token, and the way to them, which is only gone if asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..errors import UnsupportedMethodError


@dataclass(frozen=True)
class Parts:
    """Parts of a tensor, and a constant in it that has not been shared among them yet.

    What attention brings keeps its constants (those of the values and of the projection behind
    them) until it is added to the residual stream; all others are shared where they are added.
    """

    values: Tensor  # [tokens, ...]
    constant: Tensor | None = None
    written: bool = False  # by attention
    fed: bool = False  # by an activation: what a feed-forward makes
    aside: Tensor | None = None  # what a feed-forward beside it added to what attention wrote


Made = Callable[[], Parts]
# Steps that wait for their parts to be asked for: a recurrence has hundreds, in one another.
DEEPEST = 60


class Way:
    """How parts are made, once, when they are asked for; `depth` steps from what is made."""

    def __init__(self, make: Made, depth: int) -> None:
        self.make: Made | None = make
        self.depth = depth
        self.made: Parts

    def __call__(self) -> Parts:
        if self.make is not None:
            self.made, self.make, self.depth = self.make(), None, 0
        return self.made

    def gone(self) -> None:
        """Go now, unless the way leads through something that is refused."""
        with contextlib.suppress(UnsupportedMethodError):
            self()


def carried_by(value: Any) -> Way | None:
    return getattr(value, "parts", None) if isinstance(value, Tensor) else None


def flat(values: Any) -> list[Any]:
    found: list[Any] = []
    for value in values:
        found.extend(flat(value) if isinstance(value, list | tuple) else [value])
    return found


def mapped(values: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(values, list | tuple):
        return type(values)(mapped(v, change) for v in values)
    if isinstance(values, dict):
        return {k: mapped(v, change) for k, v in values.items()}
    return change(values)


@dataclass(frozen=True)
class Step:
    """A linear function of some tensors that have parts, and perhaps constants.

    Attributes:
        on: the function, of what stands in the place of those tensors.
        order: the tensors.
        constant: whether it adds one.
        attends: whether it is attention weights times values.
        sums: whether it adds several of them up.
        inside: of a layer.
    """

    on: Callable[[tuple[Tensor, ...]], Any]
    order: list[Any]
    constant: bool
    attends: bool
    sums: bool
    inside: bool

    def constants(self, held: list[Parts]) -> Any:
        """What is made of what waits."""
        pairs = zip(self.order, held, strict=True)
        return self.on(
            tuple(torch.zeros_like(v) if p.constant is None else p.constant for v, p in pairs)
        )

    def moved(
        self, pick: Callable[[Any], Tensor], held: list[Parts], given: list[Tensor | None]
    ) -> Tensor | None:
        """What becomes of such parts of what is given, without the constant; nothing of nothing."""
        if all(values is None for values in given):
            return None
        still: Tensor | None = None
        if self.constant:
            still = pick(self.on(tuple(torch.zeros_like(v) for v in self.order)))

        def one(*values: Tensor) -> Tensor:
            if still is None:
                return pick(self.on(values))
            return torch.where(still.isinf(), 0.0, pick(self.on(values)) - still)

        pairs = zip(given, held, strict=True)
        made: Tensor = torch.vmap(one)(
            *(torch.zeros_like(p.values) if g is None else g for g, p in pairs)
        )
        return made


def put_into(whole: Tensor, place: Any, value: Any) -> Tensor:
    """A tensor with something else in a place of it."""
    made = whole.clone()
    if isinstance(value, Tensor):  # vmap wants what is written into to have parts, if this has
        made = made + torch.zeros_like(value).sum().to(made)
    made[place] = value
    return made


def copied(whole: Tensor, value: Tensor, *options: Any) -> Tensor:
    return value.to(whole.dtype).expand_as(whole)


WRITES: dict[str, Callable[..., Tensor]] = {"setitem": put_into, "copy": copied}


def floats(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()
