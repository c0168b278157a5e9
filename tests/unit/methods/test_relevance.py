"""Relevance: the rules, the walk against its naive twin, conservation, masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from mixwidget import explain
from mixwidget.errors import InputError, UnsupportedMethodError
from mixwidget.models import handing, rules
from tests.lib import tiny
from tests.lib.support import CAUSAL
from tests.reference import relevance as naive
from tests.reference import relevance_decoders as decoders

TEXT = "the film is not bad but the plot was thin"
FAMILIES = ["bert", "roberta", "distilbert", "electra", "gpt2", "opt"]
HEADS = {"class": "SequenceClassification", "span": "QuestionAnswering"}


def made(family: str, kind: str, dtype: torch.dtype = torch.float64) -> Any:
    causal = family in ("gpt2", "opt")
    head = HEADS.get(kind, "CausalLM" if causal else "MaskedLM")
    return tiny.model(family, head).to(dtype)


def inputs(text: str, model: Any) -> dict[str, Any]:
    batch = tiny.tokenizer()(text, return_tensors="pt")
    kept = {"input_ids", "attention_mask"}
    if model.config.model_type not in ("gpt2", "opt", "distilbert", "roberta"):
        kept.add("token_type_ids")
    return {name: tensor for name, tensor in batch.items() if name in kept}


def tokenizer_for(model: Any) -> Any:
    found = tiny.tokenizer()
    found.model_input_names = list(inputs(TEXT, model))
    return found


def targets(kind: str, focus: int) -> tuple[Any, list[tuple[int, ...]]]:
    if kind == "class":
        return 2, [(2,)]
    if kind == "span":
        return (2, 5), [(2, 0), (5, 1)]
    return 7, [(focus, 7)]


def close(ours: Any, true: torch.Tensor, limit: float) -> None:
    expected = true.detach().numpy()
    assert np.abs(ours - expected).max() <= limit * np.abs(expected).max()


CASES = [
    *[(family, "class") for family in FAMILIES],
    *[(family, "token") for family in FAMILIES],
    *[(family, "span") for family in FAMILIES if family != "opt"],
]


@pytest.mark.parametrize(("family", "kind"), CASES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_against_the_twin(family: str, kind: str, dtype: torch.dtype) -> None:
    limit = 1e-6 if dtype == torch.float64 else 1e-4
    model = made(family, kind, dtype)
    text = TEXT.replace("bad", "[MASK]") if kind == "token" else TEXT
    given: dict[str, Any] = {"tokenizer": tokenizer_for(model)}
    if kind == "span":  # an answer is read from its own tokens, not from the default focus
        given["focus"] = 2
    focus = explain(model, text, "raw_attention", **given).focus
    target, start = targets(kind, focus)
    true = naive.relevance(model, inputs(text, model), kind, start)

    found = explain(model, text, "lrp", target=target, **given)
    close(found.scores, true.inputs[0].sum(-1), limit)
    close(found.layer_scores, torch.stack([r.sum(-1) for r in true.inputs]), limit)
    partial = true.attention[-1].clamp(min=0).mean(0)[focus]
    close(explain(model, text, "partial_lrp", target=target, **given).scores, partial, limit)
    found = explain(model, text, "transatt", target=target, **given)
    close(found.maps, true.transatt(), limit)
    assert found.maps is not None
    product = np.linalg.multi_dot(found.maps[::-1].astype(float))
    np.testing.assert_allclose(found.scores, product[focus], atol=1e-6)


@pytest.mark.parametrize("family", ["bert", "distilbert", "gpt2"])
def test_masked_against_the_twin(family: str) -> None:
    model = made(family, "class")
    mask = np.random.default_rng(1).integers(0, 2, (3, 4))
    given = {"tokenizer": tokenizer_for(model), "target": 1}
    true = naive.relevance(model, inputs(TEXT, model), "class", [(1,)], mask)
    found = explain(model, TEXT, "mask_lrp", mask=mask, **given)
    close(found.maps, true.transatt(), 1e-6)
    released = explain(model, TEXT, "mask_lrp", mask=mask.tolist(), as_released=True, **given)
    close(released.maps, true.transatt(2.0), 1e-6)
    for layer, total in enumerate(true.totals):
        assert found.info["conservation"][layer] == pytest.approx(total, abs=1e-7)
    assert found.info["mask"] == mask.tolist()


@pytest.mark.parametrize(("family", "kind"), CASES)
def test_relevance_is_conserved(family: str, kind: str) -> None:
    model = made(family, kind)
    text = TEXT.replace("bad", "[MASK]") if kind == "token" else TEXT
    for method in ("lrp", "transatt"):
        found = explain(model, text, method, tokenizer=tokenizer_for(model))
        assert len(found.info["conservation"]) == 3
        assert np.abs(np.array(found.info["conservation"]) - 1).max() < 1e-4


def test_albert_walks_through_its_shared_layers() -> None:
    model = tiny.model("albert").double()
    found = explain(model, TEXT, "lrp", tokenizer=tiny.tokenizer())
    assert np.abs(np.array(found.info["conservation"]) - 1).max() < 1e-4
    assert found.scores.sum() == pytest.approx(1, abs=1e-4)


def test_a_mask_of_ones_is_transatt() -> None:
    model, given = made("bert", "class"), {"tokenizer": tiny.tokenizer()}
    plain = explain(model, TEXT, "transatt", **given)
    masked = explain(model, TEXT, "mask_lrp", mask=np.ones((3, 4)), **given)
    np.testing.assert_array_equal(plain.maps, masked.maps)
    np.testing.assert_array_equal(plain.scores, masked.scores)


def test_a_mask_of_zeros_passes_only_the_residual() -> None:
    """Below the top layer relevance is where the residual left it: at the token it was at."""
    model = made("bert", "class")
    found = explain(
        model, TEXT, "mask_lrp", mask=np.zeros((3, 4)), tokenizer=tiny.tokenizer(), target=0
    )
    assert found.maps is not None
    row = found.focus
    for lower in found.maps[:-1]:
        others = np.delete(lower - np.eye(len(lower)), row, axis=0)
        assert np.abs(others).max() == 0  # no relevance ever reached another token's row
        assert np.abs(lower[row] - np.eye(len(lower))[row]).max() > 0
    totals = found.info["conservation"]
    assert 0 < totals[0] < totals[1] < totals[2] < 1


def test_normalised_masks_conserve() -> None:
    model, given = made("bert", "class"), {"tokenizer": tiny.tokenizer(), "normalise": True}
    rng = np.random.default_rng(0)
    masks = [np.eye(4)[:3], rng.integers(0, 2, (3, 4))]
    for mask in (masks, masks[0]):
        found = explain(model, TEXT, "mask_lrp", mask=mask, **given)
        assert np.abs(np.array(found.info["conservation"]) - 1).max() < 1e-4


@pytest.mark.parametrize(
    ("mask", "says"),
    [
        (np.ones((2, 4)), "3 layers of 4 heads"),
        (np.ones(4), "3 layers of 4 heads"),
        (np.full((3, 4), 0.5), "only 0 and 1"),
        ("all", "of 0 and 1"),
    ],
)
def test_wrong_masks_are_refused(mask: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        explain(made("bert", "class"), TEXT, "mask_lrp", mask=mask, tokenizer=tiny.tokenizer())


def test_contrast_is_the_difference_of_two_walks() -> None:
    model = made("bert", "class")
    given = {"tokenizer": tiny.tokenizer()}
    both = explain(model, TEXT, "lrp", target=(2, 0), **given).scores
    first = explain(model, TEXT, "lrp", target=2, **given).scores
    second = explain(model, TEXT, "lrp", target=0, **given).scores
    np.testing.assert_allclose(both, first - second, atol=1e-6)
    assert (explain(model, TEXT, "transatt", target=(2, 0), **given).scores >= 0).all()


DECODERS = ["llama", "gpt_neox", "mixtral"]


@pytest.mark.parametrize("family", DECODERS)
def test_decoders_against_their_twin(family: str) -> None:
    model = tiny.model(family, "CausalLM").double()
    given: dict[str, Any] = {"tokenizer": tokenizer_of_one_text(), "target": 7}
    ids = given["tokenizer"](TEXT, return_tensors="pt")["input_ids"]
    # transformers computes norms and angles of these in float32, whatever the model is.
    true = decoders.relevance(model, ids, 7)
    found = explain(model, TEXT, "lrp", **given)
    close(found.layer_scores, torch.stack([r.sum(-1) for r in true.inputs]), 2e-5)
    partial = true.attention[-1].clamp(min=0).mean(0)[-1]
    close(explain(model, TEXT, "partial_lrp", **given).scores, partial, 2e-5)
    close(explain(model, TEXT, "transatt", **given).maps, true.transatt(), 2e-5)
    mask = np.random.default_rng(1).integers(0, 2, (3, 4))
    masked = explain(model, TEXT, "mask_lrp", mask=mask, **given)
    true = decoders.relevance(model, ids, 7, mask)
    close(masked.maps, true.transatt(), 2e-5)
    assert masked.info["conservation"] == pytest.approx(true.totals, abs=1e-5)


def tokenizer_of_one_text() -> Any:
    found = tiny.tokenizer()
    found.model_input_names = ["input_ids", "attention_mask"]
    return found


# ALiBi, a bias in place, heads that share, positions as keys, windows, gates, sandwich norms,
# two texts.
ALL_KINDS = ["bloom", "falcon", "gemma2", "phi3", "deberta-v2", "modernbert", "mpnet", "t5", "bart"]


@pytest.mark.parametrize("family", ALL_KINDS)
def test_every_family_conserves_relevance(family: str) -> None:
    head, given = "SequenceClassification", {"tokenizer": tokenizer_of_one_text()}
    if family in tiny.ENCODER_DECODERS:
        head, given["text_pair"] = "Seq2SeqLM", "a good film"
    elif family in CAUSAL:
        head = "CausalLM"
    model = tiny.model(family, head)
    found = explain(model, TEXT, "lrp", **given)
    assert found.scores.sum() == pytest.approx(1, abs=1e-4)
    assert np.abs(np.array(found.info["conservation"]) - 1).max() < 1e-4
    assert found.info["rules"]["linear"]
    assert "unmet" not in found.info["rules"]
    maps = explain(model, TEXT, "transatt", **given).maps
    assert maps is not None
    np.testing.assert_allclose(maps.sum(-1), 1, atol=1e-6)
    if family == "t5":  # what a decoder's layer reads is told for both of its attentions
        rows = found.layer_scores
        assert rows is not None
        np.testing.assert_array_equal(rows[2], rows[3])


def test_a_function_without_a_rule_is_refused_by_its_name() -> None:
    model = tiny.model("bert")
    model.bert.encoder.layer[1].register_forward_hook(lambda m, args, out: torch.erfinv(out / 99))
    with pytest.raises(UnsupportedMethodError, match="'erfinv'"):
        explain(model, TEXT, "lrp", tokenizer=tiny.tokenizer())


def test_hooks_of_the_model_are_part_of_it() -> None:
    model = tiny.model("bert")
    model.bert.encoder.layer[1].intermediate.register_forward_hook(lambda m, args, out: out * 1.5)
    found = explain(model, TEXT, "lrp", tokenizer=tiny.tokenizer())
    assert found.scores.sum() == pytest.approx(1, abs=1e-4)


def test_layers_come_from_the_top_down() -> None:
    from mixwidget import stream

    for method in ("lrp", "transatt", "mask_lrp"):
        parts = list(stream(made("bert", "class"), TEXT, method, tokenizer=tiny.tokenizer()))
        layers = [part.layer for part in parts if part.layer is not None]
        assert layers == [2, 1, 0]


@pytest.mark.parametrize("family", ["gpt2", "bart"])
def test_values_kept_or_computed_again_are_the_same(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mixwidget.models import walk

    model = tiny.model(family, "CausalLM" if family == "gpt2" else "Seq2SeqLM")
    given: dict[str, Any] = {"tokenizer": tokenizer_of_one_text()}
    if family == "bart":
        given["text_pair"] = "a good film"
    for method in ("lrp", "mask_lrp"):
        kept = explain(model, TEXT, method, **given).scores
        with monkeypatch.context() as patch:
            patch.setattr(walk, "graph_is_large", lambda source, tokens: True)
            np.testing.assert_array_equal(kept, explain(model, TEXT, method, **given).scores)


def test_sums_of_one_sign_in_float32_are_within_a_millionth() -> None:
    torch.manual_seed(0)
    x, weight = torch.randn(9, 512).double(), torch.randn(64, 512)
    weight[3] = -weight[3].abs()
    x[4] = x[4].abs()  # nothing positive comes from it to the third output, and hardly more to
    weight[5, 0] = x[4, 0] = 0.1  # another
    weight[5, 1:] = -weight[5, 1:].abs()
    relevance = torch.randn(9, 64).double()
    exact = rules.linear(x, weight.double(), relevance)
    found = rules.linear(x, weight, relevance)
    assert float((found - exact).abs().max()) < 1e-6 * float(exact.abs().max())


def test_operations_of_other_forms_share_by_the_same_rules() -> None:
    torch.manual_seed(0)
    x, weight = torch.randn(5, 6).double().requires_grad_(), torch.randn(7, 6).double()
    given = torch.randn(5, 7).double()
    plain = torch.autograd.grad(handing.Linear.apply(x, weight, None), x, given)[0]
    mapped = handing.Mapped.apply(x, weight, lambda x, w: torch.einsum("ni,oi->no", x, w))
    torch.testing.assert_close(torch.autograd.grad(mapped, x, given)[0], plain)

    a, b = (torch.randn(2, 4, 4).double().requires_grad_() for _ in range(2))
    given = torch.randn(2, 4, 4).double()
    true = rules.product(a.detach(), b.detach(), (a @ b).detach(), given)
    for operation in (torch.matmul, lambda a, b: torch.einsum("hik,hkj->hij", a, b)):
        made = handing.Product.apply(a, b, operation, None)
        for ours, theirs in zip(torch.autograd.grad(made, (a, b), given), true, strict=True):
            torch.testing.assert_close(ours, theirs)

    # A sum along a dimension is that of the rule for two, where there are two.
    pair, given = torch.randn(3, 2, 4).double().requires_grad_(), torch.randn(3, 4).double()
    made = handing.Proportion.apply(pair, lambda x: x.sum(1), (1,))
    shared = torch.autograd.grad(made, pair, given)[0]
    first, second = rules.add(*pair.detach().unbind(1), given)
    torch.testing.assert_close(shared, torch.stack([first, second], 1))


def test_linear_rule_by_hand() -> None:
    x = torch.tensor([[1.0, -2.0, 0.5]]).double()
    weight = torch.tensor([[1.0, -1.0, -2.0], [-1.0, 2.0, -3.0]]).double()
    given = rules.linear(x, weight, torch.tensor([[3.0, 5.0]]).double())
    # First output: contributions 1, 2, -1; the positive ones share 3 as 1 : 2. The second has
    # only negative contributions, so what it holds goes nowhere.
    torch.testing.assert_close(given, torch.tensor([[1.0, 2.0, 0.0]]).double(), atol=1e-8, rtol=0)


def test_add_rule_by_hand() -> None:
    a, b = torch.tensor([[1.0, 3.0]]).double(), torch.tensor([[1.0, -1.0]]).double()
    of_a, of_b = rules.add(a, b, torch.tensor([[4.0, 2.0]]).double())
    # In proportion: a 2, 3 and b 2, -1. |5| to |1| shares the total of 6: a 5, b 1.
    torch.testing.assert_close(of_a, torch.tensor([[2.0, 3.0]]).double(), atol=1e-7, rtol=0)
    torch.testing.assert_close(of_b, torch.tensor([[2.0, -1.0]]).double(), atol=1e-7, rtol=0)


def test_division_is_stable() -> None:
    zero = torch.zeros(2).double()
    assert rules.sd(torch.ones(2).double(), zero).tolist() == [0, 0]
    small = torch.tensor([1e-12, -1e-9], dtype=torch.float64)
    assert torch.isfinite(rules.sd(torch.ones(2).double(), small)).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_models_are_walked_in_float64(dtype: torch.dtype) -> None:
    half = tiny.model("bert").to(dtype)
    true = explain(half.double(), TEXT, "lrp", tokenizer=tiny.tokenizer(), target=1).scores
    half = tiny.model("bert").to(dtype)
    found = explain(half, TEXT, "lrp", tokenizer=tiny.tokenizer(), target=1)
    np.testing.assert_allclose(found.scores, true, atol=1e-5 * np.abs(true).max())
