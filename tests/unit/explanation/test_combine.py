"""Ways of combining layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mixwidget.explanation import normalise_rows, rollout_rows_by_layer
from mixwidget.explanation.combine import rollout


@pytest.mark.parametrize("combine", ["product", "normalised", "with_identity", "whole"])
def test_rows_of_a_rollout_are_carried_down(combine: Any) -> None:
    maps = np.random.default_rng(0).random((4, 9, 9)).astype(np.float32) * 1e3
    whole = np.stack([normalise_rows(map) for map in rollout(maps, combine)])
    rows = normalise_rows(rollout_rows_by_layer(maps, [2, 7], combine))
    np.testing.assert_allclose(rows, whole[:, [2, 7]], rtol=1e-9)
