"""Families that nobody told us about: their wiring is found by watching, and must add up."""

from __future__ import annotations

import pytest
import torch
import transformers

from mixwidget import explain
from mixwidget.errors import UnsupportedModelError
from mixwidget.models import spec_for
from mixwidget.models.discover import _discover
from tests.lib import tiny
from tests.models.test_sacred import fingerprint

TEXT = "the film is not bad ."
PLACES = ("wiring", "out", "norm2", "after1", "after2", "up", "gate", "gate_up", "down", "act")
SMALL = {
    "vocab_size": len(tiny.VOCAB),
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
GROUPED = {**SMALL, "num_key_value_heads": 2, "head_dim": 8}
ROTARY = {"vocab_size": 30, "n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4}
UNKNOWN = {
    "biogpt": SMALL,
    "ernie": SMALL,
    "gemma3_text": {**GROUPED, "query_pre_attn_scalar": 8},
    "glm4": GROUPED,
    "gptj": {**ROTARY, "n_positions": 64},
    "mpt": {"vocab_size": 30, "d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 64},
    "olmo2": GROUPED,
    "rembert": {**SMALL, "input_embedding_size": 16, "output_embedding_size": 16},
    "smollm3": GROUPED,
    "starcoder2": GROUPED,
}


def built(family, shape):
    torch.manual_seed(0)
    model = transformers.AutoModel.from_config(transformers.AutoConfig.for_model(family, **shape))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.15)
    return model.eval()


@pytest.mark.parametrize("family", [name for name in tiny.CONFIGS if name != "albert"])
def test_finds_what_the_table_says(family):
    model = tiny.model(family, "")
    before = fingerprint(model)
    found, known = _discover(model), spec_for(model.config)
    assert fingerprint(model) == before
    assert {p: getattr(found, p) for p in PLACES} == {p: getattr(known, p) for p in PLACES}
    assert (found.causal, found.by_hand, found.norm_offset) == (
        (known.causal, known.by_hand, known.norm_offset)
    )


@pytest.mark.parametrize("family", UNKNOWN)
def test_unknown_families_work_without_a_line_of_code(family):
    with pytest.raises(UnsupportedModelError):
        spec_for(transformers.AutoConfig.for_model(family))
    model = built(family, UNKNOWN[family])
    for method in ("alti", "value_zeroing"):
        e = explain(model, TEXT, method=method, tokenizer=tiny.tokenizer())
        assert max(e.info["adds_up"]) < 1e-4
        assert e.maps.shape == (2, 8, 8)


@pytest.mark.parametrize(
    ("family", "shape", "reason"),
    [
        ("mixtral", {**GROUPED, "num_local_experts": 4}, "no known wiring"),
        ("mamba", {"vocab_size": 30, "hidden_size": 32, "num_hidden_layers": 2}, "attention"),
        ("granite", {**GROUPED, "residual_multiplier": 0.3}, "no known wiring"),
    ],
)
def test_what_does_not_add_up_is_refused_with_a_reason(family, shape, reason):
    model = built(family, shape)
    before = fingerprint(model)
    with pytest.raises(UnsupportedModelError, match=reason):
        explain(model, TEXT, method="alti", tokenizer=tiny.tokenizer())
    assert fingerprint(model) == before


def test_part_of_a_model_is_not_taken_for_the_whole():
    """ALBERT keeps its layers in groups: a list of some of them is not enough."""
    with pytest.raises(UnsupportedModelError, match="of its 3 layers"):
        _discover(tiny.model("albert", ""))
