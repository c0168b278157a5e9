"""Where the shared reference material is, for the tests that compare with it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest


def shared_folder(*parts: str) -> Path:
    """A path under $MIXWIDGET_SHARED, or under `shared` beside the checkout; skips if absent."""
    root = os.environ.get("MIXWIDGET_SHARED")
    folder = Path(root) if root else Path(__file__).resolve().parents[3] / "shared"
    path = folder.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"the shared reference material is not here ({'/'.join(parts)})")
    return path


def golden(name: str) -> tuple[Path, str, dict[str, Any]]:
    """(model folder, text, arrays) of one reference set, "s0" or "s1"."""
    texts = json.loads(shared_folder("golden", "texts.json").read_text())
    text = next(entry["text"] for entry in texts if entry["id"] == name)
    with np.load(shared_folder("golden", f"M2_{name}.npz")) as arrays:
        return shared_folder("golden", "M2"), text, dict(arrays)
