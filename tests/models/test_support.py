"""Every method on every family: it runs and is sound, or refuses with a listed reason."""

from __future__ import annotations

import numpy as np
import pytest

from mixwidget.methods.registry import all_methods
from tests.lib import tiny
from tests.lib.support import NAMES, PAGE, attempt, table, tiny_case
from tests.models.test_sacred import fingerprint

METHODS = [entry.id for entry in all_methods()]


@pytest.mark.parametrize("family", NAMES)
def test_every_method_runs_or_refuses(family):
    case = tiny_case(family)
    layers, n = len(case.trace()), len(case.encoding.tokens)
    before = fingerprint(case.source.model)
    for entry in all_methods():
        e = attempt(entry.id, family)
        assert fingerprint(case.source.model) == before, entry.id
        if isinstance(e, str):
            assert len(e) > 20, f"{entry.id} refuses {family} without a reason"
            continue
        assert e.scores.shape == (n,), entry.id
        assert e.scores.dtype == np.float32
        assert np.isfinite(e.scores).all(), entry.id
        if not entry.signed:
            assert (e.scores >= 0).all(), entry.id
        if entry.yields == "maps":
            assert e.maps.shape == (layers, n, n), entry.id
            assert np.isfinite(e.maps).all(), entry.id
            rows = e.rollout().sum(-1)
            assert np.allclose(rows[rows > 0], 1, atol=1e-4), entry.id
            if case.source.spec.causal:
                assert not np.triu(e.maps, 1).any(), entry.id
        else:
            assert e.maps is None
        if entry.yields == "layer_scores":
            assert e.layer_scores.shape == (layers, n), entry.id


def test_the_page_is_up_to_date():
    assert set(NAMES) == {*tiny.CONFIGS, *tiny.ENCODER_DECODERS}
    assert PAGE.read_text(encoding="utf-8") == table(), "run: python -m tests.lib.support --write"
