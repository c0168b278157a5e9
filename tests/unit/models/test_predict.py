"""Edited texts through a language model: its head is run only where something is read."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
import torch

from mixwidget.engine import prepare
from mixwidget.models import By, edit, predict
from mixwidget.models.answers import bare_target
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


@pytest.mark.parametrize("family", ["llama", "gpt2", "opt", "bloom", "gemma2"])
@pytest.mark.parametrize("by", ["delete", "mask"])
def test_what_stands_before_the_first_change_is_read_once(
    family: str, by: By, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = tiny.tokenizer(pairs=False)
    if family == "gpt2":  # what is removed is left out of attention
        tokenizer.mask_token = tokenizer.unk_token = tokenizer.pad_token = None
    model, lengths = tiny.model(family, "CausalLM"), list[int]()
    table = model.get_input_embeddings()
    table.register_forward_pre_hook(lambda _, given: lengths.append(given[0].shape[-1]))
    case = prepare(model, TEXT, tokenizer=tokenizer, answer=[9, 8, 11])
    target, n = bare_target(case.encoding), case.encoding.prompt
    assert n is not None
    gone = [(), *[(i,) for i in range(n)], (3, 4), (5, 6, 7), range(6, n), range(1, n)]
    edits = [edit(case.source, case.encoding, target, one, by) for one in gone]
    plain = predict(case.source, case.encoding, edits)
    monkeypatch.setattr("mixwidget.models.reuse._WORTH", 2)
    monkeypatch.setattr("mixwidget.models.reuse._SHARE", 0.0)
    before = len(lengths)
    found = predict(case.source, case.encoding, edits)
    assert torch.allclose(found, plain, atol=1e-5)
    cannot = family == "gemma2"  # a window forgets what stands before it
    assert case.source.anatomy.reuses is not cannot
    if not cannot:
        assert min(lengths[before:]) < len(case.encoding.tokens) / 2
