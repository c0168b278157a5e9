"""Answers: one pass over prompt and answer, and what each of its tokens came from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ..errors import InputError, UnsupportedMethodError
from ..explanation import (
    Answer,
    Explanation,
    Part,
    check_cost,
    flow_rows,
    normalise_rows,
    rollout_rows,
)
from ..methods import Method, Run
from ..models import Case, Encoding, Source, answer_targets, answer_text, as_it_was, likelihoods
from ..tokens import Target

# Explains one token: (case, token id or (for, against), whether it may stop) -> explanation.
Explain = Callable[[Case, Any], Explanation]


def check_asked(target: Any, focus: Any) -> None:
    """An answer is its own target and is read at its own places."""
    if (target is not None and getattr(target, "kind", "") != "answer") or focus is not None:
        raise InputError(
            "target and focus exclude an answer: it is the target, and each of its tokens is read "
            "where it was predicted. For one of its tokens see .step(t)."
        )


def token_by_token(method: Method) -> bool:
    """Whether a method reads one row, or starts from one logit, so that a whole answer is put
    together from its tokens."""
    if not method.class_specific:
        return False
    return (
        "rules" in method.needs
        or method.combine == "whole"
        or (method.yields != "maps" and not method.any_focus)
    )


def by_steps(run: Run, explain: Explain) -> Iterator[Part]:
    """The whole answer by a method that explains a token at a time: signed scores are summed,
    shares averaged."""
    run.info["rows"] = rows = dict[int, np.ndarray[Any, Any]]()
    places = answer_places(run.case)
    total = np.zeros(len(run.encoding.tokens))
    for t, place in enumerate(places):
        run.check()
        run.report(t / len(places))
        rows[t] = explain(_before(run.case, place), run.encoding.tokens[place].id).scores
        total[:place] += rows[t]
    run.report(1.0)
    yield run.final(torch.from_numpy(total if run.method.signed else total / len(places)))


def answer_places(case: Case) -> list[int]:
    answer = case.encoding.answer
    assert answer is not None
    return list(range(answer.start, answer.stop))


def _before(case: Case, place: int) -> Case:
    """The text before a token, as a case of its own."""
    return Case(case.source, case.encoding.prefix(place))


def answered(run: Run, made: Explanation, explain: Explain) -> Explanation:
    """An explanation of a whole answer, with what it needs to say what each token came from."""
    case, encoding = run.case, run.encoding
    places = answer_places(case)
    rows = [place - 1 for place in places]
    answer = Answer(answer_text(encoding), places, [], encoding.answer_text is not None)
    source, bare = case.source, encoding

    @as_it_was
    def step(t: int, foil: Any) -> Explanation:
        token = bare.tokens[places[t]].id
        target = token if foil is None else (token, foil)
        made = explain(Case(source, bare.prefix(places[t])), target)
        if foil is not None and made.target.index == (token, token):
            raise InputError(f"foil is {foil!r}, which is the answer's own token there.")
        return made

    def depend() -> np.ndarray[Any, Any]:
        return dependence_of(source, bare)

    answer.step, answer.depend = step, depend
    own = made.own_scores
    if made.maps is not None:
        own = _rows(made, rows)
        if not run.method.class_specific:
            answer.from_maps = True
            answer.targets = answer_targets(case.source, encoding, case.trace().output)
            answer.rows = {t: own[t, :place].copy() for t, place in enumerate(places)}
        elif made.params.get("zero_focus"):
            own[range(len(rows)), rows] = 0.0
        own = np.asarray(own.mean(0), dtype=np.float32)
    kept = made.info.pop("rows", None)
    if kept is not None:
        answer.rows = kept
    return replace(made, own_scores=own, answer=encoding.answer, answered=answer)


def is_pair(answer: Any) -> bool:
    """Whether these are two answers, (for, against), and not one of two token ids."""

    def one(part: Any) -> bool:
        return isinstance(part, str | list | tuple) or (hasattr(part, "tolist") and part.ndim == 1)

    return isinstance(answer, tuple | list) and len(answer) == 2 and all(map(one, answer))


def contrasted(made: Explanation, against: Explanation, signed: bool) -> Explanation:
    """One answer rather than another, both explained after the same text: what speaks for the one
    minus what speaks for the other, where both have the same tokens before them."""
    if not signed:
        raise UnsupportedMethodError(
            f"{made.method} gives sizes or says what a state is made of, and two answers cannot be "
            "told apart by that. Take a signed method: attn_lrp, logit, blank_out, shapley, "
            "context_cite, or gradient_x_input with norm='sum'."
        )
    pairs = zip(made.tokens, against.tokens, strict=False)
    same = next((i for i, (a, b) in enumerate(pairs) if a.id != b.id), len(against.tokens))
    same = min(same, len(made.tokens))
    first, second = made.target, against.target
    label = f"{first.label} rather than {second.label}"
    target = Target("contrast", (first.index, second.index), label, None)  # type: ignore[arg-type]
    if first.logit is not None and second.logit is not None:
        target = replace(target, logit=first.logit - second.logit)
    info = {
        **made.info,
        "against": {
            "text": answer_text_of(against),
            "log_probability": second.logit,
            "tokens": [token.text for token in against.tokens[same:]],
            "scores": against.scores[same:].tolist(),
        },
    }
    return replace(
        made,
        own_scores=_minus(made.scores, against.scores, same),
        layer_scores=_minus(made.layer_scores, against.layer_scores, same),
        head_scores=_minus(made.head_scores, against.head_scores, same),
        maps=None,
        target=target,
        info=info,
    )


def answer_text_of(made: Explanation) -> str:
    assert made.answered is not None
    return made.answered.text


def _minus(one: Any, other: Any, same: int) -> Any:
    """[..., n], the other taken away from the first tokens."""
    if one is None or other is None:
        return None
    found = np.array(one)
    found[..., :same] -= other[..., :same]
    return found


def _rows(made: Explanation, rows: list[int]) -> np.ndarray[Any, Any]:
    """The rows that predict the answer, [T, n], as the method reads one."""
    assert made.maps is not None
    if made.combine == "flow":
        check_cost(len(made.maps), made.maps.shape[-1], len(rows))
        found = flow_rows(made.maps, rows)
    elif made.scores_from == "last":
        found = made.maps[-1][rows]
    else:
        found = rollout_rows(made.maps, rows, made.combine)
        found = found if made.combine == "with_identity" else normalise_rows(found)
    return np.array(found, dtype=np.float32)


@as_it_was
def dependence_of(source: Source, encoding: Encoding) -> np.ndarray[Any, Any]:
    """How much each token of an encoding's answer needed what it is an answer to: its log
    probability with it minus that without. `source` is a case's, whose model is a shadow."""
    whole = likelihoods(source, encoding)
    return (whole - likelihoods(source, encoding, asked_about(encoding))).float().numpy()


def asked_about(encoding: Any) -> list[int]:
    """The tokens whose absence `dependence` measures: of a chat the last message of the user, of
    a text all of it."""
    before = encoding.tokens[: encoding.answer.start]
    users = [token.message for token in before if token.role == "user"]
    last = users[-1] if users else None
    return [
        token.position
        for token in before
        if not token.special and (last is None or token.message == last)
    ]
