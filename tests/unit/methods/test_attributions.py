"""AttnLRP, CP-LRP, direct logits, ALTI-Logit, routes, DecompX, Shapley values: against their
naive twins, and what holds of them for every family."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from mixwidget import explain
from mixwidget.errors import CostError, InputError, UnsupportedMethodError
from mixwidget.models import attribute, encode, graph_is_large, open_source, resolve_target
from mixwidget.models.elementwise import is_elementwise
from tests.lib import tiny
from tests.reference import attributions as naive

TEXT = "the film is not bad ."
STARTS: dict[Any, dict[int, float]] = {1: {1: 1.0}, (2, 0): {2: 1.0, 0: -1.0}}
KINDS = {"bert": (naive.Bert, "SequenceClassification"), "llama": (naive.Llama, "CausalLM")}
# Llama's own norm computes in float32, also in a float64 model.
LIMITS = {"bert": 1e-6, "llama": 1e-5}


def ids() -> list[int]:
    return list(tiny.tokenizer()(TEXT)["input_ids"])


def tokenizer(family: str) -> Any:
    found = tiny.tokenizer()
    if family != "bert":
        found.model_input_names = ["input_ids", "attention_mask"]
    return found


@cache
def model(family: str, head: str = "", dtype: torch.dtype = torch.float64) -> Any:
    return tiny.model(family, head or KINDS[family][1]).to(dtype)


def run(family: str, method: str, target: Any = None, head: str = "", **params: Any) -> Any:
    made = model(family, head)
    return explain(made, TEXT, method, tokenizer=tokenizer(family), target=target, **params)


def close(ours: Any, true: Any, limit: float) -> None:
    expected = np.asarray(true)
    assert np.abs(np.asarray(ours) - expected).max() <= limit * np.abs(expected).max()


@pytest.mark.parametrize("target", STARTS)
@pytest.mark.parametrize("rule", ["attn_lrp", "cp_lrp"])
@pytest.mark.parametrize("family", KINDS)
def test_relevance_against_the_twin(family: str, rule: str, target: Any) -> None:
    hand = KINDS[family][0](model(family))
    true = naive.relevance(hand, ids(), STARTS[target], rule)
    found = run(family, rule, target)
    close(found.layer_scores, true, LIMITS[family])
    close(found.scores, true[0], LIMITS[family])
    balance = found.info["balance"]
    whole = balance["inputs"] + balance["biases"] + balance["softmax"]
    assert whole == pytest.approx(balance["target"], abs=1e-5)
    assert balance["target"] == pytest.approx(found.target.logit, abs=1e-5)
    assert balance["inputs"] == pytest.approx(float(true[0].sum()), abs=1e-5)


@pytest.mark.parametrize("rule", ["attn_lrp", "cp_lrp"])
def test_relevance_of_an_encoder_decoder_against_the_twin(rule: str) -> None:
    made = tiny.model("bart", "Seq2SeqLM").double()
    found = explain(made, TEXT, rule, tokenizer=tokenizer("bart"), text_pair="a good film")
    prefix = [token.id for token in found.tokens[len(ids()) :]]
    hand = naive.Bart(made)
    true = hand.relevance(ids(), prefix, found.target.index, rule)
    n, half = len(found.tokens), len(true) // 2
    rows = [np.pad(row, (0, n - len(row))) for row in true[:half]]
    rows += [np.pad(row, (n - len(row), 0)) for row in true[half:] for _ in range(2)]
    close(found.layer_scores, rows, 1e-6)
    close(found.scores, rows[0] + rows[half], 1e-6)
    assert found.info["balance"]["error"] < 1e-8
    assert found.info["layers"][half] == "decoder 0, over the prefix"


@pytest.mark.parametrize("target", STARTS)
@pytest.mark.parametrize("family", KINDS)
def test_direct_logits_against_the_twin(family: str, target: Any) -> None:
    hand = KINDS[family][0](model(family))
    true, fed = naive.direct(hand, ids(), STARTS[target])
    found = run(family, "logit", target)
    close(found.head_scores, true, LIMITS[family])
    close(found.layer_scores, true.sum(1), LIMITS[family])
    close(found.scores, true.sum((0, 1)), LIMITS[family])
    close(found.info["feed_forward"], fed, 1e-5)
    with_init = run(family, "logit", target, with_init=True).scores
    assert (with_init - found.scores).sum() == pytest.approx(found.info["init"], abs=1e-5)
    maps = torch.from_numpy(run(family, "alti").maps).double()
    traced = run(family, "alti_logit", target)
    close(traced.layer_scores, naive.alti_logit(true.sum(1), maps), 1e-5)
    close(traced.layer_scores.sum(1), found.layer_scores.sum(1), 1e-5)


@pytest.mark.parametrize("family", KINDS)
def test_routes_against_the_twin(family: str) -> None:
    hand = KINDS[family][0](model(family))
    hand.logits(ids(), "true")
    true = [naive.routes(seen) for seen in hand.seen]
    found = run(family, "ifr")
    close(found.maps, torch.stack([map for map, _ in true]).detach(), LIMITS[family])
    close(found.info["feed_forward"], torch.stack([fed for _, fed in true]), LIMITS[family])
    np.testing.assert_allclose(found.maps.sum(-1), 1, atol=1e-6)


def test_routes_are_nested_and_reach_the_focus() -> None:
    found = run("bert", "ifr")
    wide, narrow = found.routes(0.02), found.routes(0.1)
    assert set(narrow.edges) < set(wide.edges)
    assert set(narrow.feed_forwards) <= set(wide.feed_forwards)
    assert {(layer, i) for layer, i, _ in wide.edges if layer == 2} == {(2, found.focus)}
    for layer, i, j in wide.edges:
        assert found.maps[layer, i, j] > 0.02
        assert layer == 2 or any(e[:1] == (layer + 1,) and e[2] == i for e in wide.edges)
    with pytest.raises(InputError, match="share of a row"):
        found.routes(1.5)
    with pytest.raises(UnsupportedMethodError, match="ifr"):
        run("bert", "alti").routes()


@pytest.mark.parametrize("kind", ["absdot", "norm", "equal", "none"])
def test_decompx_against_the_twin(kind: str) -> None:
    maps, parts = naive.carried(naive.Bert(model("bert")), ids(), kind)
    for target, start in STARTS.items():
        found = run("bert", "decompx", target, bias=kind)
        close(found.maps, maps, 1e-6)
        close(found.scores, sum(sign * parts[:, c] for c, sign in start.items()), 1e-6)
    if kind == "none":
        close(found.scores, run("bert", "cp_lrp", target).scores, 1e-6)
    else:
        assert found.scores.sum() == pytest.approx(found.target.logit, abs=1e-5)
    own = found.maps[-1] / found.maps[-1].sum(-1, keepdims=True)
    np.testing.assert_allclose(found.rollout(), own, atol=1e-6)  # nothing is multiplied


def test_decompx_of_a_gated_model_adds_up() -> None:
    found = run("llama", "decompx")
    assert found.scores.sum() == pytest.approx(found.target.logit, abs=1e-4)
    close(run("llama", "decompx", bias="none").scores, run("llama", "cp_lrp").scores, 1e-5)


EXPERTS: dict[str, dict[str, Any]] = {
    "mixtral": {"num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen3_moe": {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
                  "head_dim": 8},
    "granitemoe": {"num_local_experts": 4, "num_experts_per_tok": 2},
}  # fmt: skip


@pytest.mark.parametrize("family", EXPERTS)
def test_decompx_of_a_mixture_of_experts_adds_up(family: str) -> None:
    if family not in transformers.CONFIG_MAPPING:
        pytest.skip(f"this version of transformers has no {family}")
    torch.manual_seed(0)
    sizes = {**tiny.GROUPED, **tiny.COMMON, **EXPERTS[family]}
    config = transformers.AutoConfig.for_model(family, **sizes)
    made = transformers.AutoModelForCausalLM.from_config(config).double().eval()
    given = {"tokenizer": tiny.tokenizer()}
    found = explain(made, TEXT, "decompx", **given)
    assert found.info["balance"]["error"] < 1e-6  # rotary angles are float32
    none = explain(made, TEXT, "decompx", bias="none", **given)
    close(none.scores, explain(made, TEXT, "cp_lrp", **given).scores, 1e-5)


def test_decompx_refuses_what_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    room = sys.modules["mixwidget.models.decompose"]
    monkeypatch.setattr(room, "available_bytes", lambda device: 1000)
    with pytest.raises(CostError, match="cp_lrp"):
        run("bert", "decompx")


@pytest.mark.parametrize(
    ("by", "of"), [("mask", "logit"), ("mask", "probability"), ("delete", "logit")]
)
def test_shapley_against_the_twin(by: str, of: str) -> None:
    bert, words = naive.Bert(model("bert")), ids()

    def value(kept: frozenset[int]) -> float:
        players = range(1, len(words) - 1)
        if by == "mask":
            stand_in = tiny.VOCAB["[MASK]"]
            edited = [
                stand_in if i in players and i not in kept else t for i, t in enumerate(words)
            ]
        else:
            edited = [t for i, t in enumerate(words) if i not in players or i in kept]
        logits = bert.logits(edited, "true").detach()
        return float(logits[1] if of == "logit" else logits.softmax(-1)[1])

    known = cache(value)
    true = naive.shapley(known, list(range(1, len(words) - 1)))
    found = run("bert", "shapley", 1, by=by, of=of)
    close(found.scores[1:-1], list(true.values()), 1e-6)
    assert found.scores[0] == found.scores[-1] == 0
    assert found.info["exact"]


def test_shapley_adds_up_for_any_number_of_orders() -> None:
    text = "the film is not bad but never boring . it was good"
    given = {"tokenizer": tiny.tokenizer(), "target": 1}
    exact = explain(model("bert"), "the film is not bad but never boring", "shapley", **given)
    assert exact.info["exact"]  # eight players
    for permutations in (1, 2, 5):
        found = explain(model("bert"), text, "shapley", permutations=permutations, **given)
        gain = found.info["all"] - found.info["none"]
        assert found.scores.sum() == pytest.approx(gain, abs=1e-6)
        assert not found.info["exact"]
    errors = [
        max(explain(model("bert"), text, "shapley", permutations=k, **given).info["stderr"])
        for k in (8, 64)
    ]
    assert errors[1] < errors[0]
    words = explain(model("bert"), "the filmly is bad", "shapley", units="words", **given)
    assert sorted(map(len, words.info["units"])) == [1, 1, 1, 2]
    spans = explain(model("bert"), TEXT, "shapley", units=[(0, 8), (9, 15)], **given)
    assert spans.info["units"] == [[1, 2], [3, 4], [5, 6]]
    assert spans.scores[1] == spans.scores[2] == pytest.approx(spans.info["values"][0] / 2)
    with pytest.raises(InputError, match="units"):
        explain(model("bert"), TEXT, "shapley", units="paragraphs", **given)
    with pytest.raises(InputError, match="permutations"):
        explain(model("bert"), TEXT, "shapley", permutations=0, **given)


EVERY = [
    ("albert", "SequenceClassification"), ("bert", "MaskedLM"), ("bloom", "CausalLM"),
    ("deberta-v2", "MaskedLM"), ("distilbert", "QuestionAnswering"), ("falcon", "CausalLM"),
    ("gemma2", "CausalLM"), ("gpt2", "SequenceClassification"), ("gpt2", "CausalLM"),
    ("gpt_neox", "CausalLM"), ("modernbert", "SequenceClassification"), ("mpnet", "MaskedLM"),
    ("phi3", "CausalLM"), ("qwen3", "CausalLM"),
]  # fmt: skip


@pytest.mark.parametrize(("family", "head"), EVERY)
def test_every_family_balances(family: str, head: str) -> None:
    made = tiny.model(family, head)
    text = TEXT.replace("bad", "[MASK]") if head == "MaskedLM" else TEXT
    given = {"tokenizer": tokenizer(family)}
    found = {
        name: explain(made, text, name, **given)
        for name in ("attn_lrp", "cp_lrp", "logit", "decompx")
    }
    for one in found.values():
        assert one.info["balance"]["error"] < 1e-5
    rules = found["attn_lrp"].info["rules"]
    assert "unmet" not in rules
    assert {"norm", "activation", "product", "softmax"} <= set(rules)
    plain = explain(made, text, "decompx", bias="none", **given).scores
    close(plain, found["cp_lrp"].scores, 1e-4)
    assert explain(made, text, "ifr", **given).maps.sum(-1) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("family", ["bert", "llama", "albert"])
def test_a_layer_at_a_time_gives_the_same(family: str) -> None:
    made = tiny.model(family, "SequenceClassification")
    source = open_source(made, tokenizer(family))
    encoding = encode(source, TEXT)

    def resolve(output: Any) -> Any:
        return resolve_target(1, source, encoding, output, 0)

    whole, sparing = (
        attribute(source, encoding.inputs, resolve, attention=True, sparing=sparing)
        for sparing in (False, True)
    )
    torch.testing.assert_close(whole.layers, sparing.layers, rtol=1e-5, atol=1e-7)
    assert whole.rules == sparing.rules


def test_long_texts_are_taken_a_layer_at_a_time() -> None:
    source = open_source(tiny.model("bert"), tiny.tokenizer())
    assert not graph_is_large(source, 64)
    assert graph_is_large(source, 20000)


def test_what_has_no_rule_is_named() -> None:
    made = tiny.model("bert")

    def odd(module: Any, args: Any, result: torch.Tensor) -> torch.Tensor:
        return result + torch.special.i0(result)

    made.bert.encoder.layer[1].intermediate.register_forward_hook(odd)
    with pytest.warns(UserWarning, match="i0.*do not trust"):
        found = explain(made, TEXT, "attn_lrp", tokenizer=tiny.tokenizer())
    assert found.info["rules"]["unmet"]
    assert found.info["balance"]["error"] > 1e-3
    with pytest.raises(UnsupportedMethodError, match="i0"):
        explain(made, TEXT, "decompx", tokenizer=tiny.tokenizer())


def test_an_activation_by_its_true_derivative_keeps_a_share() -> None:
    slope, gradient = (run("bert", "cp_lrp", 1, activation=a) for a in ("slope", "gradient"))
    kept = gradient.info["balance"]["activations"]
    balance = gradient.info["balance"]
    whole = balance["inputs"] + balance["biases"] + kept
    assert abs(kept) > 1e-4
    assert whole == pytest.approx(balance["target"], abs=1e-6)
    assert balance["error"] < 1e-6
    assert np.abs(slope.scores - gradient.scores).max() > 1e-5


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_gradients_at_every_layer(family: str) -> None:
    hand = KINDS[family][0](model(family))
    true = naive.relevance(hand, ids(), {1: 1.0}, "true")
    given = {"at": "layers", "of": "logit"}
    found = run(family, "gradient_x_input", 1, norm="sum", **given)
    close(found.layer_scores, true, LIMITS[family])
    close(found.scores, true[0], LIMITS[family])
    assert found.scores.min() < 0 < found.scores.max()
    shares = run(family, "gradient", 1, **given)
    np.testing.assert_allclose(shares.layer_scores.sum(-1), 1, atol=1e-5)
    np.testing.assert_array_equal(shares.layer_scores[0], shares.scores)


def test_gradient_methods_run_the_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made, passes = tiny.model("bert"), []
    made.bert.embeddings.register_forward_hook(lambda *_: passes.append(1))
    explain(made, "a good film", "gradient", tokenizer=tiny.tokenizer())  # now the model is known
    for method in ("gradient", "gradient_x_input", "attn_lrp", "cp_lrp", "logit"):
        passes.clear()
        explain(made, TEXT, method, tokenizer=tiny.tokenizer())
        assert len(passes) == 1, method


@pytest.mark.parametrize("method", ["attn_lrp", "logit", "decompx", "shapley"])
def test_models_without_a_head_are_refused(method: str) -> None:
    with pytest.raises(UnsupportedMethodError, match="no head"):
        explain(tiny.model("bert", ""), TEXT, method, tokenizer=tiny.tokenizer())


def test_the_recommended_method_is_taken_and_says_why() -> None:
    decoder = explain(tiny.model("llama", "CausalLM"), TEXT, tokenizer=tokenizer("llama"))
    assert decoder.method == "attn_lrp"
    assert "causal" in decoder.info["recommended"]
    encoder = explain(model("bert"), TEXT, tokenizer=tokenizer("bert"))
    assert encoder.method == "alti"
    assert "encoders" in encoder.info["recommended"]
    both = explain(tiny.model("llama", "CausalLM"), [TEXT, TEXT], tokenizer=tokenizer("llama"))
    assert [one.method for one in both] == ["attn_lrp"] * 2
    headless = explain(tiny.model("llama", ""), TEXT, tokenizer=tokenizer("llama"))
    assert headless.method == "alti"
    assert "recommended" not in run("llama", "alti").info


class _Counts(torch.nn.Module):
    """What makes a row of other sizes of each number: no activation."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if x.numel() > 1 else x.expand(4, 1, 1)


def test_activations_are_told_by_trying() -> None:
    for module in (torch.nn.GELU(), torch.nn.ReLU(), torch.nn.Tanh(), torch.nn.PReLU()):
        assert is_elementwise(module)
    for module in (torch.nn.Softmax(-1), torch.nn.LayerNorm(4), torch.nn.Identity(), _Counts()):
        assert not is_elementwise(module)
