"""What the metrics of one text share: its edited inputs through the model, each run once.

Comprehensiveness, sufficiency, AOPC, log-odds and the curve all ask what the model predicts
when some tokens are gone. `Evidence` answers, remembers, and sends what it has not seen yet
through the model together.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..engine import explain_case
from ..errors import InputError
from ..explanation import Explanation
from ..models import WAYS, By, Case, Encoding, Source, edit, need_target, open_source, predict
from ..tokens import Target

Values = NDArray[np.float64]
# Which tokens are gone, and how they were removed.
Removal = tuple[frozenset[int], By]


@dataclass(eq=False)
class _Memory:
    """What has been answered about one text and target. Holds neither model nor case, so that
    whoever keeps it keeps them from nothing."""

    known: dict[Removal, float] = field(default_factory=dict)
    explanations: dict[Any, Explanation] = field(default_factory=dict)
    passes: int = 0
    tokens: int = 0
    seconds: float = 0.0
    lock: threading.RLock = field(default_factory=threading.RLock)


class Evidence:
    """One text and one target: the target's probability with tokens removed, on request. Of an
    answer it is the log probability, per token.

    Attributes:
        removable: places of the tokens that may be removed, in order: never a special token,
            nor an answer's, nor the mask that a masked language model is asked about.
        logs: values are logarithms.
    """

    logs: bool = False

    def __init__(self, case: Case, target: Target, memory: _Memory | None = None) -> None:
        need_target(target, "A faithfulness metric")
        if target.kind == "contrast" and isinstance(target.index[0], tuple):  # type: ignore[index]
            raise InputError(
                "This explains one answer rather than another; faithfulness is measured of one "
                "answer: explain it alone."
            )
        self.case, self.target = case, target
        asked = target.position if case.source.task == "masked_lm" else None
        answer = case.encoding.answer
        end = len(case.encoding.tokens) if answer is None else answer.start
        self.removable = tuple(i for i in case.encoding.ordinary() if i != asked and i < end)
        self.logs = target.kind == "answer"
        if not self.removable:
            raise InputError("The text has no token that could be removed; give it more words.")
        self._memory = memory or _Memory()

    @property
    def passes(self) -> int:
        """Edited inputs that went through the model so far."""
        return self._memory.passes

    @property
    def seconds(self) -> float:
        """How long they took."""
        return self._memory.seconds

    @property
    def tokens(self) -> int:
        """Tokens that they had together."""
        return self._memory.tokens

    def probabilities(
        self, removals: Sequence[Removal], check: Callable[[], None] | None = None
    ) -> Values:
        """The target's probability after each removal, [removals]."""
        keys = [_key(gone, by) for gone, by in removals]
        memory = self._memory
        with memory.lock:
            new = [key for key in dict.fromkeys(keys) if key not in memory.known]
            source, encoding = self.case.source, self.case.encoding
            edits = [edit(source, encoding, self.target, sorted(gone), by) for gone, by in new]
            begun = time.perf_counter(), time.process_time()
            values = predict(source, encoding, edits, check=check)
            # Of a busy machine's clock only what was worked here counts.
            spent = time.perf_counter() - begun[0], time.process_time() - begun[1]
            memory.seconds += min(spent)
            memory.passes += len(new)
            memory.tokens += sum(len(one.ids) for one in edits)
            memory.known.update(zip(new, (values / self._tokens).tolist(), strict=True))
            return np.array([memory.known[key] for key in keys])

    @property
    def _tokens(self) -> int:
        return len(self.target.index) if self.logs else 1  # type: ignore[arg-type]

    def shown(self, values: Values) -> Values:
        """Values as probabilities, as they are drawn and told: of an answer that of one of its
        tokens, their geometric mean."""
        return np.exp(values) if self.logs else values

    @property
    def probability(self) -> float:
        """Of the target in the whole text; of an answer its logarithm, per token."""
        return float(self.probabilities([(frozenset(), "delete")])[0])

    def ranking(self, scores: NDArray[Any]) -> list[int]:
        """Removable tokens by score, largest first, ties by position."""
        places = np.asarray(self.removable)
        chosen = np.asarray(scores, dtype=np.float64)[places]
        return [int(i) for i in places[np.argsort(-chosen, kind="stable")]]

    def explanation(self, method: str, **params: Any) -> Explanation:
        """This text and target by another method, computed once."""
        key = (method, tuple(sorted((name, repr(value)) for name, value in params.items())))
        made = self._memory.explanations
        with self._memory.lock:
            if key not in made:
                row = self.target.position  # a language model is asked at the same token
                place = None  # an answer is read at places of its own
                if isinstance(row, int):
                    place = row + self.case.encoding.first_row
                made[key] = explain_case(
                    self.case, method, target=self.target, focus=place, **params
                )
            return made[key]


