"""Text, model and methods in plain values, as the browser shows them."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import (
    InputError,
    MixwidgetError,
    ModelInputError,
    TextTooLongError,
    TokenizerNotFoundError,
    UnsupportedMethodError,
    UnsupportedModelError,
)

if TYPE_CHECKING:
    from ..methods import Method
    from ..models import Case, Encoding, Size, Trace
    from ..tokens import Target

_MOST_TARGETS = 20
_LOG = 'The traceback is in the log: logging.getLogger("mixwidget").'

EMPTY_MODEL: dict[str, Any] = {
    "name": "",
    "task": "",
    "layers": 0,
    "layer_names": [],
    "heads": 0,
    "labels": [],
    "prediction": None,
    "targets": [],
    "adds_up": [],
    "limit": None,
    "answer": None,
    "whole": False,
    "cut": 0,
    "first": [],
}


def plain(value: Any) -> Any:
    """A value as JSON can hold it: arrays and tuples become lists."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(entry) for entry in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return str(value)


def fingerprint(*parts: Any) -> str:
    """A short name that is the same for the same values, in any process."""
    text = json.dumps(plain(parts), sort_keys=True, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def tokens(encoding: Encoding) -> list[dict[str, Any]]:
    chat = isinstance(encoding.text, list)
    return [
        {
            "piece": str(token),
            "text": token.text,
            "index": index,
            "special": token.special,
            "word": token.word,
            "segment": token.segment,
            **({"role": token.role, "message": token.message} if chat else {}),
        }
        for index, token in enumerate(encoding.tokens)
    ]


def read_at(case: Case, target: Target | None = None) -> int:
    """Where the prediction is read, whatever row is looked at; of an answer its last token's, of
    a question's answer its first."""
    from ..models import answering_row, check_focus

    if case.encoding.answer is not None:
        return case.encoding.answer.stop - 2
    if target is None:
        return check_focus(None, case.source, case.encoding)
    return answering_row(case.source, case.encoding, target)


def model_info(
    case: Case, predicted: Target, focus: int, answer: int, adds_up: list[float]
) -> dict[str, Any]:
    """What the model is and what it says about the text; needs the recorded pass."""
    from ..methods import first_choices

    source, trace = case.source, case.trace()
    return {
        "name": Path(source.name).name if os.path.isabs(source.name) else source.name,
        "task": source.task,
        "layers": len(trace),
        "layer_names": _layer_names(trace),
        "heads": trace.heads,
        "labels": source.labels,
        "prediction": None
        if predicted.kind == "none"
        else {
            "label": predicted.label,
            "index": plain(predicted.index),
            "probability": _rounded(predicted.probability),
        },
        "targets": targets(case, predicted, focus),
        "whole": case.encoding.answer is not None,
        "adds_up": [float(f"{error:.3g}") for error in adds_up],
        "limit": source.limit,
        # Where the answer is read, whatever row is looked at.
        "answer": answer,
        "cut": case.encoding.told.get("cut", 0),
        # Methods to begin with, and in a few words what each tells.
        "first": [{"id": id, "why": why} for id, why in first_choices(source)],
    }


def _layer_names(trace: Trace) -> list[str]:
    """What layers are called besides their numbers, and of those without attention how much of
    what leaves them they wrote; empty where the number says all."""
    names = [name.removeprefix(f"layer {k}").lstrip(", ") for k, name in enumerate(trace.names)]
    for layer in sorted(set(range(len(trace))) - set(trace.attending)):
        names[layer] += f", wrote {trace.written(layer):.0%} of what leaves it"
    return names if any(names) else []


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 6)


def told(info: dict[str, Any]) -> dict[str, Any]:
    """What an explanation says about itself and a view is to show: its balance, with the function
    without a rule that kept most; the heads that it was given, and where they come from."""
    found: dict[str, Any] = {}
    if (balance := info.get("balance")) is not None:
        unmet = info.get("rules", {}).get("unmet", {})
        worst = max(unmet, key=lambda name: abs(balance.get(name, 0.0)), default="")
        error = float(f"{balance['error']:.3g}")
        found["balance"] = {"error": error, "unmet": worst if balance.get(worst) else ""}
    if "mask_note" in info:
        found |= {"mask": plain(info["mask"]), "mask_note": info["mask_note"]}
    return found


