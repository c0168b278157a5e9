"""Long texts: a layer at a time gives the very numbers of the whole record."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mixwidget import explain
from mixwidget.engine import prepare
from mixwidget.models import sparing
from tests.lib import tiny

TEXT = "the film is not bad . we saw it . it is good"
METHODS = ["attention_rollout", "alti", "globenc", "value_zeroing", "gae", "gradient_x_input"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("family", ["llama", "gpt2", "gemma2"])
def test_a_layer_at_a_time_is_exact(
    family: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, tokenizer = tiny.model(family, "CausalLM"), tiny.tokenizer(pairs=False)
    whole = explain(model, TEXT, method, tokenizer=tokenizer)
    monkeypatch.setattr(sparing, "_LARGE", 0)
    monkeypatch.setattr(sparing, "_PROOF_TOKENS", 4)
    trace = prepare(model, TEXT, tokenizer=tokenizer).trace()
    assert isinstance(trace, sparing.LongTrace)
    assert all(layer.weights is None for layer in trace.held)
    late = trace.output.logits
    assert isinstance(late, sparing.LateLogits) is (family != "gemma2")  # which caps them
    with torch.no_grad():
        logits = model(**trace.inputs).logits
    assert torch.allclose(late[:, 3], logits[:, 3], atol=1e-5)
    assert torch.allclose(late[0, [2, 5]], logits[0, [2, 5]], atol=1e-5)
    assert late.shape == logits.shape
    long = explain(model, TEXT, method, tokenizer=tokenizer)
    assert np.allclose(long.scores, whole.scores, rtol=1e-6, atol=1e-9)
    if whole.maps is not None:
        assert np.allclose(long.maps, whole.maps, rtol=1e-5, atol=1e-9)
        assert max(long.info["adds_up"]) < 1e-5