def _key(gone: Iterable[int], by: By) -> Removal:
    if by not in WAYS:
        raise InputError(f"by is {by!r}; it can be {', '.join(WAYS)}.")
    gone = frozenset(gone)
    return gone, (by if gone else "delete")  # the whole text is the same whatever `by` is


# What is known lives as long as the case it is about or, if metrics are given a model and no
# case, as long as the explanation that is measured.
_of_cases: weakref.WeakKeyDictionary[Case, dict[Any, _Memory]] = weakref.WeakKeyDictionary()
_of_explanations: dict[int, tuple[weakref.ref[Any], _Memory]] = {}
_guard = threading.Lock()


def evidence(explanation: Explanation, model: Any, tokenizer: Any = None) -> Evidence:
    """The evidence about an explanation's text and target, shared by all who ask.

    Args:
        model: a `Case`, or all that `explain` takes for a model: the one that was explained.
            The text is rebuilt from the explanation's tokens. Metrics of several methods share
            what they ask if they are given the same case.
    """
    if isinstance(model, Evidence):
        return model
    if not isinstance(model, Case):
        source = open_source(model, tokenizer)
        case = Case(source, _encoding(source, explanation))
        return Evidence(case, explanation.target, _memory_of(explanation, source.model))
    ids = [token.id for token in model.encoding.tokens]
    if ids != [token.id for token in explanation.tokens]:
        raise InputError("The explanation is of another text than the case it is measured on.")
    target = explanation.target
    with _guard:
        known = _of_cases.setdefault(model, {})
        memory = known.setdefault((target.kind, target.index, target.position), _Memory())
    return Evidence(model, target, memory)


def _memory_of(explanation: Explanation, model: Any) -> _Memory:
    key = id(explanation)
    with _guard:
        held = _of_explanations.get(key)
        if held is None:
            # An explanation holds arrays and cannot be the key of a weak dictionary.
            weakref.finalize(explanation, _of_explanations.pop, key, None)
        if held is None or held[0]() is not model:
            held = _of_explanations[key] = (weakref.ref(model), _Memory())
        return held[1]


def _encoding(source: Source, explanation: Explanation) -> Encoding:
    """The model's inputs again, from the tokens of an explanation."""
    tokens = explanation.tokens
    ids = torch.tensor([[token.id for token in tokens]], device=source.device)
    vocabulary = source.model.get_input_embeddings().weight.shape[0]
    if int(ids.max()) >= vocabulary:
        raise InputError(
            f"The explanation has a token id {int(ids.max())}, but this model knows only "
            f"{vocabulary} tokens: it is not the model that was explained."
        )
    inputs = {"input_ids": ids}
    if source.decodes:
        read = sum(token.segment == 0 for token in tokens)
        inputs = {"input_ids": ids[:, :read], "decoder_input_ids": ids[:, read:]}
    elif "token_type_ids" in getattr(source.tokenizer, "model_input_names", ()):
        segments = [token.segment for token in tokens]
        inputs["token_type_ids"] = torch.tensor([segments], device=source.device)
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    answered, answer = explanation.answered, explanation.answer
    return Encoding(
        explanation.text,
        explanation.text_pair,
        tokens,
        inputs,
        answer,
        answered.text if answered is not None and answered.apart else None,
        None if answer is None else answer.start,
    )


def scores_of(explanation: Explanation, how: str | None = None, layer: int | None = None) -> Values:
    """The scores a metric reads, [n]: the explanation's own, or the focus row of its maps.

    Args:
        how: "rollout", "sum" or "layer": that aggregate of the maps, whatever the method's
            own choice is; a method without maps keeps its scores. None: `scores`, or the
            layer alone if a layer is named.
        layer: up to which layer (for "layer": which one); None means the last.
    """
    if layer is None and (how is None or explanation.maps is None):
        return np.asarray(explanation.scores, dtype=np.float64)
    if explanation.layer_scores is not None and how in (None, "layer"):
        count = len(explanation.layer_scores)
        number = -1 if layer is None else layer
        if not -count <= number < count:
            raise InputError(f"layer is {layer}, but there are layers 0 to {count - 1}.")
        return np.asarray(explanation.layer_scores[number], dtype=np.float64)
    chosen = explanation.aggregate(how or "layer", -1 if layer is None else layer)
    return np.asarray(chosen[explanation.focus], dtype=np.float64)
