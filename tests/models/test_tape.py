"""Families that nobody told us about, taken apart from the tape: it must say what specs say."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers

from mixwidget import explain
from mixwidget.blocks import (
    STAGES,
    part_distances,
    proximity,
    shares,
    vector_norms,
    zeroing_distances,
)
from mixwidget.engine import prepare
from mixwidget.errors import UnsupportedModelError
from mixwidget.models import record, shadow, spec_for
from mixwidget.models.anatomy import Anatomy, probed
from mixwidget.session.describe import model_info
from tests.lib import tiny
from tests.models.test_sacred import fingerprint

TEXT = "the film is not bad ."
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
EXPERTS = {
    **GROUPED,
    "num_local_experts": 4,
    "num_experts": 4,
    "moe_intermediate_size": 16,
    "num_experts_per_tok": 2,
}
UNKNOWN = {
    "biogpt": SMALL,
    "cohere": GROUPED,
    "ernie": SMALL,
    "gemma3_text": {**GROUPED, "query_pre_attn_scalar": 8},
    "glm4": GROUPED,
    "gptj": {**ROTARY, "n_positions": 64},
    "granite": {**GROUPED, "residual_multiplier": 0.3},
    "mixtral": EXPERTS,
    "mpt": {"vocab_size": 30, "d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 64},
    "olmo": GROUPED,
    "olmo2": GROUPED,
    "qwen3_moe": EXPERTS,
    "rembert": {**SMALL, "input_embedding_size": 16, "output_embedding_size": 16},
    "smollm3": GROUPED,
    "starcoder2": GROUPED,
}


def built(family, shape):
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(family, **shape)
    model = transformers.AutoModel.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.15)
    return model.eval()


def both_ways(model, **text):
    """The recorded pass by the family's spec, and by the tape."""
    before = fingerprint(model)
    case = prepare(model, TEXT, tokenizer=tiny.tokenizer(), **text)
    known, found = case.source.anatomy, probed(model)
    assert known.spec is not None
    assert found.spec is None
    assert (found.causal, found.decodes) == (known.causal, known.decodes)
    traces = [record(shadow(model), case.encoding.inputs, way) for way in (known, found)]
    assert fingerprint(model) == before
    return traces


FAMILIES = [(name, "", {}) for name in tiny.CONFIGS] + [
    (name, "Seq2SeqLM", {"text_pair": "a good film"}) for name in tiny.ENCODER_DECODERS
]


@pytest.mark.parametrize(("family", "head", "text"), FAMILIES)
def test_the_tape_says_what_the_spec_says(family, head, text):
    """Every stage of every block within 1e-5, and what methods make of it."""
    spec, tape = both_ways(tiny.model(family, head), **text)
    assert len(spec) == len(tape)
    for layer in range(len(spec)):
        one, other = spec.block(layer), tape.block(layer)
        assert tape.adds_up(layer) < 1e-5
        rows = spec.layers[layer].rows
        assert other.causal == one.causal
        for name in STAGES:
            mine, theirs = one.stage(name), other.stage(name)
            for part in ("whole", "residual"):
                expected, got = getattr(mine, part), getattr(theirs, part)
                assert (expected is None) == (got is None), (name, part)
                if expected is not None:
                    gap = (expected - got)[rows].norm() / expected[rows].norm()
                    assert gap < 1e-5, (layer, name, part)
            gap = (vector_norms(one, mine) - vector_norms(other, theirs))[rows].norm()
            assert gap < 1e-5 * vector_norms(one, mine)[rows].norm(), (layer, name)
        stages = one.stage("res_ln"), other.stage("res_ln")
        near = [
            proximity(b, s, part_distances(b, s, 1), 1)[rows]
            for b, s in zip((one, other), stages, strict=True)
        ]
        assert torch.allclose(*near, atol=1e-5)
        mine, theirs = shares(one), shares(other)
        assert torch.allclose(mine.map[rows], theirs.map[rows], atol=1e-5)
        if not bool(theirs.feed_forward.isnan().any()):  # a norm behind it hides it from the tape
            assert torch.allclose(mine.feed_forward[rows], theirs.feed_forward[rows], atol=1e-5)


@pytest.mark.parametrize("family", UNKNOWN)
def test_unknown_families_work_without_a_line_of_code(family):
    with pytest.raises(UnsupportedModelError):
        spec_for(transformers.AutoConfig.for_model(family))
    model = built(family, UNKNOWN[family])
    for method in ("alti", "value_zeroing"):
        e = explain(model, TEXT, method=method, tokenizer=tiny.tokenizer())
        assert max(e.info["adds_up"]) < 1e-4
        assert e.maps.shape == (2, 8, 8)


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "gemma2", "phi"])
def test_value_zeroing_by_running_again_is_value_zeroing_by_algebra(family):
    for one, other in [both_ways(tiny.model(family, "").double())]:
        for layer in range(len(one)):
            moved = [zeroing_distances(way.block(layer), "euclidean") for way in (one, other)]
            assert torch.allclose(*moved, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("family", "shape", "reason"),
    [
        ("mamba", {"vocab_size": 30, "hidden_size": 32, "num_hidden_layers": 2}, "recurrence"),
        ("fnet", SMALL, "mixes tokens in another way"),
    ],
)
def test_what_is_not_understood_is_refused_with_a_reason(family, shape, reason):
    model = built(family, shape)
    before = fingerprint(model)
    with pytest.raises(UnsupportedModelError, match=reason):
        explain(model, TEXT, method="alti", tokenizer=tiny.tokenizer())
    assert fingerprint(model) == before


