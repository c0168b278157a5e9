"""What is explained (target) and which token's row answers (focus), from what the user said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..blocks import wide
from ..errors import InputError, NumericsError, UnsupportedMethodError
from ..tokens import Target, Token
from .encode import Encoding
from .readable import readable_piece
from .source import Source
from .spelling import SeveralTokensError, Spelt, spellings


def default_focus(source: Source, encoding: Encoding) -> int:
    """[CLS] for classifiers, the mask for masked LMs, the last token for causal models; where
    questions are answered, see `answering_row`."""
    if source.task == "masked_lm" and (masks := _masks(source, encoding)):
        return masks[0]
    last = source.task == "causal_lm" or source.anatomy.causal or source.decodes
    return len(encoding.tokens) - 1 if last else 0


def answering_row(source: Source, encoding: Encoding, target: Target) -> int:
    """The row that a target is read from, where none is named: of a span its first token."""
    if target.kind == "span":
        return int(target.index[0])  # type: ignore[index]
    return default_focus(source, encoding)


def check_focus(focus: Any, source: Source, encoding: Encoding) -> int:
    """A token's index, counted from the end if negative, or its text; None is the default."""
    if focus is None:
        return default_focus(source, encoding)
    if isinstance(focus, str):
        return _place_of(focus, encoding.tokens)
    n = len(encoding.tokens)
    if isinstance(focus, bool) or not hasattr(focus, "__index__"):
        raise InputError(
            f"focus must be a token index or a token's text, not {type(focus).__name__}."
        )
    index = focus.__index__()
    if not -n <= index < n:
        raise InputError(f"focus is {index}, but the text has tokens 0 to {n - 1}.")
    return index % n


def _place_of(text: str, tokens: list[Token]) -> int:
    """The place of the one token that reads so, as it is shown or as the tokenizer writes it."""
    places = [i for i, one in enumerate(tokens) if text.strip() in (one.text.strip(), str(one))]
    if len(places) == 1:
        return places[0]
    if places:
        listed = ", ".join(map(str, places))
        raise InputError(f"focus {text!r} stands at tokens {listed}; say which: focus={places[0]}.")
    near = " ".join(one.text for one in tokens[:40]) + " …" * (len(tokens) > 40)
    raise InputError(f"No token is {text!r}, so it cannot be the focus. There are: {near}")


def _masks(source: Source, encoding: Encoding) -> list[int]:
    mask = getattr(source.tokenizer, "mask_token_id", None)
    return [] if mask is None else [t.position for t in encoding.tokens if t.id == mask]


def objective(output: Any, target: Target) -> Tensor:
    """The number that a target stands for, from a model's output: [batch], a logit or a sum
    or difference of logits. Differentiable."""
    if target.kind == "span":
        start, end = target.index  # type: ignore[misc]
        return output.start_logits[:, start] + output.end_logits[:, end]
    if target.kind == "answer":
        return answer_target(output, target)
    logits = _rows(output, target)
    if target.kind == "contrast":
        first, second = target.index  # type: ignore[misc]
        return logits[:, first] - logits[:, second]
    return logits[:, target.index]


def linear_objective(output: Any, target: Target) -> Tensor:
    """The same as a weighted sum of logits, [batch]: an answer's log probability by its slopes
    there, whose softmax is none of the model's."""
    if target.kind != "answer":
        return objective(output, target)
    logits = output.logits
    leaf = logits.detach().requires_grad_()
    (slopes,) = torch.autograd.grad(answer_target(_Logits(leaf), target).sum(), leaf)
    return (logits * slopes).sum((-1, -2))


class _Logits:
    def __init__(self, logits: Tensor) -> None:
        self.logits = logits


def single_targets(target: Target) -> list[Target]:
    """The two targets of a contrast, or the one."""
    if target.kind != "contrast":
        return [target]
    assert isinstance(target.index, tuple)
    return [replace(target, kind="class", index=index) for index in target.index]


def probability(output: Any, target: Target) -> Tensor:
    """The probability of a target, [batch]; for a contrast the probability of the first of
    the two given that it is one of them, for a span the product of start and end. Wide: near
    certainty a probability in float32 has no digits left that could change."""
    if target.kind == "span":
        start, end = target.index  # type: ignore[misc]
        first = wide(output.start_logits).softmax(-1)[:, start]
        return first * wide(output.end_logits).softmax(-1)[:, end]
    if target.kind == "answer":
        return answer_target(output, target)
    if target.kind == "contrast":
        return torch.sigmoid(wide(objective(output, target)))
    return wide(_rows(output, target)).softmax(-1)[:, target.index]


