"""The arrays of one run, as they grow, and those that belong to a text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MixwidgetError
from ..explanation import (
    Explanation,
    Part,
    Rolling,
    flow_seconds,
    normalise_rows,
    rollout_rows_by_layer,
)
from ..protocol import PUSH_TOKENS, Want, shrink
from . import describe

if TYPE_CHECKING:
    from ..methods import Method
    from ..models import Case
    from ..tokens import Target

Array = NDArray[Any]

# What may be computed on request, between the chunks of other work.
_QUICK_SECONDS = 2.0


class Result:
    """What a run has computed so far. Written by the worker alone.

    Attributes:
        run: the run's id; arrays kept under it stay true.
        explanation: the whole, once it is finished.
        seq: number of the next array that is pushed.
    """

    def __init__(self, run: str, method: Method, tokens: int, layers: int) -> None:
        self.run, self.method, self.tokens, self.layers = run, method, tokens, layers
        self.explanation: Explanation | None = None
        self.seq = 0
        self.pushed_focus: int | None = None
        self._maps: dict[int, Array] = {}
        self._scores: dict[int, Array] = {}
        self._rolling = Rolling(method.combine)

    @property
    def short(self) -> bool:
        """Whether its layers are rolled out as they come; of a long text only what is asked for."""
        return self.tokens <= PUSH_TOKENS

    @property
    def follows_focus(self) -> bool:
        """Whether the focus is only a choice of row, so that another needs no new run."""
        whole = self.explanation
        return whole is not None and not self.method.bound_to_focus(whole.params)

    @property
    def done_layers(self) -> list[int]:
        if self.explanation is not None:
            held = self.explanation.maps
            held = self.explanation.layer_scores if held is None else held
            return list(range(0 if held is None else len(held)))
        return sorted({*self._maps, *self._scores})

    @property
    def nbytes(self) -> int:
        """Memory held: maps in single and their rollout in double precision."""
        one = 4 * self.tokens * (self.tokens if self.method.yields == "maps" else 1)
        return 3 * self.layers * one + 4096

    def add(self, part: Part) -> list[Want]:
        """Take a part in; the arrays that exist now and did not before."""
        if part.layer is None:
            return []
        new: list[Want] = []
        if part.map is not None:
            self._maps[part.layer] = part.map
            new.append(Want(self.run, "layer", part.layer))
            if self.short:
                new += [Want(self.run, "rollout", layer) for layer in self._roll()]
        if part.scores is not None:
            self._scores[part.layer] = part.scores
            new.append(Want(self.run, "layer_scores", part.layer))
        return new

    def _roll(self) -> list[int]:
        """Extend the rollout by the layers that have come in without a gap below them."""
        if self.method.combine == "flow":
            return []  # a flow needs all layers at once
        first = len(self._rolling)
        while (layer := len(self._rolling)) in self._maps:
            self._rolling.add(self._maps[layer])
        return list(range(first, len(self._rolling)))

    def finish(self, explanation: Explanation) -> list[Want]:
        """Take in the finished explanation; the arrays that exist now and did not before."""
        self.explanation = explanation.rolled_out(self._rolling)
        self._maps, self._scores, self._rolling = {}, {}, Rolling(self.method.combine)
        new = [Want(self.run, "scores", focus=explanation.focus)]
        if explanation.maps is not None and self.method.combine == "flow":
            layers = range(len(explanation.maps))
            if self._flow_seconds(len(layers) - 1) < _QUICK_SECONDS / len(layers):
                new += [Want(self.run, "rollout", layer) for layer in layers]
        return new

    def _by_row(self, rows: int) -> bool:
        """Whether to carry rows down from each layer costs less than to roll out everything."""
        rolls = self.method.combine != "flow" and not self.short
        return rolls and rows * self.layers < 2 * self.tokens

    def _flow_seconds(self, layer: int) -> float:
        return flow_seconds(layer + 1, self.tokens, self.tokens)

    def at(self, focus: int, target: Target | None = None) -> Explanation | None:
        """The explanation read at a focus token."""
        whole = self.explanation
        if whole is None or not self.follows_focus or not 0 <= focus < self.tokens:
            return whole
        if whole.maps is not None and self.short:
            whole.rollout()  # kept with the whole, so that other tokens need not roll out again
        other = whole.with_focus(focus, target)
        if whole.answer is not None and whole.maps is not None and focus != whole.focus:
            other = replace(other, own_scores=None)  # the row of one token, not of an answer
        return other

    def array(self, want: Want) -> Array | None:
        """The numbers asked for; None where they do not exist (yet)."""
        if want.what == "scores":
            whole = self.explanation
            if whole is None:
                return None
            at = self.at(whole.focus if want.focus is None else want.focus)
            return None if at is None or not self._has_token(want.focus) else at.scores
        if want.what == "rows":
            return self._rows(want.of or "rollout", want.focus)
        if want.what == "overview":
            map = self._map(want.of or "layer", want.layer)
            return None if map is None else shrink(map)
        if want.what == "layer_scores":
            return self._layer_scores(want.layer)
        if want.what in ("head_scores", "head_sums"):
            return self._by_head(want)
        return self._map(want.what, want.layer)

    def _has_token(self, focus: int | None) -> bool:
        return focus is None or 0 <= focus < self.tokens

    def _layer_scores(self, layer: int | None) -> Array | None:
        whole = self.explanation
        if whole is None or whole.layer_scores is None:
            return self._scores.get(-1 if layer is None else layer)
        return whole.layer_scores[layer] if self._has_layer(layer) else None

    def _by_head(self, want: Want) -> Array | None:
        """What heads score: summed over tokens [L, H], or each token's in one layer [H, n]."""
        held = None if self.explanation is None else self.explanation.head_scores
        if held is None or want.what == "head_sums":
            return None if held is None else held.sum(-1, dtype=np.float64)
        return held[want.layer] if self._has_layer(want.layer) else None

    @property
    def told(self) -> dict[str, Any]:
        """What the run says about itself, for those who look at it."""
        return {} if self.explanation is None else describe.told(self.explanation.info)

    def _has_layer(self, layer: int | None) -> bool:
        return layer is not None and 0 <= layer < self.layers

    def _map(self, how: str, layer: int | None) -> Array | None:
        if layer is None or not self._has_layer(layer) or self.method.yields != "maps":
            return self._map_of_scorer(how, layer)
        whole = self.explanation
        if how == "rollout":
            if self.method.combine == "flow" and self._flow_seconds(layer) > _QUICK_SECONDS:
                return None  # whole maps of flows would hold up everything else
            if whole is not None:
                return whole.rollout(layer)
            self._roll()
            known = layer < len(self._rolling)
            return normalise_rows(self._rolling.maps[layer]) if known else None
        maps = {} if whole is None or whole.maps is None else dict(enumerate(whole.maps))
        maps = maps or self._maps
        if how == "layer":
            return maps.get(layer)
        if not all(below in maps for below in range(layer + 1)):
            return None
        return np.stack([maps[below] for below in range(layer + 1)]).sum(0, dtype=np.float64)

    def _map_of_scorer(self, how: str, layer: int | None) -> Array | None:
        """A method that scores tokens may still hold maps of some layers."""
        return self._maps.get(layer) if how == "layer" and layer is not None else None

    def _rows(self, how: str, focus: int | None) -> Array | None:
        whole = self.explanation
        if whole is None or whole.maps is None or not self._has_token(focus):
            return None
        row: Any = whole.focus if focus is None else focus
        if whole.answer is not None and row == whole.focus:  # the mean of those that predict it
            row = slice(whole.answer.start - 1, whole.answer.stop - 1)
        else:
            row = slice(row, row + 1)
        read = range(*row.indices(self.tokens))
        if how == "rollout" and self._by_row(len(read)):
            carried = rollout_rows_by_layer(whole.maps, read, whole.combine)
            mean: Array = normalise_rows(carried).mean(1)
            return mean
        if how == "rollout":
            rolled = [self._map("rollout", layer) for layer in range(len(whole.maps))]
            rows = [map[row].mean(0) for map in rolled if map is not None]
            return np.stack(rows) if len(rows) == len(rolled) else None
        alone = whole.maps[:, row].mean(1)
        return alone if how == "layer" else np.cumsum(alone, axis=0, dtype=np.float64)