HYBRID = {
    **GROUPED,
    "num_hidden_layers": 3,
    "attn_layer_period": 2,
    "attn_layer_offset": 1,
    "mamba_dt_rank": 4,
    "num_experts": 2,
}


def test_routes_of_gated_heads_are_shares_of_what_they_make():
    """With a gate each head's part is a token's own: taken one by one they are still the whole."""
    model = built("qwen3_next", {**EXPERTS, "num_hidden_layers": 4, "full_attention_interval": 2})
    case = prepare(model, TEXT, tokenizer=tiny.tokenizer())
    trace = case.trace()
    blocks = [trace.block(n) for n, layer in enumerate(trace.layers) if layer.taped is not None]
    gated = [block for block in blocks if block.stage("res").carry is not None]
    assert gated
    for block in gated:
        stage = block.stage("res")
        made = shares(block)
        assert torch.allclose(made.map.sum(-1), torch.ones(block.tokens), atol=1e-5)
        heads = torch.stack([stage.carry(one).sum(0) for one in brought_by_head(block)]).sum(0)
        assert torch.allclose(heads + stage.residual, stage.whole, atol=1e-4)


def brought_by_head(block):
    """What each head alone brings from every token to every token, [n, n, H, d_head]."""
    for head in range(block.heads):
        taken = block.weights[head].T[..., None] * block.values[head][:, None]
        brought = taken.new_zeros(*taken.shape[:2], block.heads, taken.shape[-1])
        brought[:, :, head] = taken
        yield brought


def test_layers_that_do_not_attend_are_named_with_their_share():
    model = built("jamba", HYBRID)
    with pytest.warns(UserWarning, match="without attention"):
        e = explain(model, TEXT, method="alti", tokenizer=tiny.tokenizer())
    assert set(e.info["without_attention"]) == {0, 2}
    assert e.info["layers"][0].endswith("without attention")
    for layer, share in e.info["without_attention"].items():
        assert 0 < share < 1
        np.testing.assert_array_equal(e.maps[layer], np.eye(8))
    assert not np.array_equal(e.maps[1], np.eye(8))
    names = model_info(
        prepare(model, TEXT, tokenizer=tiny.tokenizer()), e.target, e.focus, e.focus, []
    )
    shares = e.info["without_attention"]
    assert names["layer_names"] == [
        f"without attention, wrote {shares[0]:.0%} of what leaves it",
        "",
        f"without attention, wrote {shares[2]:.0%} of what leaves it",
    ]


def test_a_stale_matrix_is_found_out():
    """What was kept of a model is proved in every pass: its weights may have been trained on."""
    model = built("mixtral", EXPERTS)
    first = explain(model, TEXT, method="globenc", tokenizer=tiny.tokenizer())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.1).add_(torch.randn_like(parameter) * 0.1)
    second = explain(model, TEXT, method="globenc", tokenizer=tiny.tokenizer())
    fresh = built("mixtral", EXPERTS)
    fresh.load_state_dict(model.state_dict())
    anew = explain(fresh, TEXT, method="globenc", tokenizer=tiny.tokenizer())
    assert np.abs(first.maps - second.maps).max() > 1e-2
    np.testing.assert_allclose(second.maps, anew.maps, rtol=1e-4, atol=1e-6)


def test_a_spec_that_does_not_fit_is_not_used():
    model = tiny.model("bert")
    case = prepare(model, TEXT, tokenizer=tiny.tokenizer())
    right = case.source.anatomy
    wrong = right.spec.but(norm1=right.spec.norm2, norm2=right.spec.norm1)
    other = prepare(model, TEXT, tokenizer=tiny.tokenizer())
    vars(other.source)["anatomy"] = Anatomy(wrong, (), right.causal, right.decodes)
    vars(other._given)["anatomy"] = other.source.anatomy
    for layer in range(3):
        block, fits = other.trace().block(layer), case.trace().block(layer)
        gap = block.stage("res_ln").whole - fits.stage("res_ln").whole
        assert gap.abs().max() < 1e-5
    assert other.source.anatomy.spec is None


def test_half_precision_gives_results():
    model = built("mixtral", EXPERTS)
    expected = explain(model, TEXT, method="alti", tokenizer=tiny.tokenizer())
    half = explain(model.half(), TEXT, method="alti", tokenizer=tiny.tokenizer())
    np.testing.assert_allclose(half.maps, expected.maps, atol=2e-2)
    assert max(half.info["adds_up"]) < 1e-2
