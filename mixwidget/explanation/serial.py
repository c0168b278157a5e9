"""Explanations as JSON and back, without losing a bit.

A file is `{"format": "mixwidget", "version": 1, "explanations": [...]}`. Scores are plain
numbers that any program can read. Other arrays are `{"$array": {"dtype", "shape", "data"}}`
with `data` the base64 of the little-endian, row-major bytes. Maps of long texts are left out but
for an excerpt, which says so: `info["excerpt"]` (excerpt.py).
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..tokens import Target, Token
from .answer import Answer
from .excerpt import excerpt, is_large

if TYPE_CHECKING:
    from .record import Explanation

# The class of explanations: its own module reads and writes them, and so imports this one.
Make = Callable[..., "Explanation"]

FORMAT, VERSION = "mixwidget", 1
_ARRAYS = ("maps", "layer_scores", "own_scores", "head_scores")
_ODD_FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


class NotAnExplanationError(InputError):
    """A file or text that holds no explanation that can be read."""


def dumps(explanations: Iterable[Explanation], whole_maps: bool = False) -> str:
    """Any number of explanations as one JSON text; with `whole_maps` those of long texts too."""
    entries = [_entry(one, whole_maps) for one in explanations]
    whole = {"format": FORMAT, "version": VERSION, "explanations": entries}
    return json.dumps(whole, ensure_ascii=False, allow_nan=False)


def loads(text: str | bytes, make: Make) -> list[Explanation]:
    """The explanations of a JSON text; `make` is their class."""
    try:
        whole = json.loads(text)
    except ValueError as error:
        raise NotAnExplanationError(f"This is not JSON: {error}.") from error
    if not isinstance(whole, dict) or whole.get("format") != FORMAT:
        raise NotAnExplanationError("This JSON was not written by mixwidget.")
    if whole.get("version") != VERSION:
        raise NotAnExplanationError(
            f"The file has version {whole.get('version')!r}, this mixwidget reads {VERSION}. "
            "Update mixwidget, or save the explanation again."
        )
    try:
        return [_explanation(entry, make) for entry in whole["explanations"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise NotAnExplanationError(f"The file is damaged ({reason}).") from error


def read(source: str | bytes | os.PathLike[str], make: Make) -> list[Explanation]:
    """The explanations of a file, or of a JSON text."""
    if isinstance(source, str) and not source.lstrip().startswith(("{", "[")):
        source = Path(source)
    if isinstance(source, os.PathLike):
        try:
            source = Path(source).read_bytes()
        except OSError as error:
            raise NotAnExplanationError(
                f"{os.fspath(source)!r} cannot be read: {error.strerror or error}."
            ) from error
    return loads(source, make)


def read_one(
    source: str | bytes | os.PathLike[str], make: Make, method: str | None = None
) -> Explanation:
    """The one explanation of a file or text; `method` chooses if there are several."""
    found = read(source, make)
    held = ", ".join(one.method for one in found) or "no explanation"
    if method is not None:
        found = [one for one in found if one.method == method]
    if len(found) != 1:
        raise NotAnExplanationError(
            f"The file holds {held}; say which with method=..."
            if method is None
            else f"The file holds {held}, and not one of {method}."
        )
    return found[0]


def _entry(one: Explanation, whole_maps: bool) -> dict[str, Any]:
    info = one.info
    if is_large(one) and not whole_maps:
        info = {**info, "excerpt": excerpt(one)}
        one = replace(one, own_scores=one.scores, maps=None)
    return {
        "method": one.method,
        "id": encode(one.id),
        "text": one.text,
        "text_pair": one.text_pair,
        "tokens": [{"piece": str(token), **token.as_dict()} for token in one.tokens],
        "focus": one.focus,
        "target": encode(asdict(one.target)),
        "scores": encode([float(score) for score in one.scores]),
        **{name: encode(getattr(one, name)) for name in _ARRAYS},
        "params": encode(one.params),
        "info": encode(info),
        "combine": one.combine,
        "scores_from": one.scores_from,
        "answer": None if one.answer is None else [one.answer.start, one.answer.stop],
        "answered": None if one.answered is None else _answered(one.answered),
    }


def _answered(answer: Answer) -> dict[str, Any]:
    """The answer with the rows that are known; its steps are computed again from these or not."""
    return {
        "text": answer.text,
        "places": answer.places,
        "targets": [encode(asdict(target)) for target in answer.targets],
        "apart": answer.apart,
        "from_maps": answer.from_maps,
        "rows": {str(t): encode(row) for t, row in answer.rows.items()},
        "needed": encode(answer.needed),
    }


def _answer(held: dict[str, Any] | None) -> Answer | None:
    if held is None:
        return None
    rows = {int(t): decode(row) for t, row in held["rows"].items()}
    targets = [Target(**decode(target)) for target in held["targets"]]
    known = {name: held[name] for name in ("text", "places", "apart", "from_maps")}
    return Answer(**known, targets=targets, rows=rows, needed=decode(held["needed"]))


def _explanation(entry: dict[str, Any], make: Make) -> Explanation:
    tokens = [
        Token(known["piece"], **{k: v for k, v in known.items() if k != "piece"})
        for known in entry["tokens"]
    ]
    arrays = {name: decode(entry.get(name)) for name in _ARRAYS}
    scores = np.array(decode(entry["scores"]), dtype=np.float32)
    if scores.shape != (len(tokens),):
        raise ValueError(f"{len(tokens)} tokens, but {scores.size} scores")
    for name, array in arrays.items():
        if array is not None and array.shape[-1] != len(tokens):
            raise ValueError(f"{name} has the shape {array.shape} for {len(tokens)} tokens")
    made = make(
        method=entry["method"],
        tokens=tokens,
        focus=entry["focus"],
        target=Target(**decode(entry["target"])),
        params=decode(entry["params"]),
        info=decode(entry["info"]),
        combine=entry["combine"],
        scores_from=entry["scores_from"],
        text=entry.get("text", ""),  # files of before have none
        text_pair=entry.get("text_pair"),
        id=decode(entry.get("id")),
        answer=slice(*held) if (held := entry.get("answer")) else None,
        answered=_answer(entry.get("answered")),
        **arrays,
    )
    made.__dict__["scores"] = scores  # a product of maps may differ in its last bits elsewhere
    return made


def encode(value: Any) -> Any:
    """A value as strict JSON can hold it; what JSON has no form for is tagged with a "$"."""
    if hasattr(value, "detach"):  # a tensor, told without importing torch
        value = value.detach().cpu().numpy()
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else {"$float": str(value)}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        # "little" also on a machine that is not; ascontiguousarray would make () into (1,)
        data = np.asarray(value, dtype=value.dtype.newbyteorder("<"), order="C")
        held = base64.b64encode(data.tobytes()).decode("ascii")
        return {"$array": {"dtype": data.dtype.str, "shape": list(data.shape), "data": held}}
    if isinstance(value, np.ndarray):
        return encode(value.tolist())
    if isinstance(value, dict):
        return {str(key): encode(entry) for key, entry in value.items()}
    if isinstance(value, tuple):
        return {"$tuple": [encode(entry) for entry in value]}
    if isinstance(value, list):
        return [encode(entry) for entry in value]
    return str(value)


def decode(value: Any) -> Any:
    """What `encode` made, as it was; strings that stood for other objects stay strings."""
    if isinstance(value, list):
        return [decode(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"$array"}:
        held = value["$array"]
        stored = np.dtype(held["dtype"])
        if stored.kind not in "biuf":
            raise ValueError(f"arrays of {stored} are not read")
        data = np.frombuffer(base64.b64decode(held["data"], validate=True), dtype=stored)
        native = stored.newbyteorder("=")
        return data.astype(native).reshape(held["shape"])  # a copy that can be written to
    if value.keys() == {"$tuple"}:
        return tuple(decode(entry) for entry in value["$tuple"])
    if value.keys() == {"$float"}:
        return _ODD_FLOATS[value["$float"]]
    return {key: decode(entry) for key, entry in value.items()}