def answer_target(output: Any, target: Target, each: bool = False) -> Tensor:
    """Sum of the log probabilities of an answer's tokens, [batch], or each, [batch, T].
    Differentiable."""
    rows, ids = list(target.position), list(target.index)  # type: ignore[arg-type]
    shares = wide(output.logits[:, rows]).log_softmax(-1)
    found = shares.gather(
        -1, torch.tensor([ids], device=shares.device).mT[None].expand(len(shares), -1, 1)
    )
    return found[..., 0] if each else found[..., 0].sum(-1)


def _rows(output: Any, target: Target) -> Tensor:
    logits: Tensor = output.logits if hasattr(output, "logits") else output.prediction_logits
    return logits if target.position is None else logits[:, target.position]


def resolve_target(
    target: Any, source: Source, encoding: Encoding, output: Any, focus: int
) -> Target:
    """What the user asked for, checked against what the model put out for this text.

    Language models predict at every token: a causal one is asked at the focus (what comes
    after it), a masked one at the focus if that is a mask, else at the first mask.
    """
    if isinstance(target, Target):
        target = target.index
    if source.task == "base":
        if target is not None:
            raise InputError("This model has no head, so there is no prediction to target.")
        return Target("none", None, "no prediction (the model has no head)")
    if source.task == "question_answering":
        return _span(target, encoding, output)
    return _single_or_contrast(target, source, output, position_of(source, encoding, focus))


def spelling_of(
    target: Any, source: Source, encoding: Encoding, output: Any, focus: int
) -> dict[str, Any]:
    """How a target given as a string was read, for `info`; empty for all other targets."""
    if not isinstance(target, str) or source.task in ("base", "classification"):
        return {}
    if source.task == "question_answering":
        return {}
    logits = _logits(output, position_of(source, encoding, focus))
    return _likeliest(target, source, logits).told()


def need_target(target: Target, method: str) -> None:
    """Refuse a method that explains a prediction on a model that makes none."""
    if target.kind == "none":
        raise UnsupportedMethodError(
            f"{method} explains a prediction, but this model has no head. Load it with one, "
            "for example AutoModelForSequenceClassification or AutoModelForCausalLM."
        )


def _single_or_contrast(target: Any, source: Source, output: Any, position: int | None) -> Target:
    logits = _logits(output, position)
    if isinstance(target, tuple | list):
        if len(target) != 2:
            raise InputError("A contrast takes two targets: target=(for, against).")
        first, second = (_index(part, source, logits) for part in target)
        label = f"{_name(first, source)} rather than {_name(second, source)}"
        logit = float(logits[first] - logits[second])
        return Target("contrast", (first, second), label, position, logit)
    index = int(logits.argmax()) if target is None else _index(target, source, logits)
    kind = "class" if source.task == "classification" else "token"
    share = float(logits.softmax(-1)[index])
    return Target(kind, index, _name(index, source), position, float(logits[index]), share)


def _logits(output: Any, position: int | None) -> Tensor:
    """Of one row, [classes or vocabulary]."""
    return _finite(_rows(output, Target("class", 0, "", position))[0])


def _finite(logits: Tensor) -> Tensor:
    """Logits as float32. Minus infinity is how some models rule a token out."""
    logits = logits.detach().float()
    if bool((logits.isnan() | (logits == torch.inf)).any()) or not bool(logits.isfinite().any()):
        raise NumericsError(
            "The model's prediction holds NaN or infinity, though its layers do not: its head's "
            "own numbers are broken. Look at the head's weights."
        )
    return logits


def position_of(source: Source, encoding: Encoding, focus: int) -> int | None:
    """The row of the logits that the prediction is read from."""
    if source.task == "classification":
        return None
    if source.task == "seq2seq_lm":  # rows are those of the prefix; a source token predicts none
        row = focus - encoding.first_row
        return row if row >= 0 else len(encoding.tokens) - encoding.first_row - 1
    masks = _masks(source, encoding) if source.task == "masked_lm" else []
    return focus if not masks or focus in masks else masks[0]


