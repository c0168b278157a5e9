"""Which arrays go to the browser, and when."""

from __future__ import annotations

from .. import protocol
from ..protocol import PUSH_TOKENS, Want
from .results import Result
from .telling import Teller


class Sender:
    """Sends arrays of runs that nobody has asked for, numbered."""

    def __init__(self, tell: Teller) -> None:
        self._tell = tell

    def grown(self, result: Result, new: list[Want], focus: int) -> None:
        """A run has new arrays: all maps of a short text, of a long one overviews, and the rows
        of the focus once it is finished."""
        out = []
        for want in new:
            if want.what in ("layer", "rollout") and result.tokens > PUSH_TOKENS:
                want = Want(result.run, "overview", want.layer, of=want.what)
            out.append(want)
        if result.explanation is not None:
            out += self._of_focus(result, focus)
        self._send(result, list(dict.fromkeys(out)))

    def looked_at(self, result: Result, focus: int) -> None:
        """Another token is looked at, and nothing need be computed."""
        if result.follows_focus and result.pushed_focus != focus:
            self._send(result, self._of_focus(result, focus))

    def _of_focus(self, result: Result, focus: int) -> list[Want]:
        result.pushed_focus = focus
        out = [Want(result.run, "scores", focus=focus)]
        if result.tokens > PUSH_TOKENS and result.method.yields == "maps":
            out += [Want(result.run, "rows", of=of, focus=focus) for of in ("rollout", "layer")]
        return out

    def _send(self, result: Result, wants: list[Want]) -> None:
        for want in wants:
            values = result.array(want)
            if values is not None:
                self._tell.post(protocol.array(want, values, seq=result.seq))
                result.seq += 1
