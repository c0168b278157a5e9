"""What several models are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ..errors import InputError


def named(paths: Sequence[str], names: Sequence[str] | None = None) -> list[str]:
    """As the caller calls them; else by the last parts of their paths, numbered where equal."""
    if names is None:
        called = _numbered(paths)
    else:
        called = [names] if isinstance(names, str) else [str(name) for name in names]
    if len(called) != len(paths) or len(set(called)) < len(called):
        raise InputError(f"names must be {len(paths)} different names, one for each model.")
    return called


def _numbered(paths: Sequence[str]) -> list[str]:
    short = [Path(path).name or path for path in paths]
    often, seen = Counter(short), Counter[str]()
    found = []
    for name in short:
        seen[name] += 1
        found.append(f"{name} {seen[name]}" if often[name] > 1 else name)
    return found