def text_array(case: Case, want: Want) -> Array | None:
    """Arrays of run "": attention by head, what each head looks at, and how much tokens mix."""
    if want.what == "mixing":
        return _mixing(case)
    if want.what not in ("heads", "head_stats") or not case.recorded:
        return None
    trace, n = case.trace(), len(case.encoding.tokens)
    if len(trace.attending) < len(trace):
        return None
    if any(trace.weights(layer).shape[-2:] != (n, n) for layer in range(len(trace))):
        return None  # an encoder-decoder: a layer's heads see only some of the tokens
    if want.what == "heads":
        if want.layer is None or not 0 <= want.layer < len(trace):
            return None
        return _numbers(trace.weights(want.layer))
    special = np.array([token.special for token in case.encoding.tokens])
    layers = range(len(trace))
    return np.stack([head_stats(_numbers(trace.weights(layer)), special) for layer in layers])


def _mixing(case: Case) -> Array | None:
    """The mixing ratios of short texts, [L, n]; None where a block cannot be taken apart."""
    from ..engine import ratios_by_layer

    if not case.recorded or len(case.encoding.tokens) > PUSH_TOKENS:
        return None
    try:
        found: Array = ratios_by_layer(case).numpy()
    except MixwidgetError:
        return None
    return found if np.isfinite(found).any() else None


def _numbers(weights: Any) -> Array:
    return weights.detach().float().cpu().numpy()


def head_stats(weights: Array, special: NDArray[np.bool_]) -> Array:
    """[H, n, n] -> [H, 6]: mean weight on itself, the token before, the token after, the first
    token, special tokens, and the largest share of maxima at one fixed offset. Tokens that do
    not attend in this layer (an encoder-decoder's other side) do not count."""
    n = weights.shape[-1]
    rows = np.flatnonzero(weights.sum((0, -1)) > 0)
    seen = weights[:, rows]
    if not len(rows):
        return np.zeros((len(weights), 6), np.float32)

    def along(offset: int) -> Array:
        kept = rows[(rows + offset >= 0) & (rows + offset < n)]
        return weights[:, kept, kept + offset].mean(-1) if len(kept) else np.zeros(len(weights))

    offsets = seen.argmax(-1) - rows
    most = [np.unique(of_head, return_counts=True)[1].max() / len(rows) for of_head in offsets]
    columns = [
        along(0),
        along(-1),
        along(1),
        seen[..., 0].mean(-1),
        seen[..., special].sum(-1).mean(-1),
        np.array(most),
    ]
    return np.stack(columns, axis=-1).astype(np.float32)
