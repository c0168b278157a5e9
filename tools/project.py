"""pyproject.toml, on every Python that the project supports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10; pip is in every environment and brings a copy
    from pip._vendor import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent


def read_project() -> dict[str, Any]:
    """The whole of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
