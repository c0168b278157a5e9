"""Gradient, class-activation and perturbation methods against their naive twins."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from mixwidget import explain
from mixwidget.engine import parts, prepare, start
from mixwidget.errors import UnsupportedMethodError
from mixwidget.methods.registry import all_methods
from tests.lib import tiny
from tests.reference import class_specific as naive

TEXT = "the film is not bad but never boring"
OURS = [
    m.id
    for m in all_methods()
    if m.family in ("gradients", "class activation", "relevance", "perturbation", "baseline")
    and "answer" not in m.needs
]
CLASS_SPECIFIC = [name for name in OURS if name != "random"]


@cache
def model(dtype: torch.dtype = torch.float64) -> Any:
    return tiny.model("bert").to(dtype)


def run(method: str, target: Any = 1, dtype: torch.dtype = torch.float64, **params: Any) -> Any:
    return explain(model(dtype), TEXT, method, tokenizer=tiny.tokenizer(), target=target, **params)


def ids() -> list[int]:
    return list(tiny.tokenizer()(TEXT)["input_ids"])


def close(ours: Any, true: torch.Tensor, limit: float = 1e-6) -> None:
    expected = true.detach().numpy()
    assert np.abs(ours - expected).max() <= limit * np.abs(expected).max()


@cache
def slope(of: str) -> torch.Tensor:
    bert = naive.Bert(model())
    return naive.differences(lambda e: naive.value(bert, e, 1, of), bert.words(ids()))


@pytest.mark.parametrize("of", ["probability", "logit"])
def test_gradient(of: str) -> None:
    close(run("gradient", of=of).scores, naive.shares(slope(of), "l2"))
    words = naive.Bert(model()).words(ids())
    for norm in ("l2", "mean"):
        true = naive.shares(slope(of) * words, norm)
        close(run("gradient_x_input", of=of, norm=norm).scores, true)


@pytest.mark.parametrize("of", ["probability", "logit"])
def test_integrated_gradients(of: str) -> None:
    """Against a plain midpoint rule of many steps on the hand-written pass, and complete."""
    bert = naive.Bert(model())
    words = bert.words(ids())
    masked = [i if i in (2, 3) else tiny.VOCAB["[MASK]"] for i in ids()]
    base = bert.words(masked)
    total = torch.zeros_like(words)
    steps = 400
    for k in range(steps):
        at = (base + (k + 0.5) / steps * (words - base)).requires_grad_()
        total += torch.autograd.grad(naive.value(bert, at, 1, of), at)[0] / steps
    found = run("integrated_gradients", of=of)
    close(found.scores, naive.shares((words - base) * total, "l2"), 1e-4)
    assert abs(found.info["convergence_delta"]) < 1e-5
    assert found.info["baseline"] == "[MASK]"
    assert found.scores[0] == 0  # special tokens are the same in the baseline


def test_integrated_gradients_is_complete_in_fewer_steps() -> None:
    assert abs(run("integrated_gradients", steps=30).info["convergence_delta"]) < 1e-3


def test_integrated_gradients_reports_progress() -> None:
    case = prepare(model(), TEXT, tokenizer=tiny.tokenizer())
    seen: list[float] = []
    list(parts(start(case, "integrated_gradients", report=seen.append)))
    assert len(seen) > 1
    assert seen == sorted(seen)
    assert seen[-1] == 1


@pytest.mark.parametrize("features", ["output", "input"])
@pytest.mark.parametrize("target", [0, 2])
def test_cat_and_attcat(features: str, target: int) -> None:
    bert = naive.Bert(model())
    for method, twin in (("cat", naive.cat), ("attcat", naive.attcat)):
        true = twin(bert, ids(), target, features)
        found = run(method, target, features=features)
        close(found.layer_scores, true)
        close(found.scores, true.sum(0))


@pytest.mark.parametrize("target", [0, 1, 2])
def test_attention_gradients(target: int) -> None:
    bert = naive.Bert(model())
    close(run("attn_grad", target).scores, naive.attn_grad(bert, ids(), target))
    close(run("attn_grad", target, layers="all").scores, naive.attn_grad_all(bert, ids(), target))
    true = naive.grad_sam(bert, ids(), target)
    close(run("grad_sam", target).layer_scores, true)
    close(run("grad_sam", target).scores, true.mean(0))
    close(run("grad_cam", target).scores, naive.grad_cam(bert, ids(), target, 0))
    maps, reached = naive.gae(bert, ids(), target)
    close(run("gae", target).maps, maps)
    close(run("gae", target).scores, reached[0])
    zeroed = run("gae", target, zero_focus=True).scores
    assert zeroed[0] == 0
    close(zeroed[1:], reached[0, 1:])


def test_a_flat_grad_cam_is_zero_and_not_nan() -> None:
    flat = tiny.model("bert")
    with torch.no_grad():
        flat.classifier.weight.zero_()
    found = explain(flat, TEXT, "grad_cam", tokenizer=tiny.tokenizer())
    assert (found.scores == 0).all()
    assert (explain(flat, TEXT, "gradient", tokenizer=tiny.tokenizer()).scores == 0).all()


@pytest.mark.parametrize("by", ["mask", "unk", "pad", "delete"])
def test_blank_out(by: str) -> None:
    stand_in = None if by == "delete" else tiny.VOCAB[f"[{by.upper()}]"]
    true = naive.blank_out(naive.Bert(model()), ids(), 1, stand_in)
    close(run("blank_out", by=by).scores, true)


def test_random_is_seeded() -> None:
    first, same, other = run("random"), run("random"), run("random", seed=1)
    np.testing.assert_array_equal(first.scores, same.scores)
    assert (first.scores != other.scores).any()
    assert ((first.scores >= 0) & (first.scores < 1)).all()


@pytest.mark.parametrize("method", OURS)
def test_shapes_signs_and_float32(method: str) -> None:
    entry = next(m for m in all_methods() if m.id == method)
    for target in (0, 1):
        found = run(method, target, torch.float32)
        assert found.scores.shape == (len(found.tokens),)
        assert found.scores.dtype == np.float32
        assert np.isfinite(found.scores).all()
        if not entry.signed:
            assert (found.scores >= 0).all()
        np.testing.assert_allclose(
            found.scores, run(method, target).scores, atol=1e-4 * np.abs(found.scores).max()
        )
    if entry.signed:
        values = [run(method, target).layer_scores for target in range(3)]
        scores = [run(method, target).scores for target in range(3)]
        assert min(np.min(v) for v in [*scores, *values] if v is not None) < 0
    if method in ("gradient", "gradient_x_input", "integrated_gradients", "deeplift"):
        assert found.scores.sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("method", CLASS_SPECIFIC)
def test_classes_differ(method: str) -> None:
    scores = [run(method, target).scores for target in range(3)]
    assert any(np.abs(scores[0] - other).max() > 1e-6 for other in scores[1:])


@pytest.mark.parametrize("method", CLASS_SPECIFIC)
def test_base_models_are_refused(method: str) -> None:
    with pytest.raises(UnsupportedMethodError, match="no head"):
        explain(tiny.model("bert", ""), TEXT, method, tokenizer=tiny.tokenizer())


def test_deeplift_adds_up_where_its_rules_cover_the_model() -> None:
    """Linear maps, ReLU and Tanh only: every token attends evenly and norms do nothing."""
    covered = tiny.model("bert", hidden_act="relu").double()
    for layer in covered.bert.encoder.layer:
        torch.nn.init.zeros_(layer.attention.self.query.weight)
        torch.nn.init.zeros_(layer.attention.self.query.bias)
        layer.attention.output.LayerNorm = _Plain()
        layer.output.LayerNorm = _Plain()
    covered.bert.embeddings.LayerNorm = _Plain()
    case = prepare(covered, TEXT, tokenizer=tiny.tokenizer())
    (part,) = parts(start(case, "deeplift", params={"of": "logit"}))
    assert abs(part.info["convergence_delta"]) < 1e-9
    assert part.scores is not None
    assert part.scores.max() > 0.1
    assert part.info["rescaled"] == ["ReLU", "Tanh"]
    (part,) = parts(start(case, "deeplift"))  # the softmax of the logits is not seen
    assert abs(part.info["convergence_delta"]) > 1e-6


class _Plain(torch.nn.Module):
    """A norm that does nothing."""

    eps = 0.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def test_probabilities_near_certainty_keep_their_digits() -> None:
    """In float32 1 - 1e-9 is 1, and its gradient nothing but rounding."""
    model = tiny.model("bert")
    with torch.no_grad():
        model.classifier.weight *= 36
    exact = copy.deepcopy(model).double()
    given = {"tokenizer": tiny.tokenizer(), "target": None}
    true = explain(exact, TEXT, "gradient_x_input", **given)
    assert 1 - true.target.probability < 1e-6
    found = explain(model, TEXT, "gradient_x_input", **given)
    np.testing.assert_allclose(found.scores, true.scores, atol=2e-3)
