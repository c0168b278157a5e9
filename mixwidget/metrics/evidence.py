"""What the metrics of one text share: its edited inputs through the model, each run once.

Comprehensiveness, sufficiency, AOPC, log-odds and the curve all ask what the model predicts
when some tokens are gone. `Evidence` answers, remembers, and sends what it has not seen yet
through the model together.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..engine import Case, assemble, parts, start
from ..errors import InputError
from ..explanation import Explanation
from ..models import Encoding, Source, need_target, open_source
from ..models.perturb import WAYS, By, edit, predict
from ..tokens import Target, Token

Values = NDArray[np.float64]
# Which tokens are gone, and how they were removed.
Removal = tuple[frozenset[int], By]

# Texts of one model whose edited inputs are kept for the next metric.
_KEPT_CASES = 8


class Evidence:
    """One text and one target: the target's probability with tokens removed, on request.

    Attributes:
        removable: places of the tokens that may be removed, in order: never a special token,
            and never the mask that a masked language model is asked about.
        passes: edited inputs that went through the model so far.
    """

    def __init__(self, case: Case, target: Target) -> None:
        need_target(target, "A faithfulness metric")
        self.case, self.target = case, target
        asked = target.position if case.source.task == "masked_lm" else None
        self.removable = tuple(i for i in case.encoding.ordinary() if i != asked)
        if not self.removable:
            raise InputError("The text has no token that could be removed; give it more words.")
        self.passes = 0
        self._known: dict[Removal, float] = {}
        self._explanations: dict[Any, Explanation] = {}
        self._lock = threading.RLock()

    def probabilities(
        self, removals: Sequence[Removal], check: Callable[[], None] | None = None
    ) -> Values:
        """The target's probability after each removal, [removals]."""
        keys = [_key(gone, by) for gone, by in removals]
        with self._lock:
            new = [key for key in dict.fromkeys(keys) if key not in self._known]
            source, encoding = self.case.source, self.case.encoding
            edits = [edit(source, encoding, self.target, sorted(gone), by) for gone, by in new]
            values = predict(source, encoding, edits, check=check)
            self.passes += len(new)
            self._known.update(zip(new, values.tolist(), strict=True))
            return np.array([self._known[key] for key in keys])

    @property
    def probability(self) -> float:
        """Of the target in the whole text."""
        return float(self.probabilities([(frozenset(), "delete")])[0])

    def ranking(self, scores: NDArray[Any]) -> list[int]:
        """Removable tokens by score, largest first, ties by position."""
        places = np.asarray(self.removable)
        chosen = np.asarray(scores, dtype=np.float64)[places]
        return [int(i) for i in places[np.argsort(-chosen, kind="stable")]]

    def explanation(self, method: str, **params: Any) -> Explanation:
        """This text and target by another method, computed once."""
        key = (method, tuple(sorted((name, repr(value)) for name, value in params.items())))
        with self._lock:
            if key not in self._explanations:
                place = self.target.position  # a language model is asked at the same token
                self._explanations[key] = explain_case(
                    self.case, method, target=self.target, focus=place, **params
                )
            return self._explanations[key]


def _key(gone: Iterable[int], by: By) -> Removal:
    if by not in WAYS:
        raise InputError(f"by is {by!r}; it can be {', '.join(WAYS)}.")
    gone = frozenset(gone)
    return gone, (by if gone else "delete")  # the whole text is the same whatever `by` is


def explain_case(
    case: Case,
    method: str,
    *,
    target: Any = None,
    focus: Any = None,
    cancelled: Callable[[], bool] | None = None,
    **params: Any,
) -> Explanation:
    """`explain` on a case, so that several methods share its recorded pass."""
    run = start(case, method, target=target, focus=focus, params=params, cancelled=cancelled)
    return assemble(run, list(parts(run)))


# Evidence lives as long as its case; cases made from explanations as long as their model.
_evidence: weakref.WeakKeyDictionary[Case, dict[Any, Evidence]] = weakref.WeakKeyDictionary()
_cases: weakref.WeakKeyDictionary[Any, OrderedDict[Any, Case]] = weakref.WeakKeyDictionary()
_guard = threading.Lock()


def evidence(explanation: Explanation, model: Any, tokenizer: Any = None) -> Evidence:
    """The evidence about an explanation's text and target, shared by all who ask.

    Args:
        model: a `Case`, or all that `explain` takes for a model. The same model that was
            explained; the text is rebuilt from the explanation's tokens.
    """
    if isinstance(model, Evidence):
        return model
    case = model if isinstance(model, Case) else _case_of(explanation, model, tokenizer)
    if [token.id for token in case.encoding.tokens] != [token.id for token in explanation.tokens]:
        raise InputError("The explanation is of another text than the case it is measured on.")
    target = explanation.target
    key = (target.kind, target.index, target.position)
    with _guard:
        known = _evidence.setdefault(case, {})
        if key not in known:
            known[key] = Evidence(case, target)
        return known[key]


def _case_of(explanation: Explanation, model: Any, tokenizer: Any) -> Case:
    source = open_source(model, tokenizer)
    key = tuple((token.id, token.segment) for token in explanation.tokens)
    with _guard:
        kept = _cases.setdefault(source.model, OrderedDict())
        if key not in kept:
            kept[key] = Case(source, _encoding(source, explanation.tokens))
            while len(kept) > _KEPT_CASES:
                kept.popitem(last=False)
        kept.move_to_end(key)
        return kept[key]


def _encoding(source: Source, tokens: list[Token]) -> Encoding:
    """The model's inputs again, from the tokens of an explanation."""
    ids = torch.tensor([[token.id for token in tokens]], device=source.device)
    vocabulary = source.model.get_input_embeddings().weight.shape[0]
    if int(ids.max()) >= vocabulary:
        raise InputError(
            f"The explanation has a token id {int(ids.max())}, but this model knows only "
            f"{vocabulary} tokens: it is not the model that was explained."
        )
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if "token_type_ids" in getattr(source.tokenizer, "model_input_names", ()):
        segments = [token.segment for token in tokens]
        inputs["token_type_ids"] = torch.tensor([segments], device=source.device)
    pair = any(token.segment for token in tokens)
    text = " ".join(token.text for token in tokens if not token.special and not token.segment)
    other = " ".join(token.text for token in tokens if not token.special and token.segment)
    return Encoding(text, other if pair else None, tokens, inputs)


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
