"""One method at work on one case."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import CancelledError, NumericsError, UnsupportedMethodError
from ..explanation import Part
from ..models import (
    Case,
    Encoding,
    Source,
    Trace,
)
from ..tokens import Target
from .registry import Method

# Above this a sum does not balance, and some operation is not understood.
IMBALANCE = 1e-3


@dataclass
class Run:
    """One method at work on one case: what a method's generator is given.

    Attributes:
        case: text and model; `trace` is its recorded forward pass.
        focus: resolved, never None; of a model that answers questions, once the target is.
        find: gives the target, resolved, for what the model put out for this text.
        options: the method's options, complete.
        cancelled: asked between chunks; when it says True the run ends with CancelledError.
        report: called with the share of the work done, 0 to 1.
    """

    case: Case
    method: Method
    focus: int
    find: Callable[[Any], Target]
    options: dict[str, Any]
    cancelled: Callable[[], bool] = lambda: False
    report: Callable[[float], None] = lambda share: None
    info: dict[str, Any] = field(default_factory=dict)
    _layer: int = 0
    _target: Target | None = None

    @property
    def target(self) -> Target:
        """What is explained; of the recorded pass, where no other has been made before."""
        return self.resolved(None) if self._target is not None else self.resolved(self.trace.output)

    def resolved(self, output: Any) -> Target:
        """What is explained, given what a pass put out for the text."""
        if self._target is None:
            self._target = self.find(output)
        return self._target

    @property
    def source(self) -> Source:
        return self.case.source

    @property
    def encoding(self) -> Encoding:
        return self.case.encoding

    @property
    def trace(self) -> Trace:
        return self.case.trace(self.check)

    def check(self) -> None:
        """Stop here if the owner has cancelled."""
        if self.cancelled():
            raise CancelledError("cancelled")

    def layers(self, every: bool = False) -> Iterator[int]:
        """Layers that attend, in the method's order, with a cancel check and progress for each.
        With `every` also those that do not."""
        layers = list(range(len(self.trace))) if every else self.trace.attending
        order = layers[::-1] if self.method.downward else layers
        for done, layer in enumerate(order):
            self._layer = done
            self.tick(0)
            yield layer
        self.report(1.0)

    def tick(self, share: float) -> None:
        """Between chunks: check for cancel, report progress within the current layer."""
        self.check()
        self.report((self._layer + share) / len(self.trace.attending))

    def part(
        self,
        layer: int,
        map: Tensor | None = None,
        scores: Tensor | None = None,
        heads: Tensor | None = None,
    ) -> Part:
        """A layer's result as float32 arrays on the CPU, its own copy."""
        # A method that makes its own pass follows one text, of which every layer has all tokens.
        whole = self.trace.completed(layer, map) if map is not None and self.method.records else map
        return Part(layer, self._array(whole), self._array(scores), heads=self._array(heads))

    def final(self, scores: Tensor, **info: Any) -> Part:
        """The method's final scores."""
        return Part(None, None, self._array(scores), info)

    def _array(self, tensor: Tensor | None) -> np.ndarray[Any, np.dtype[np.float32]] | None:
        """A number for every token, all of them finite: else the method has met something that it
        does not understand, and its numbers are not to be seen."""
        if tensor is None:
            return None
        made = tensor.detach().to("cpu", torch.float32, copy=True).numpy()
        tokens = len(self.encoding.tokens)
        if made.shape[-1] != tokens:
            raise UnsupportedMethodError(
                f"{self.method.id} finds {made.shape[-1]} numbers for the {tokens} tokens of this "
                "text: the model's layers read more than one vector for a token, or tokens of its "
                "own, which cannot be put down to the text's."
            )
        if not np.isfinite(made).all():
            raise NumericsError(
                f"{self.method.id} gives NaN or infinity for this text. In half precision numbers "
                "may overflow: load the model in float32. Else the model computes something that "
                "the method does not understand; choose another one."
            )
        return made


def blocks_of(run: Run, sides: list[int], layer: int) -> list[int]:
    """The blocks that other methods map of a layer: a decoder's layer is two of them, which get
    what the layer reads. `sides`: of every layer 0 in an encoder and else 1."""
    if not run.source.decodes:
        return [layer]
    names = _numbered(sides)
    blocks = [name.partition(",")[0] for name in run.trace.names]
    if set(blocks) != set(names):
        raise UnsupportedMethodError(
            f"{type(run.source.model).__name__} runs {', '.join(names)} in a pass that is followed "
            f"back, and {', '.join(dict.fromkeys(blocks))} in the recorded one."
        )
    return [place for place, block in enumerate(blocks) if block == names[layer]]


def _numbered(sides: list[int]) -> list[str]:
    return [f"{('encoder', 'decoder')[s]} {sides[:k].count(s)}" for k, s in enumerate(sides)]
