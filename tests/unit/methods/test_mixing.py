"""Every mixing method against its naive twin, and what must hold whatever the numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from mixwidget import explain
from mixwidget.engine import parts, prepare, start
from mixwidget.errors import CancelledError, CostError, InputError
from mixwidget.explanation.flow import check_cost
from mixwidget.methods.registry import get_method
from tests.lib import tiny
from tests.reference import mixing

TEXT = "the film was not bad but the plot is thin"

CASES: list[tuple[str, dict[str, Any]]] = [
    ("raw_attention", {}),
    ("attention_rollout", {}),
    ("attention_flow", {}),
    ("attention_residual", {}),
    ("attn_norm", {}),
    ("attn_norm", {"head": 2}),
    ("attn_norm_fixed", {}),
    ("attn_norm_res", {}),
    ("attn_norm_res_ln", {}),
    ("globenc", {}),
    ("alti", {}),
    ("alti", {"p": 2}),
    ("alti", {"ln2": True}),
    ("alti", {"ln2": True, "p": 2}),
    ("value_zeroing", {}),
    ("value_zeroing", {"distance": "euclidean"}),
    ("value_zeroing", {"distance": "spearman"}),
    ("hta", {}),
]
IDS = ["-".join([name, *(f"{k}={v}" for k, v in params.items())]) for name, params in CASES]
TOLERANCE = {"alti": 1e-3, "value_zeroing": 5e-3, "hta": 1e-3}
SUM_TO_ONE = [
    "raw_attention",
    "attention_rollout",
    "attention_flow",
    "attention_residual",
    "attn_norm_fixed",
    "alti",
    "value_zeroing",
]


def _model(family: str, **config: Any) -> Any:
    head = "SequenceClassification" if family == "bert" else "CausalLM"
    return tiny.model(family, head, **config)


_read: dict[str, Any] = {}


def _case(family: str) -> tuple[Any, Any, list[mixing.Layer]]:
    """(model, tokenizer, layers of the twin), once per family."""
    if family not in _read:
        model, tokenizer = _model(family), tiny.tokenizer()
        inputs = prepare(model, TEXT, tokenizer=tokenizer).encoding.inputs
        _read[family] = (model, tokenizer, mixing.read(model, inputs))
    return _read[family]  # type: ignore[no-any-return]


def off(ours: Any, true: Any) -> float:
    """Largest error as a share of the largest value."""
    return float(np.abs(ours - true).max() / np.abs(true).max())


@pytest.mark.parametrize("family", mixing.FAMILIES)
@pytest.mark.parametrize(("method", "params"), CASES, ids=IDS)
def test_twin(family: str, method: str, params: dict[str, Any]) -> None:
    model, tokenizer, layers = _case(family)
    found = explain(model, TEXT, method, tokenizer=tokenizer, **params)
    true = np.stack([mixing.TWINS[method](layer, **params) for layer in layers])
    assert found.maps is not None
    assert found.maps.dtype == np.float32
    for layer, (ours, twin) in enumerate(zip(found.maps, true, strict=True)):
        assert off(ours, twin) < TOLERANCE.get(method, 1e-4) / 10, f"layer {layer}"
    if method == "attention_flow":
        combined = mixing.flow(true)
    else:
        combined = mixing.rollout(true, normalise_first=method == "hta")
    assert off(found.rollout(), combined) < TOLERANCE.get(method, 1e-4)
    row = true[-1] if method == "raw_attention" else combined
    assert off(found.scores, row[found.focus]) < TOLERANCE.get(method, 1e-4)


@pytest.mark.parametrize("family", mixing.FAMILIES)
def test_mixing_ratios(family: str) -> None:
    model, tokenizer, layers = _case(family)
    stages = {
        "attn_norm": "z",
        "attn_norm_res": "res",
        "attn_norm_res_ln": "res_ln",
        "globenc": "enc",
        "attention_residual": "enc",
    }
    for method, stage in stages.items():
        found = explain(model, TEXT, method, tokenizer=tokenizer).info["mixing_ratio"]
        true = np.stack([mixing.ratio(layer, stage) for layer in layers])
        if method == "attention_residual" and family != "bert":
            true[:, 0] = 0  # the first token of a causal model has nobody else
        assert off(found, true) < 1e-4, method


@pytest.mark.parametrize("family", ["gpt2", "llama", "gpt_neox", "gemma2"])
def test_where_no_norm_follows_globenc_is_the_residual_norm(family: str) -> None:
    model, tokenizer, _ = _case(family)
    maps = [
        explain(model, TEXT, method, tokenizer=tokenizer).maps
        for method in ("attn_norm_res", "attn_norm_res_ln", "globenc")
    ]
    np.testing.assert_array_equal(maps[0], maps[1])
    np.testing.assert_array_equal(maps[0], maps[2])
    plain, pushed = (
        explain(model, TEXT, "alti", tokenizer=tokenizer, ln2=ln2).maps for ln2 in (False, True)
    )
    np.testing.assert_array_equal(plain, pushed)


@pytest.mark.parametrize("family", mixing.FAMILIES)
@pytest.mark.parametrize("method", SUM_TO_ONE)
def test_rows_sum_to_one(family: str, method: str) -> None:
    model, tokenizer, _ = _case(family)
    found = explain(model, TEXT, method, tokenizer=tokenizer)
    np.testing.assert_allclose(found.maps.sum(-1), 1, atol=1e-5)
    assert (found.maps >= 0).all()


@pytest.mark.parametrize("method", sorted({name for name, _ in CASES}))
def test_rollout_rows_sum_to_one(method: str) -> None:
    model, tokenizer, _ = _case("bert")
    found = explain(model, TEXT, method, tokenizer=tokenizer)
    for layer in range(len(found.maps)):
        np.testing.assert_allclose(found.rollout(layer).sum(-1), 1, atol=1e-5)


@pytest.mark.parametrize("family", ["gpt2", "llama", "gpt_neox", "gemma2"])
@pytest.mark.parametrize("method", sorted({name for name, _ in CASES}))
def test_causal_maps_are_lower_triangular(family: str, method: str) -> None:
    model, tokenizer, _ = _case(family)
    found = explain(model, TEXT, method, tokenizer=tokenizer)
    assert not np.triu(found.maps, 1).any()
    assert not np.triu(found.rollout(), 1).any()


@pytest.mark.parametrize("method", sorted({name for name, _ in CASES}))
def test_order_of_heads_does_not_matter(method: str) -> None:
    model, tokenizer = _model("bert"), tiny.tokenizer()
    before = explain(model, TEXT, method, tokenizer=tokenizer).maps
    order = torch.tensor([2, 0, 3, 1])
    with torch.no_grad():
        for layer in model.bert.encoder.layer:
            inside = layer.attention.self
            for projection in (inside.query, inside.key, inside.value):
                for tensor in (projection.weight, projection.bias):
                    by_head = tensor.reshape(4, -1, *tensor.shape[1:])
                    tensor.copy_(by_head[order].reshape(tensor.shape))
            dense = layer.attention.output.dense.weight
            dense.copy_(dense.reshape(len(dense), 4, -1)[:, order].reshape(dense.shape))
    after = explain(model, TEXT, method, tokenizer=tokenizer).maps
    assert off(after, before) < 1e-5


@pytest.mark.parametrize("family", ["bert", "gpt2"])
@pytest.mark.parametrize(
    "method",
    sorted({name for name, _ in CASES} - {"raw_attention", "attention_rollout", "attention_flow"}),
)
def test_without_an_output_projection_nothing_mixes(family: str, method: str) -> None:
    model, tokenizer = _model(family), tiny.tokenizer()
    layers = model.bert.encoder.layer if family == "bert" else model.transformer.h
    with torch.no_grad():
        for layer in layers:
            out = layer.attention.output.dense if family == "bert" else layer.attn.c_proj
            out.weight.zero_()
    found = explain(model, TEXT, method, tokenizer=tokenizer)
    assert np.isfinite(found.maps).all()
    for map in found.maps:
        assert not (map - np.diag(np.diag(map))).any()
    assert np.isfinite(found.rollout()).all()
    if method not in ("attn_norm",):
        np.testing.assert_allclose(found.rollout(), np.eye(len(found.tokens)), atol=1e-6)


def test_grouped_heads_and_one_token() -> None:
    model, tokenizer = _model("llama"), tiny.tokenizer(pairs=False)
    for method, params in CASES:
        found = explain(model, "film", method, tokenizer=tokenizer, **params)
        assert found.maps.shape[1:] == (1, 1)
        assert np.isfinite(found.maps).all()
        np.testing.assert_allclose(found.rollout(), 1)


def test_heads_of_attn_norm_are_checked() -> None:
    model, tokenizer, _ = _case("bert")
    for head in (4, -1, "all", True):
        with pytest.raises(InputError, match="heads 0 to 3"):
            explain(model, TEXT, "attn_norm", tokenizer=tokenizer, head=head)


def test_sampled_hta_agrees_within_its_error() -> None:
    model, tokenizer, layers = _case("bert")
    found = explain(model, TEXT, "hta", tokenizer=tokenizer, samples=200, seed=3)
    true = np.stack([mixing.hta(layer) for layer in layers])
    error = found.info["standard_error"]
    assert error.shape == true.shape
    surprise = (found.maps - true) / error
    assert abs(surprise.mean()) < 0.3
    assert 0.7 < surprise.std() < 1.5
    again = explain(model, TEXT, "hta", tokenizer=tokenizer, samples=200, seed=3)
    np.testing.assert_array_equal(found.maps, again.maps)


def test_sampled_squares_are_unbiased() -> None:
    model, tokenizer, layers = _case("bert")
    drawn = [
        explain(model, TEXT, "hta", tokenizer=tokenizer, samples=4, seed=seed).maps ** 2
        for seed in range(60)
    ]
    true = np.stack([mixing.hta(layer) for layer in layers]) ** 2
    error = np.std(drawn, 0) / len(drawn) ** 0.5
    assert abs(((np.mean(drawn, 0) - true) / error).mean()) < 0.3


@pytest.mark.parametrize("samples", [0, -1, 1.5, True, "many"])
def test_samples_are_checked(samples: Any) -> None:
    model, tokenizer, _ = _case("bert")
    with pytest.raises(InputError, match="samples"):
        explain(model, TEXT, "hta", tokenizer=tokenizer, samples=samples)


def test_hta_leaves_the_model_alone() -> None:
    model, tokenizer = _model("bert"), tiny.tokenizer()
    model.train()
    explain(model, TEXT, "hta", tokenizer=tokenizer, samples=2)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert model.training
    assert not any(module._forward_hooks for module in model.modules())


def test_too_long_texts_are_refused_with_an_estimate() -> None:
    with pytest.raises(CostError, match=r"4,194,304 edges, about \d+ hours"):
        check_cost(layers=4, tokens=1024, rows=1024)
    check_cost(layers=12, tokens=32, rows=32)


def test_a_flow_that_is_too_long_is_refused_before_it_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, tokenizer, _ = _case("bert")
    monkeypatch.setattr("mixwidget.explanation.flow.LIMIT_SECONDS", 0.0)
    with pytest.raises(CostError, match="attention_rollout"):
        explain(model, TEXT, "attention_flow", tokenizer=tokenizer)
    monkeypatch.setattr("mixwidget.methods.hta.LIMIT_SECONDS", 0.0)
    with pytest.raises(CostError, match="samples=16"):
        explain(model, TEXT, "hta", tokenizer=tokenizer)


def test_flow_read_at_another_token() -> None:
    model, tokenizer, layers = _case("bert")
    found = explain(model, TEXT, "attention_flow", tokenizer=tokenizer)
    other = found.with_focus(3)
    true = mixing.flow(np.stack([mixing.attention_rollout(layer) for layer in layers]))
    assert off(other.scores, true[3]) < 1e-4
    assert off(found.scores, true[0]) < 1e-4


@pytest.mark.parametrize("method", ["attention_flow", "alti", "value_zeroing", "hta"])
def test_cancel_reaches_into_a_layer(method: str) -> None:
    model, tokenizer, _ = _case("bert")
    case = prepare(model, TEXT, tokenizer=tokenizer)
    layers = len(case.trace())
    questions = 0

    def count() -> bool:
        nonlocal questions
        questions += 1
        return questions > limit

    limit = 10**9
    list(parts(start(case, method, cancelled=count)))
    assert questions >= 2 * layers  # asked more often than once a layer
    questions, limit = 0, questions - 1
    run = start(case, method, cancelled=count)
    with pytest.raises(CancelledError):
        list(parts(run))


@pytest.mark.parametrize("method", sorted({name for name, _ in CASES}))
def test_progress_rises_to_the_end(method: str) -> None:
    model, tokenizer, _ = _case("bert")
    shares: list[float] = []
    list(parts(start(prepare(model, TEXT, tokenizer=tokenizer), method, report=shares.append)))
    assert shares == sorted(shares)
    assert shares[-1] <= 1
    assert len(shares) >= 3


@pytest.mark.parametrize("method", sorted({name for name, _ in CASES}))
def test_cost_is_known_beforehand(method: str) -> None:
    model, tokenizer, _ = _case("bert")
    size = prepare(model, TEXT, tokenizer=tokenizer).size()
    assert 0 < get_method(method).cost(size) < 1e6
