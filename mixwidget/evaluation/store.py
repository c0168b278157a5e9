"""What is finished, in a folder: so that a run goes on where another one stopped."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict
from pathlib import Path
from types import CodeType
from typing import Any

from .. import __version__
from ..methods import get_method
from ..models import Source
from .worker import Row, Unit


class Store:
    """Finished rows in a folder: one JSON file for each finished unit, written at once."""

    def __init__(self, folder: str | os.PathLike[str] | None, key: str) -> None:
        self.folder = None if folder is None else Path(folder) / key
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)

    def load(self) -> dict[str, list[Row]]:
        """Rows by example. A file that cannot be read was cut off: its examples run again."""
        found: dict[str, list[Row]] = {}
        for path in sorted(self.folder.glob("*.json")) if self.folder is not None else ():
            try:
                rows = [Row(**row) for row in json.loads(path.read_text(encoding="utf-8"))]
            except (OSError, ValueError, TypeError):
                continue
            mine: dict[str, list[Row]] = {}
            for row in rows:
                mine.setdefault(row.example, []).append(row)
            found.update(mine)
        return found

    def save(self, rows: list[Row]) -> None:
        if self.folder is None or not rows:
            return
        name = hashlib.sha256("".join(sorted({r.example for r in rows})).encode()).hexdigest()[:20]
        part = self.folder / f"{name}.{os.getpid()}.part"
        part.write_text(json.dumps([asdict(row) for row in rows]), encoding="utf-8")
        part.replace(self.folder / f"{name}.json")


def run_key(unit: Unit, source: Source | None, model: Any) -> str:
    """What results depend on besides the texts."""

    groups = (unit.methods, unit.metrics, unit.asks)
    asked: list[Any] = [[(c.label, c.id, c.options) for c in group] for group in groups]
    own = [get_method(choice.id).run for choice in unit.methods]
    asked.append(
        [_code(run.__code__) for run in own if not run.__module__.startswith("mixwidget.")]
    )
    settings = [unit.target, unit.truncate, unit.seed]
    content = [__version__, _fingerprint(source, model), asked, settings]
    text = json.dumps(content, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _code(code: CodeType) -> str:
    """Of a method of one's own: what it computes, which may change under the same id."""
    inner = [_code(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return hashlib.sha256(repr((code.co_code, code.co_names, inner)).encode()).hexdigest()


def _fingerprint(source: Source | None, model: Any) -> str:
    """Of the weights in memory, or of the name and the files behind it."""
    digest = hashlib.sha256()
    if source is None:
        name = os.fspath(model)
        digest.update(name.encode())
        if Path(name).is_dir():
            for path in sorted(Path(name).iterdir()):
                state = path.stat()
                digest.update(f"{path.name}:{state.st_size}:{state.st_mtime_ns}".encode())
        return digest.hexdigest()
    import torch

    digest.update(repr(sorted(source.model.config.to_dict().items(), key=str)).encode())
    for name, tensor in source.model.state_dict().items():
        digest.update(name.encode())
        whole = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(memoryview(whole.view(torch.uint8).numpy()))
    return digest.hexdigest()
