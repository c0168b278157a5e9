"""Explanations as pandas tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from .value import plain_text

if TYPE_CHECKING:
    from .record import Explanation

COLUMNS = [
    "text_id",
    "text",
    "method",
    "kind",
    "layer",
    "row",
    "row_token",
    "column",
    "column_token",
    "value",
]


def explanation_frame(explanation: Explanation) -> pd.DataFrame:
    """Long form: one row per value, see `Explanation.to_frame`."""
    tokens = np.array([str(token) for token in explanation.tokens], dtype=object)
    n = len(tokens)
    frames = []
    if explanation.maps is not None:
        layers = len(explanation.maps)
        layer, row, column = (axis.ravel() for axis in np.indices((layers, n, n)))
        frames.append(_frame("map", layer, row, column, tokens, explanation.maps.ravel()))
    if explanation.layer_scores is not None:
        layer, column = (axis.ravel() for axis in np.indices(explanation.layer_scores.shape))
        values = explanation.layer_scores.ravel()
        frames.append(_frame("layer_score", layer, None, column, tokens, values))
    if explanation.head_scores is not None and explanation.maps is None:  # maps hold them already
        layer, row, column = (axis.ravel() for axis in np.indices(explanation.head_scores.shape))
        values = explanation.head_scores.ravel()
        frames.append(_frame("head_score", layer, row, column, tokens, values))
    frames.append(_frame("score", None, None, np.arange(n), tokens, explanation.scores))
    table = pd.concat(frames, ignore_index=True)
    table["text_id"], table["text"] = explanation.id, plain_text(explanation.text)
    table["method"] = explanation.method
    return table[COLUMNS]


def _frame(
    kind: str,
    layer: np.ndarray | None,
    row: np.ndarray | None,
    column: np.ndarray,
    tokens: np.ndarray,
    values: np.ndarray,
) -> pd.DataFrame:
    count = len(values)
    nothing = pd.array([pd.NA] * count, dtype="Int64")
    return pd.DataFrame(
        {
            "kind": kind,
            "layer": nothing if layer is None else pd.array(layer, dtype="Int64"),
            "row": nothing if row is None else pd.array(row, dtype="Int64"),
            "row_token": [None] * count if kind != "map" else tokens[row],
            "column": column,
            "column_token": tokens[column],
            "value": values,
        }
    )
