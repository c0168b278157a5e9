"""Explanations as files."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, MixwidgetError
from ..explanation import dumps, plain_text
from .page import page_of_view

if TYPE_CHECKING:
    from ..explanation import Explanation
    from ..session import Shown

_MIME = {
    "html": "text/html",
    "json": "application/json",
    "png": "image/png",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
}

_LONGEST = 40  # characters of each part of a name


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


def exported_view(
    shown: Shown, format: str, traits: Mapping[str, Any] | None, measure: bool = False
) -> tuple[str, str, bytes]:
    """Name, mime type and bytes of what a view shows, see `exported`."""
    return exported(shown.everything(), format, lambda: page_of_view(shown, traits, measure))


def exported(
    explanations: dict[str, Explanation], format: str, page: Callable[[], bytes]
) -> tuple[str, str, bytes]:
    """Name, mime type and bytes: all of them as json, the first one as a picture. `page` gives
    the bytes of an interactive page."""
    _checked(format)
    if not explanations:
        raise MixwidgetError("There is nothing to save yet: wait until it is computed.")
    name = f"{name_of(next(iter(explanations.values())))}.{format}"
    return name, _MIME[format], page() if format == "html" else _bytes(explanations, format)


def name_of(explanation: Explanation) -> str:
    """A file's name that says model, method and text, in letters that every disk takes."""
    model = Path(str(explanation.info.get("model", ""))).name
    parts = (model, explanation.method, plain_text(explanation.text))
    words = ["-".join(re.findall(r"[a-z0-9_]+", part.lower()))[:_LONGEST] for part in parts]
    return "-".join(["mixwidget", *filter(None, (word.strip("-") for word in words))])


def _bytes(explanations: dict[str, Explanation], format: str) -> bytes:
    if format == "json":
        return dumps(explanations.values()).encode()
    buffer = io.BytesIO()
    next(iter(explanations.values())).plot().savefig(buffer, format=format)
    return buffer.getvalue()
