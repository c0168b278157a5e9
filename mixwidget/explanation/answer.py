"""What each token of an answer came from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..tokens import Target

if TYPE_CHECKING:
    from .record import Explanation

Array = NDArray[np.float32]

# Of larger explanations of single tokens only the scores are kept.
_KEPT_BYTES = 16 * 2**20


@dataclass
class Answer:
    """The answer's tokens: where they stand, and what each came from as far as it is known.

    Attributes:
        text: what it reads.
        places: index of each token among all, which is also how many stand before it.
        targets: each token as a target of the text before it, where steps are read off maps.
        apart: it stands after the text, not in it as a chat's last message does.
        from_maps: all rows are read off one set of maps.
        rows: scores of the tokens before it, [place], by number of the answer's token.
        step: computes the explanation of one token, or of one rather than another; a pickled copy
            has none.
        depend: computes `dependence`.
    """

    text: str
    places: list[int]
    targets: list[Target]
    apart: bool = False
    from_maps: bool = False
    rows: dict[int, Array] = field(default_factory=dict)
    steps: dict[int, Explanation] = field(default_factory=dict)
    needed: Array | None = None
    step: Callable[[int, Any], Explanation] | None = None
    depend: Callable[[], Array] | None = None

    def __len__(self) -> int:
        return len(self.places)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "step": None, "depend": None}

    def number(self, t: int) -> int:
        """Which token of the answer: counted from the end if negative."""
        if isinstance(t, bool) or not hasattr(t, "__index__"):
            raise InputError(f"A step is a number, not {type(t).__name__}.")
        count = len(self)
        if not -count <= int(t) < count:
            raise InputError(f"step is {t}, but the answer has tokens 0 to {count - 1}.")
        return int(t) % count

    def explained(self, t: int, foil: Any = None) -> Explanation:
        """The explanation of one token, computed once."""
        if foil is None and t in self.steps:
            return self.steps[t]
        if self.step is None:
            known = ", ".join(map(str, sorted(self.rows))) or "none"
            what = f"step {t}" if foil is None else f"step {t} with a foil"
            raise InputError(
                f"This copy has no model to compute {what} with; it holds the steps {known}. Ask "
                "the original, or explain with steps='all' before it is stored."
            )
        made = self.step(t, foil)
        if foil is None:
            self.rows[t] = made.scores
            if made.maps is None or made.maps.nbytes < _KEPT_BYTES:
                self.steps[t] = made
        return made

    def row(self, t: int) -> Array:
        """Scores of the tokens before it, [place]."""
        return self.rows[t] if t in self.rows else self.explained(t).scores

    def matrix(self, tokens: int) -> Array:
        """[T, n], 0 from each token's own place on."""
        whole = np.zeros((len(self), tokens), dtype=np.float32)
        for t, place in enumerate(self.places):
            whole[t, :place] = self.row(t)
        return whole

    def dependence(self) -> Array:
        """log p with the prompt minus log p without it, [T]."""
        if self.needed is None:
            if self.depend is None:
                raise InputError(
                    "This copy has no model to ask how much the answer needs the prompt. Ask the "
                    "original, or read .dependence before it is stored."
                )
            self.needed = self.depend()
        return self.needed
