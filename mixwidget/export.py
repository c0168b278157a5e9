"""Explanations as files."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .describe import plain
from .errors import InputError, MixwidgetError

if TYPE_CHECKING:
    from .explanation import Explanation

_MIME = {
    "json": "application/json",
    "png": "image/png",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
}


def format_of(path: str | Path) -> str:
    """The format a path's ending stands for."""
    ending = Path(path).suffix.lower().removeprefix(".")
    return _checked(ending)


def _checked(format: str) -> str:
    if format not in _MIME:
        raise InputError(f"Cannot write {format or 'a file without an ending'!r}: use {_known()}.")
    return format


def _known() -> str:
    return ", ".join(_MIME)


def export(explanations: dict[str, Explanation], format: str) -> tuple[str, str, bytes]:
    """Name, mime type and bytes: all of them as json, the first one as a picture."""
    _checked(format)
    if not explanations:
        raise MixwidgetError("There is nothing to save yet: wait until it is computed.")
    name = f"mixwidget-{next(iter(explanations))}.{format}"
    return name, _MIME[format], _bytes(explanations, format)


def _bytes(explanations: dict[str, Explanation], format: str) -> bytes:
    if format == "json":
        whole = {"explanations": [as_dict(one) for one in explanations.values()]}
        return json.dumps(whole, ensure_ascii=False).encode()
    buffer = io.BytesIO()
    next(iter(explanations.values())).plot().savefig(buffer, format=format)
    return buffer.getvalue()


def as_dict(explanation: Explanation) -> dict[str, Any]:
    """All of an explanation in plain values."""
    target = explanation.target
    return {
        "method": explanation.method,
        "params": plain(explanation.params),
        "tokens": [{"piece": str(token), **token.as_dict()} for token in explanation.tokens],
        "focus": explanation.focus,
        "target": {
            "kind": target.kind,
            "index": plain(target.index),
            "label": target.label,
            "probability": target.probability,
        },
        "maps": plain(explanation.maps),
        "layer_scores": plain(explanation.layer_scores),
        "scores": plain(explanation.scores),
        "info": plain(explanation.info),
    }