def targets(case: Case, predicted: Target, focus: int) -> list[dict[str, Any]]:
    """What can be explained, most probable first: classes, or the likeliest tokens or answers."""
    from ..models import likely_spans, resolve_target

    output = case.trace().output
    if predicted.kind == "span":
        spans = likely_spans(case.encoding, output, _MOST_TARGETS)
        return [
            _choice(resolve_target(span, case.source, case.encoding, output, focus))
            for span in spans
        ]
    if predicted.kind not in ("class", "token"):
        return [] if predicted.kind == "none" else [_choice(predicted)]
    logits = output.logits if hasattr(output, "logits") else output.prediction_logits
    row = logits[0] if predicted.position is None else logits[0, predicted.position]
    best = row.detach().float().topk(min(_MOST_TARGETS, len(row))).indices.tolist()
    if predicted.index not in best:  # an answer's token that the model would not have chosen
        best.append(predicted.index)
    return [
        _choice(resolve_target(index, case.source, case.encoding, output, focus)) for index in best
    ]


def _choice(target: Target) -> dict[str, Any]:
    return {
        "value": plain(target.index),
        "label": target.label,
        "probability": _rounded(target.probability),
    }


def catalogue(case: Case, predicted: Target) -> list[dict[str, Any]]:
    """Every method with what it says about itself and what it would cost for this text."""
    from ..methods import all_methods

    size = case.size()
    return [_entry(method, size, refusal(method, case, predicted)) for method in all_methods()]


def _entry(method: Method, size: Size, reason: str) -> dict[str, Any]:
    from ..methods import formula_lines

    return {
        "id": method.id,
        "title": method.title,
        "family": method.family,
        "yields": method.yields,
        "combine": method.combine,
        "passed": method.scores_from == "first",
        "signed": method.signed,
        "says": method.says,
        "class_specific": method.class_specific,
        "any_focus": method.any_focus,
        "paper": method.paper,
        "year": method.year,
        "link": method.link,
        "measures": method.measures,
        "formula": method.formula,
        "mathml": list(formula_lines(method.formula)),
        "ignores": method.ignores,
        "cost": float(f"{method.cost(size):.2g}"),
        "available": not reason,
        "reason": reason,
        "options": [
            {
                "name": option.name,
                "default": plain(option.default),
                "choices": plain(option.choices),
                "help": option.help,
            }
            for option in method.params
        ],
    }


def refusal(method: Method, case: Case, predicted: Target) -> str:
    """Why a method cannot be used on this model, "" if it can: what is known without running."""
    from ..methods import check_defined

    try:
        check_defined(method, case.source, predicted)
    except UnsupportedMethodError as error:
        return str(error)
    return ""


def in_words(error: BaseException) -> tuple[str, str]:
    """An error as (message, hint) for people who see only the widget."""
    if isinstance(error, TextTooLongError):
        text = f"The text has {error.tokens} tokens, but the model takes at most {error.limit}."
        return text, "Shorten the text and run again, or pass truncate=True to MixView."
    if isinstance(error, ModelInputError | TokenizerNotFoundError | UnsupportedModelError):
        return str(error), "Make a new MixView with another model or tokenizer."
    if isinstance(error, UnsupportedMethodError):
        return str(error), "Choose another method."
    if isinstance(error, InputError):
        return str(error), "Change the text, the target or the option, and run again."
    if isinstance(error, MixwidgetError):
        return str(error), _LOG
    if isinstance(error, MemoryError) or "out of memory" in str(error).lower():
        return "There is not enough memory for this.", "Use a shorter text or another method."
    first = (str(error).strip().splitlines() or [""])[0]
    name = type(error).__name__
    return (f"{name}: {first}" if first else name), f"Try another method or text. {_LOG}"
