"""The result of a method on a text, as plain arrays."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, UnsupportedMethodError
from ..tokens import Target, Token
from .answer import Answer
from .combine import AGGREGATES, Combine, Rolling, normalise_rows, rollout, rollout_row
from .flow import Flows, Routes, find_routes
from .frame import explanation_frame
from .serial import dumps, read_one
from .units import ByUnit, summed_by, units_of
from .value import Sink, WordScore, in_a_line, same, sink_of, word_scores

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Array = NDArray[np.float32]
T = TypeVar("T")


@dataclass(frozen=True)
class Part:
    """A piece of an explanation as it is computed.

    Attributes:
        layer: which layer, counted from 0; None for the method's final scores.
        map: [n, n] of that layer, or None.
        scores: [n] of that layer, or the final scores if `layer` is None.
        heads: [H, n] of that layer, where a method scores heads.
        info: what else the method has to say (convergence, standard errors, ...).
    """

    layer: int | None
    map: Array | None = None
    scores: Array | None = None
    info: dict[str, Any] = field(default_factory=dict)
    heads: Array | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """How information mixed, or which tokens drove a prediction, by one method.

    Two are equal if all but `info` (timing, notes) is, every number to the last bit.

    Attributes:
        method: the method's id; `params` are the options it ran with.
        tokens: the input's tokens, strings that know their place in the text.
        focus: the row that answers "what went into this token".
        target: what is explained, where a method explains a prediction.
        maps: float32 [layers, n, n], row = target token, column = source; None for methods
            that score tokens.
        layer_scores: float32 [layers, n] where a method scores tokens per layer, else None.
        head_scores: float32 [layers, heads, n] where a method scores heads, and of raw attention
            what each head attends to on average, else None; a layer
            with fewer heads than another has zeros for those it lacks.
        scores: float32 [n], the final score of each input token.
        info: adds-up error per layer (`adds_up`), model, timing and the method's own notes.
        text, text_pair: what was explained; of a chat `text` is its messages.
        answer: the answer's tokens, where an answer is explained.
        id: which of many texts it is: its number, or its label in a Series; None for one alone.
    """

    method: str
    tokens: list[Token]
    focus: int
    target: Target
    maps: Array | None
    layer_scores: Array | None
    own_scores: Array | None = None
    params: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict, compare=False)
    combine: Combine = "product"
    scores_from: str = "rollout"
    text: str | list[dict[str, Any]] = ""
    text_pair: str | None = None
    id: Any = None
    answer: slice | None = None
    answered: Answer | None = field(default=None, compare=False)
    head_scores: Array | None = None

    __array_ufunc__ = None  # an array compared with it asks `__eq__` here, not each of its entries

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Explanation) and all(
            same(getattr(self, one.name), getattr(other, one.name))
            for one in fields(self)
            if one.compare
        )

    def __hash__(self) -> int:
        return hash((self.method, tuple(self.tokens), self.focus, self.target))

    def __repr__(self) -> str:
        return in_a_line(self)

    def _repr_html_(self) -> str:
        """What a notebook shows of it: the coloured text below one line of claim."""
        from ..plots import html_of

        return html_of(self)

    @property
    def word_scores(self) -> list[WordScore]:
        """(word, score) of each word, the scores of its tokens added; special tokens alone."""
        return word_scores(self.tokens, self.scores)

    def _kept(self, name: str, compute: Callable[[], T]) -> T:
        """Computed when it is first asked for. Not by `cached_property`: before Python 3.12 that
        holds a lock meanwhile, for which a child forked then waits for ever."""
        kept = vars(self)
        if name not in kept:
            kept[name] = compute()
        made: T = kept[name]
        return made

    @property
    def scores(self) -> Array:
        return self._kept("scores", self._summed_up)

    @property
    def sink(self) -> Sink:
        """Tokens that take most of the mass whatever the text: special ones, or the first, with
        more than any word and together more than half. `sink.share` is what they have."""
        return sink_of(self.tokens, self.scores, self.focus)

    def _summed_up(self) -> Array:
        if self.own_scores is not None:
            return self.own_scores
        if self.maps is not None and self.combine == "flow":
            return np.asarray(self._flows.row(len(self.maps) - 1, self.focus), dtype=np.float32)
        if self.maps is not None and self.scores_from == "last":
            return np.asarray(self.maps[-1][self.focus], dtype=np.float32)
        if self.maps is not None:
            row = rollout_row(self.maps, self.focus, self.combine)
            # Rows sum to 1, except where a method defines its scores as the rows themselves.
            row = row if self.combine == "with_identity" else normalise_rows(row)
            return np.asarray(row, dtype=np.float32)
        assert self.layer_scores is not None  # the registry admits no method without any result
        if self.scores_from == "first":
            return self.layer_scores[0]
        combined = self.layer_scores.astype(np.float64)
        total = combined.mean(0) if self.scores_from == "mean" else combined.sum(0)
        return np.asarray(total, dtype=np.float32)

    def rolled_out(self, rolling: Rolling) -> Explanation:
        """The same, with a rollout that was made while the layers came in."""
        if self.maps is not None and len(rolling) == len(self.maps):
            self.__dict__["_combined"] = np.stack(rolling.maps)
        return self

    @property
    def _combined(self) -> NDArray[np.floating]:
        return self._kept("_combined", lambda: rollout(self._need_maps(), self.combine))

    @property
    def _flows(self) -> Flows:
        """Maximum flows are dear: each row is computed when it is first asked for."""
        return self._kept("_flows", lambda: Flows(self._need_maps()))

    def _need_answer(self) -> Answer:
        if self.answered is None:
            raise InputError(
                "No answer was explained here. Pass one: explain(model, text, answer='...'), or "
                "answer=True for what the model writes itself."
            )
        return self.answered

    @property
    def matrix(self) -> Array:
        """What each answer token came from: [T, n], 0 from its own place on. Rows that are not
        known yet are computed."""
        return self._need_answer().matrix(len(self.tokens))

    def step(self, t: int, foil: Any = None) -> Explanation:
        """The explanation of one answer token: that of the text before it with this target.

        Args:
            t: which token of the answer, from 0.
            foil: a token it is contrasted with, text or id.
        """
        answered = self._need_answer()
        t = answered.number(t)
        if not answered.from_maps or self.maps is None:
            return answered.explained(t, foil)
        if foil is not None:
            raise InputError(f"{self.method} does not look at what is predicted: leave out foil.")
        place, row = answered.places[t], answered.rows[t]
        made = replace(
            self,
            tokens=self.tokens[:place],
            maps=self.maps[:, :place, :place],
            own_scores=row,
            focus=place - 1,
            target=answered.targets[t],
            answer=None,
            answered=None,
        )
        return made

    @property
    def dependence(self) -> Array:
        """How much each answer token needed the last message of the user (of a text: all of it):
        its log probability with it minus that without, [T]."""
        return self._need_answer().dependence()

    @property
    def texts(self) -> list[str]:
        """What the tokens' characters count in: a chat's messages, else text and pair; then the
        answer, if it stands in neither."""
        if isinstance(self.text, list):
            found = [str(one["content"]) for one in self.text]
        else:
            found = [self.text, *([] if self.text_pair is None else [self.text_pair])]
        if self.answered is not None:
            found += [self.answered.text] if self.answered.apart else []
        return found

    def by(self, units: Any = "sentences") -> ByUnit:
        """Scores summed over units: "tokens", "words", "sentences", "lines", "messages", or spans
        of characters [(start, end, name?), ...], in a chat [(message, start, end, name?), ...].
        What no unit covers is one unit "rest"."""
        found = units_of(self.tokens, self.texts, units, self.answer)
        matrix = None if self.answered is None else self.matrix
        return summed_by(found, self.scores, matrix, isinstance(self.text, list))

    def _need_maps(self) -> Array:
        if self.maps is None and self.info.get("keep") == "scores":
            raise UnsupportedMethodError(
                'Only the scores were kept of this text: leave keep="scores" out for its maps.'
            )
        if self.maps is None and "excerpt" in self.info:
            left = self.info["excerpt"]["left_out"]
            raise UnsupportedMethodError(f"The file that this was read from leaves out {left}")
        if self.maps is None:
            raise UnsupportedMethodError(
                f"{self.method} scores tokens and has no maps to roll out; see .scores."
            )
        return self.maps

    def rollout(self, layer: int = -1) -> Array:
        """Maps combined up to and including a layer: [n, n], rows sum to 1."""
        if self.combine == "flow":
            return np.asarray(self._flows[self._layer(layer)], dtype=np.float32)
        return np.asarray(normalise_rows(self._combined[self._layer(layer)]), dtype=np.float32)

    def aggregate(self, how: str = "rollout", layer: int = -1) -> Array:
        """One map [n, n] up to a layer: how = "rollout", "sum" or "layer" (that one alone)."""
        if how not in AGGREGATES:
            raise InputError(f"how is {how!r}; it can be {', '.join(AGGREGATES)}.")
        if how == "rollout":
            return self.rollout(layer)
        chosen = AGGREGATES[how](self._need_maps())[self._layer(layer)]
        return np.asarray(chosen, dtype=np.float32)

    def _layer(self, layer: int) -> int:
        count = len(self._need_maps())
        if not -count <= layer < count:
            raise InputError(f"layer is {layer}, but there are layers 0 to {count - 1}.")
        return layer % count

    def with_focus(self, focus: int, target: Target | None = None) -> Explanation:
        """The same maps read at another token. Where a method computes its scores for the focus
        token (`Method.bound_to_focus`), or a target is read off there, explain again."""
        if not 0 <= focus < len(self.tokens):
            raise InputError(f"focus is {focus}, but the tokens are 0 to {len(self.tokens) - 1}.")
        other = replace(self, focus=focus, target=target or self.target)
        if self.combine == "flow":
            other = replace(other, own_scores=None)  # those of the other token
        for name in ("_combined", "_flows"):  # the same for every token, and not cheap
            if name in self.__dict__:
                other.__dict__[name] = self.__dict__[name]
        return other

    def routes(self, tau: float = 0.04) -> Routes:
        """The subgraph that information took to the focus token, of `ifr`: from the last layer
        downward all edges above tau, and the feed-forwards whose share is above it."""
        if "feed_forward" not in self.info or self.maps is None:
            raise UnsupportedMethodError(
                f"{self.method} has no routes; ask for them of ifr: explain(..., 'ifr').routes()."
            )
        return find_routes(self.maps, np.asarray(self.info["feed_forward"]), self.focus, tau)

    def to_frame(self) -> pd.DataFrame:
        """All numbers in long form: one row per value.

        `kind` says what a row is: "map" (target row takes from source), "layer_score",
        "head_score" (`row` is the head) or "score" (the final score of a source token).
        """

        return explanation_frame(self)

    def to_json(
        self, path: str | os.PathLike[str] | None = None, *, whole: bool | None = None
    ) -> str:
        """Everything as JSON text, written to a file too if a path is given.

        `from_json` gives it back, every number the same to the last bit. Maps of long texts
        (above 6 MB) are left out but for `info["excerpt"]`, unless `whole` is True: rows, the
        strongest columns and overviews, with a sentence that says so.
        """

        text = dumps([self], bool(whole))
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    @classmethod
    def from_json(
        cls, source: str | bytes | os.PathLike[str], method: str | None = None
    ) -> Explanation:
        """Read what `to_json`, `MixView.save` or the command line wrote: a file or its text.

        Args:
            source: a path, or the JSON text itself.
            method: which one, if the file holds several.
        """

        return read_one(source, cls, method)

    def plot(self, kind: str | None = None, **options: Any) -> Figure:
        """A matplotlib Figure that looks like the widget.

        Args:
            kind: "text", "map", "layers", "graph", "multiples", "compare" or "heads".
            **options: of that kind, see `mixwidget.plots.plot_explanation`.
        """
        from ..plots import plot_explanation

        return plot_explanation(self, kind, **options)
