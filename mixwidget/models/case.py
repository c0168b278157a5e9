"""One text in front of one model."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch

from ..errors import UnsupportedModelError
from .anatomy import probe_inputs, without_spec
from .encode import Encoding
from .memory import check_memory
from .proof import check_same, check_taken_apart, find_beside
from .recording import record
from .source import Source
from .sparing import is_long, proof_tokens, record_long
from .thread import as_it_was
from .trace import Trace

# Above this relative error the parts do not add up to the model and the picture is not to
# be believed.
WARN_ABOVE = 1e-2
_FEW = 3


@dataclass(frozen=True)
class Size:
    """What a method's cost depends on."""

    tokens: int
    layers: int
    heads: int
    width: int  # d, features of a token
    inner: int  # features inside the feed-forward
    again: bool = False  # layers whose parts have no names must run again to be changed
    gated: bool = False  # each token does something of its own to what it takes


def forward_seconds(size: Size) -> float:
    """A rough forward pass at 10^11 operations a second, to put a time in relation to."""
    layer = 4 * size.width**2 + 2 * size.width * size.inner + 2 * size.tokens * size.width
    return 2 * size.tokens * size.layers * layer / 1e11


class Case:
    """One text in front of one model, with its recorded pass: what all methods share."""

    def __init__(self, source: Source, encoding: Encoding, shadowed: bool = False) -> None:
        self._given = source
        # Every pass is made through a shadow, which is this text's own, or that of several.
        self.source, self.encoding = source if shadowed else source.shadowed(), encoding
        self._trace: Trace | None = None
        self._lock = threading.Lock()
        self._errors: dict[int, float] = {}
        self._warned: set[int] = set()

    @property
    def recorded(self) -> bool:
        return self._trace is not None

    def trace(self, check: Callable[[], None] | None = None) -> Trace:
        """The recorded pass; made at the first call, the same ever after."""
        return self._trace or self._first(check)

    @as_it_was
    def _first(self, check: Callable[[], None] | None) -> Trace:
        with self._lock:
            if self._trace is None:
                self._trace = self._recorded(check)
            return self._trace

    def _recorded(self, check: Callable[[], None] | None) -> Trace:
        source, inputs = self.source, self.encoding.inputs
        anatomy = source.anatomy
        try:
            if is_long(source, len(self.encoding.tokens)):
                if not anatomy.proved:  # on its beginning: layers are the same for all of it
                    Case(self._given, self.encoding.prefix(proof_tokens())).trace(check)
                return record_long(source, inputs, check)
            check_memory(source, len(self.encoding.tokens))
            trace = record(source.model, inputs, anatomy, check=check)
        except BaseException:
            self.source = self._given.shadowed()  # hooks may have been left on the other
            raise
        tokens = len(self.encoding.tokens)
        if anatomy.proved_for(tokens):
            return trace
        shown = trace if anatomy.spec is not None else self._telling(trace, check)
        with torch.no_grad():
            errors = {layer: shown.adds_up(layer) for layer in shown.attending}
        if max(errors.values()) > WARN_ABOVE and anatomy.spec is not None:
            without_spec(anatomy, self._given.model, errors)
            return self._recorded(check)
        beside = find_beside(shown)
        check_taken_apart(source.model, shown, errors, beside)
        if beside:
            anatomy.known.beside = set(beside)
            for one in (trace, shown):
                one.forget()
            with torch.no_grad():
                errors = {layer: shown.adds_up(layer) for layer in shown.attending}
            check_taken_apart(source.model, shown, errors, {})
        try:
            check_same(self._given.model, inputs, trace.output)
        except UnsupportedModelError:
            # Some families compute something else in the open than by the kernel that they came
            # with (Falcon counts its position biases twice); torch's own can be watched too.
            if anatomy.own_attention:
                raise
            anatomy.own_attention = True
            self.source = self._given.shadowed()
            return self._recorded(check)
        anatomy.beside, anatomy.proved = beside, tokens
        return trace

    def _telling(self, trace: Trace, check: Callable[[], None] | None) -> Trace:
        """A recorded pass with tokens enough to tell what is the same for all of them: this
        text's, or one of numbers where it has but a few."""
        n, first = len(self.encoding.tokens), self.encoding.first_row
        if min(first or n, n - first) > _FEW:
            return trace
        inputs, _ = probe_inputs(self.source.model, self.source.decodes)
        return record(self._given.shadowed().model, inputs, self.source.anatomy, check=check)

    def release(self) -> None:
        """Let go of the recorded pass, the largest part; it is made again when asked for."""
        self._trace = None

    @as_it_was
    def adds_up(self, layer: int) -> float:
        """Relative error of the decomposition in one layer, computed once."""
        if layer not in self._errors:
            with torch.no_grad():
                self._errors[layer] = self.trace().adds_up(layer)
        return self._errors[layer]

    def warn(self) -> None:
        """Say once which layers are not to be believed. Called by what the user calls."""
        for layer, error in sorted(self.source.anatomy.misfit.items()):
            if error > WARN_ABOVE and -1 - layer not in self._warned:
                self._warned.add(-1 - layer)
                warnings.warn(
                    f"Layer {layer} of {self.source.name}: by the spec of its family the parts "
                    f"differ from the model's own output by {error:.1%}. The spec is not used; "
                    "the model is taken apart as one of an unknown family.",
                    stacklevel=3,
                )
        for layer, error in sorted(self._errors.items()):
            if error > WARN_ABOVE and layer not in self._warned:
                self._warned.add(layer)
                warnings.warn(
                    f"Layer {layer} of {self.source.name}: the parts differ from the model's own "
                    f"output by {error:.1%}. Its block is not understood; do not "
                    "trust maps built on it.",
                    stacklevel=3,
                )

    def known_errors(self) -> list[float]:
        """The relative errors that have been computed, all layers or none."""
        known = [self._errors[layer] for layer in sorted(self._errors)]
        return known if self._trace is not None and len(known) == len(self._trace) else []

    def size(self) -> Size:
        trace = self.trace()
        block = trace.block(trace.attending[0])
        again, width = block.again is not None, block.input.shape[-1]
        gated = again and block.stage("res").carry is not None
        return Size(trace.tokens, len(trace), trace.heads, width, block.inner, again, gated)
