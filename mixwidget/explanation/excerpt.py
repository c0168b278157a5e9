"""What a file holds of maps that are too large for it: rows, the strongest columns, overviews."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..protocol import shrink
from .combine import normalise_rows, rollout_rows_by_layer

if TYPE_CHECKING:
    from .record import Explanation

# Maps with more bytes are left out of a file; as text they take a third more.
LARGE = 6_000_000
_COLUMNS = 8


def is_large(one: Explanation) -> bool:
    return one.maps is not None and one.maps.nbytes > LARGE


def excerpt(one: Explanation) -> dict[str, Any]:
    """Of maps [L, n, n]: the row that is read in each layer, and of the rollout up to it; the
    columns of the strongest tokens; an overview of each layer, the largest of each patch."""
    maps = one.maps
    assert maps is not None
    strongest = np.argsort(-np.abs(one.scores), kind="stable")[:_COLUMNS]
    layers, n, _ = maps.shape
    said = (
        f"maps of {layers} layers, {n} x {n}: of each the row of token "
        f"{one.focus}, the columns of the {len(strongest)} strongest tokens and an overview are "
        "kept. to_json(whole=True) keeps all."
    )
    return {
        "left_out": said,
        "rows": maps[:, one.focus],
        "rollout_rows": _rolled(one),
        "columns_of": [int(place) for place in strongest],
        "columns": maps[:, :, strongest].astype(np.float16),
        "overviews": np.stack([shrink(map) for map in maps]).astype(np.float16),
    }


def _rolled(one: Explanation) -> NDArray[np.float32] | None:
    """The row of the rollout up to each layer; none of flows, which would take long."""
    if one.combine == "flow" or one.maps is None:
        return None
    found = rollout_rows_by_layer(one.maps, [one.focus], one.combine)[:, 0]
    found = found if one.combine == "with_identity" else normalise_rows(found)
    return np.asarray(found, dtype=np.float32)
