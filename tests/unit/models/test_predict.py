"""Edited texts through a language model: its head is run only where something is read."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from mixwidget.engine import prepare
from mixwidget.models import edit, predict
from mixwidget.tokens import Target
from tests.lib import tiny

TEXT = "the film is not bad . we saw it . it is good"
module = importlib.import_module("mixwidget.models.predict")


def asked(family: str, target: Target) -> tuple[Any, Any, list[Any]]:
    case = prepare(tiny.model(family, "CausalLM"), TEXT, tokenizer=tiny.tokenizer(pairs=False))
    n = len(case.encoding.tokens)
    gone = [[i] for i in range(n)] + [list(range(i, n, 3)) for i in range(3)]
    return (
        case.source,
        case.encoding,
        [edit(case.source, case.encoding, target, one, "delete") for one in gone],
    )


@pytest.mark.parametrize("of", ["probability", "logit"])
@pytest.mark.parametrize(
    "target",
    [
        Target("vocabulary", 5, "x", position=12),
        Target("answer", (4, 5, 6), "x", position=(9, 10, 11)),
    ],
    ids=["token", "answer"],
)
@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma2"])
def test_logits_only_where_they_are_read(
    family: str, target: Target, of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, encoding, edits = asked(family, target)
    sizes: list[int] = []
    head = source.model.get_output_embeddings()
    handle = head.register_forward_hook(lambda _m, _i, out: sizes.append(out.shape[1]))
    few = predict(source, encoding, edits, of=of)
    spared = sum(sizes)
    sizes.clear()
    monkeypatch.setattr(module, "_keeps", lambda source: False)
    all_ = predict(source, encoding, edits, of=of)
    handle.remove()
    assert np.allclose(few, all_, rtol=1e-5, atol=1e-12, equal_nan=True)
    assert spared < 0.7 * sum(sizes)