def _index(target: Any, source: Source, logits: Tensor) -> int:
    count = len(logits)
    what = "class" if source.task == "classification" else "token id"
    if isinstance(target, str):
        if source.task == "classification":
            return _labelled(target, source)
        spelt = _likeliest(target, source, logits)
        spelt.warn(target)
        return spelt.chosen.ids[0]
    if isinstance(target, bool) or not hasattr(target, "__index__"):
        raise InputError(
            f"target must be a {what} or its name, not {type(target).__name__}. "
            "Two of them make a contrast."
        )
    index: int = target.__index__()
    if not 0 <= index < count:
        many = "classes" if what == "class" else "token ids"
        raise InputError(f"target is {index}, but there are only {many} 0 to {count - 1}.")
    return index


def _labelled(target: str, source: Source) -> int:
    labels = source.labels
    matches = [i for i, label in enumerate(labels) if label == target] or [
        i for i, label in enumerate(labels) if label.lower() == target.lower()
    ]
    if len(matches) != 1:
        raise InputError(f"target {target!r} is not one of the classes {', '.join(labels)}.")
    return matches[0]


def _likeliest(target: str, source: Source, logits: Tensor) -> Spelt:
    """A string as the one token it is likeliest to be there."""
    ways = spellings(source.tokenizer, target)
    single = [way for way in ways if len(way.ids) == 1 and way.ids[0] < len(logits)]
    if single:
        shares = logits.double().log_softmax(-1)
        return Spelt.of(single, [float(shares[way.ids[0]]) for way in single])
    if ways and source.task in ("causal_lm", "seq2seq_lm"):
        raise SeveralTokensError(
            f"target {target!r} is {len(ways[0].ids)} tokens of this model's vocabulary, which is "
            f"an answer: pass answer={target!r}."
        )
    raise InputError(
        f"target {target!r} is not a single token of this model's vocabulary. Give one token, "
        "or its id."
    )


def _name(index: int, source: Source) -> str:
    if source.task == "classification":
        # A config may tell another number of classes than its head has (XLM without a projection).
        return dict(enumerate(source.labels)).get(index, f"LABEL_{index}")
    return readable_piece(source.tokenizer, index)


def _span(target: Any, encoding: Encoding, output: Any) -> Target:
    starts, ends = _finite(output.start_logits[0]), _finite(output.end_logits[0])
    n = len(starts)
    if target is None:
        (target,) = _likeliest_spans(starts, ends, encoding, 1)
    if not (isinstance(target, tuple | list) and len(target) == 2):
        raise InputError("target of a question answering model is a pair: target=(start, end).")
    start, end = (_index_in(part, n) for part in target)
    if start > end:
        raise InputError(f"The answer's start {start} is after its end {end}.")
    label = " ".join(token.text for token in encoding.tokens[start : end + 1])
    share = float(starts.softmax(-1)[start] * ends.softmax(-1)[end])
    return Target("span", (start, end), label, None, float(starts[start] + ends[end]), share)


def likely_spans(encoding: Encoding, output: Any, count: int) -> list[tuple[int, int]]:
    """The likeliest answers of a question answering model, as (first, last) token."""
    return _likeliest_spans(output.start_logits[0], output.end_logits[0], encoding, count)


def _likeliest_spans(
    starts: Tensor, ends: Tensor, encoding: Encoding, count: int
) -> list[tuple[int, int]]:
    """Those whose end is not before their start, of the context's own tokens."""
    n = len(starts)
    joint = (starts[:, None] + ends[None, :]).detach().float().cpu()
    pair = encoding.text_pair is not None
    inside = torch.tensor([not pair or (t.segment == 1 and not t.special) for t in encoding.tokens])
    allowed = torch.ones(n, n, dtype=torch.bool).triu() & inside[:, None] & inside[None, :]
    count = min(count, int(allowed.sum()))
    best = joint.masked_fill(~allowed, float("-inf")).flatten().topk(count).indices
    return [divmod(int(place), n) for place in best]


def _index_in(part: Any, n: int) -> int:
    if isinstance(part, bool) or not hasattr(part, "__index__") or not 0 <= part.__index__() < n:
        raise InputError(f"{part!r} is not a token of the text: tokens are 0 to {n - 1}.")
    return int(part.__index__())
