"""Many texts' scores as a file that grows while they are computed."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

import pandas as pd

from ..engine import token_frame
from ..errors import InputError, MissingExtraError
from ..explanation import Explanation, Failure

ENDINGS = (".csv", ".jsonl", ".parquet")
_AT_ONCE = 256  # texts between two writes


class Table:
    """A .csv or .parquet file with a row for each token, or a .jsonl file with a line for each
    text. A .parquet file is written at the end."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.ending = self.path.suffix.lower()
        if self.ending not in ENDINGS:
            raise InputError(f"{path}: the ending must be {', '.join(ENDINGS)}.")
        if self.ending == ".parquet":
            _check_parquet()
        self._waiting: list[Explanation | Failure] = []
        self._frames: list[pd.DataFrame] = []
        self._begun = False

    def __enter__(self) -> Table:
        if self.ending != ".parquet":
            self.path.write_bytes(
                b""
            )  # what cannot be written is found before anything is computed
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: Any, where: TracebackType | None
    ) -> None:
        self._flush()
        if self.ending == ".parquet" and kind is None:
            frame = pd.concat(self._frames, ignore_index=True) if self._frames else token_frame([])
            frame.to_parquet(self.path, index=False)

    def add(self, result: Explanation | Failure) -> None:
        self._waiting.append(result)
        if len(self._waiting) >= _AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        held, self._waiting = self._waiting, []
        if self.ending == ".jsonl":
            with self.path.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(_entry(one), ensure_ascii=False) + "\n" for one in held)
            return
        frame = token_frame((one, {}) for one in held)
        if self.ending == ".parquet":
            self._frames.append(frame)
        elif held or not self._begun:
            frame.to_csv(self.path, mode="a", index=False, header=not self._begun)
            self._begun = True


def _check_parquet() -> None:
    if find_spec("pyarrow") is None:
        raise MissingExtraError(
            "Writing .parquet needs pyarrow: pip install pyarrow, or write .csv or .jsonl."
        )


def _entry(one: Explanation | Failure) -> dict[str, Any]:
    id = one.id.item() if hasattr(one.id, "item") else one.id
    entry = {"text_id": id, "text": one.text}
    if isinstance(one, Failure):
        return {**entry, "error": f"{type(one.error).__name__}: {one.error}"}
    return {
        **entry,
        **({} if one.text_pair is None else {"text_pair": one.text_pair}),
        "method": one.method,
        "target": one.target.label,
        "probability": one.target.probability,
        "tokens": [token.text for token in one.tokens],
        "special": [token.special for token in one.tokens],
        "scores": [float(score) for score in one.scores],
    }
