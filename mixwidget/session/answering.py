"""The answer to a text: given, or written by the model while it is watched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import CancelledError
from . import describe
from .cache import ByteCache
from .inbox import Wish
from .telling import Teller

if TYPE_CHECKING:
    from ..models import Case, Choice, Encoding, Source

# How an answer came to be: it is being written, is whole, was stopped, or is as long as it may be.
WRITING, READY, STOPPED, FULL = "writing", "ready", "stopped", "full"

EMPTY_REPLY: dict[str, Any] = {
    "state": "",
    "offer": False,
    "own": False,
    "start": 0,
    "text": "",
    "tokens": [],
    "problem": "",
}


@dataclass(eq=False)
class Reply:
    """A text with its answer, if it has one.

    Attributes:
        encoding: of all of it; `encoding.answer` are the answer's tokens.
        own: the model wrote it itself.
        state: "" where there is none.
        offer: the model could write one.
        choices: what else each token could have been, likeliest first.
        needed: how much each token needed the prompt, where that was asked for.
    """

    encoding: Encoding
    own: bool = False
    state: str = ""
    offer: bool = True
    choices: list[list[Choice]] = field(default_factory=list)
    needed: list[float] | None = None
    problem: str = ""

    @property
    def ids(self) -> list[int]:
        answer = self.encoding.answer
        return [] if answer is None else [token.id for token in self.encoding.tokens[answer]]

    def step(self, step: int | None) -> int | None:
        """A step that there is; None for the whole answer."""
        count = len(self.ids)
        return None if step is None or not -count <= step < count else step % count

    def asked(self, step: int | None) -> Encoding:
        """What the model has read: all of it, or what stands before a token of the answer."""
        answer = self.encoding.answer
        if answer is None or step is None:
            return self.encoding
        return self.encoding.prefix(answer.start + step)

    def mark(self, step: int | None) -> list[Any]:
        """What a run's name says of the answer."""
        if self.encoding.answer is None:
            return []
        return ["whole", *self.ids] if step is None else ["step", *self.ids[:step]]

    def told(self) -> dict[str, Any]:
        """As the browser shows it."""
        encoding = self.encoding
        answer = encoding.answer
        start = len(encoding.tokens) if answer is None else answer.start
        told = {"state": self.state, "own": self.own, "start": start, "offer": self.offer}
        if answer is None:
            return {**EMPTY_REPLY, **told}
        shown = encoding.tokens[answer]
        text = encoding.answer_text
        if text is None:
            text = str(encoding.text[-1]["content"])  # type: ignore[index]
        return {
            **told,
            "text": text,
            "tokens": [
                {"text": token.text, "piece": str(token), "word": token.word, **self._known(t)}
                for t, token in enumerate(shown)
            ],
            "problem": self.problem,
        }

    def _known(self, t: int) -> dict[str, Any]:
        if t >= len(self.choices):
            return {"probability": None, "others": [], "needed": None}
        said, *others = self.choices[t]
        return {
            "id": said.id,
            "probability": round(said.probability, 6),
            "others": [
                {"value": one.id, "label": one.label, "probability": round(one.probability, 6)}
                for one in others
            ],
            "needed": None if self.needed is None else round(self.needed[t], 4),
        }


class Answering:
    """Finds and keeps the answers. Used by the worker alone."""

    def __init__(self, tell: Teller, cache: ByteCache, truncate: bool) -> None:
        self._tell, self._cache, self._truncate = tell, cache, truncate

    def find(
        self,
        source: Source,
        wish: Wish,
        check: Callable[[], None],
        stopped: Callable[[], bool],
    ) -> Reply:
        """The text that is wished for, with its answer.

        Args:
            check: raises where the work is to end.
            stopped: whether it ends because that was asked for, so that what is written stays.
        """
        kept: Reply | None = self._cache.get(key_of(wish))
        if kept is None:
            kept = self._make(source, wish, check, stopped)
            self._cache.put(key_of(wish), kept, 4096 + 64 * len(kept.encoding.tokens))
        return kept

    def _make(
        self,
        source: Source,
        wish: Wish,
        check: Callable[[], None],
        stopped: Callable[[], bool],
    ) -> Reply:
        from ..models import encode_question

        def encoded(answer: Any) -> Encoding:
            return encode_question(source, wish.text, wish.text_pair, self._truncate, answer)

        if wish.answer is not True:
            encoding = encoded(wish.answer)
            if encoding.answer is None:
                return Reply(encoding, offer=source.task in ("causal_lm", "seq2seq_lm"))
            return self._chosen(source, Reply(encoding, state=READY))
        prompt = encoded(None)
        if prompt.answer is not None:
            encoded(True)  # refused in words
        ids, state = self._written(source, prompt, wish.longest, check, stopped)
        whole = encoded(ids) if ids else encoded(True)  # an empty one is refused in words
        return self._chosen(source, Reply(whole, True, state))

    def _written(
        self,
        source: Source,
        prompt: Encoding,
        longest: int,
        check: Callable[[], None],
        stopped: Callable[[], bool],
    ) -> tuple[list[int], str]:
        """What the model writes, told while it does."""
        from ..models import as_it_was, greedy, with_answer

        tokens = describe.tokens(prompt)
        made: list[int] = []

        def tell() -> None:
            so_far = with_answer(source, prompt, made) if made else prompt
            reply = Reply(so_far, True, WRITING).told()
            self._tell.say("Writing the answer", tokens=tokens, reply=reply, runs={})

        def wrote(token: int) -> None:
            made.append(token)
            if self._tell.due():
                tell()

        tell()
        try:
            ids = as_it_was(greedy)(source.shadowed(), prompt, longest, check, wrote)
        except CancelledError:
            if not made or not stopped():
                raise
            return made, STOPPED
        return ids, FULL if len(ids) >= longest else READY

    def _chosen(self, source: Source, reply: Reply) -> Reply:
        from ..models import as_it_was, choices

        reply.choices = as_it_was(choices)(source.shadowed(), reply.encoding)
        return reply

    def depend(self, source: Source, wish: Wish, reply: Reply) -> bool:
        """Find out how much the answer needed the prompt, if that is wished for and not known.
        Whether there is something new to tell."""
        known = reply.needed is not None or bool(reply.problem)
        if wish.shade != "dependence" or known or not reply.ids:
            return False
        from .. import engine

        try:
            reply.needed = engine.dependence_of(source, reply.encoding).tolist()
        except Exception as error:
            reply.problem = describe.in_words(error)[0]
        return True

    def forget(self, wish: Wish) -> None:
        self._cache.drop(key_of(wish))


def reply_of(case: Case) -> dict[str, Any]:
    """The answer of a text that was explained without a session, as the browser shows it."""
    from ..models import choices

    if case.encoding.answer is None:
        return dict(EMPTY_REPLY)
    found = choices(case.source, case.encoding)
    return Reply(case.encoding, state=READY, offer=False, choices=found).told()


def key_of(wish: Wish) -> tuple[str, str]:
    """Names a text with its answer."""
    longest = wish.longest if wish.answer is True else 0
    return "reply", describe.fingerprint(wish.text, wish.text_pair, wish.answer, longest)


def case_key(wish: Wish, reply: Reply, step: int | None) -> tuple[str, str]:
    """Names what the model has read."""
    return "case", describe.fingerprint(wish.text, wish.text_pair, reply.mark(step))


def plain_answer(answer: Any) -> Any:
    """An answer as it is compared and sent: None, True, a text, or a list of ids."""
    if hasattr(answer, "tolist"):
        answer = answer.tolist()
    if isinstance(answer, Sequence) and not isinstance(answer, str):
        return list(answer)
    return answer
