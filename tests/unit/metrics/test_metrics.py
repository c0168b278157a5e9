"""Each metric against a number worked out by hand, a naive twin, scipy or scikit-learn."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.metrics import average_precision_score

from mixwidget import Explanation, explain, metrics
from mixwidget.engine import prepare
from mixwidget.errors import InputError, UnsupportedMethodError
from mixwidget.metrics.evidence import Evidence, _of_explanations, scores_of
from mixwidget.metrics.faithfulness import curve_counts, tokens_in
from mixwidget.tokens import Target, Token
from tests.lib import planted, tiny
from tests.reference import metrics as naive

TEXT = "the film is not bad , it was never boring and we saw a deep plot ."


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def made(scores: list[float], special: tuple[int, ...] = (), **changes: Any) -> Explanation:
    """An explanation with given scores."""
    tokens = [
        Token(
            f"w{i}",
            id=i,
            position=i,
            special=i in special,
            word=None if i in special else i,
            segment=0,
            start=None,
            end=None,
            text=f"w{i}",
        )
        for i in range(len(scores))
    ]
    values: dict[str, Any] = {
        "method": "gradient",
        "tokens": tokens,
        "focus": 0,
        "target": Target("class", 1, "positive"),
        "maps": None,
        "layer_scores": None,
        "own_scores": np.array(scores, dtype=np.float32),
    }
    return Explanation(**{**values, **changes})


class Known(Evidence):
    """Evidence from a model that is a formula: probability of what is left."""

    def __init__(self, count: int, formula: Any) -> None:
        self.removable = tuple(range(1, count + 1))  # token 0 is special
        self.formula = formula

    def probabilities(self, removals: Any, check: Any = None) -> Any:
        return np.array([self.formula(gone, by) for gone, by in removals])


# Ten ordinary tokens after a special one; token i is worth i hundredths.
SCORES = [100.0, *range(1, 11)]
WORTH = Known(10, lambda gone, by: 0.9 - 0.01 * sum(gone))


def test_whole_numbers_of_tokens():
    assert [tokens_in(b, 10) for b in (0, 1, 5, 10, 20, 50, 70, 100)] == [0, 1, 1, 1, 2, 5, 7, 10]
    assert all(tokens_in(k, 100) == k for k in range(101))
    with pytest.raises(InputError, match="whole number"):
        tokens_in(0.5, 10)  # type: ignore[arg-type]


def test_comprehensiveness_by_hand():
    # Without the top 1, 1, 1, 2, 5: drops of .10, .10, .10, .19, .40
    e = made(SCORES, special=(0,))
    assert metrics.comprehensiveness(e, WORTH) == pytest.approx(0.89 / 5)
    assert metrics.comprehensiveness(e, WORTH, as_released=True) == pytest.approx(0.89 / 6)


def test_sufficiency_by_hand():
    # Only the top 1, 1, 1, 2, 5 kept of .55: .45, .45, .45, .36, .15 are lost
    e = made(SCORES, special=(0,))
    assert metrics.sufficiency(e, WORTH) == pytest.approx(1.86 / 5)
    assert metrics.sufficiency(e, WORTH, as_released=True) == pytest.approx(1.86 / 6)


def test_released_curves_never_turn_back():
    # Removing one token drops to .2; removing more brings .8 back.
    up = Known(10, lambda gone, by: {0: 0.9, 1: 0.2}.get(len(gone), 0.8))
    e = made(SCORES, special=(0,))
    assert metrics.comprehensiveness(e, up) == pytest.approx((3 * 0.7 + 2 * 0.1) / 5)
    assert metrics.comprehensiveness(e, up, as_released=True) == pytest.approx(5 * 0.7 / 6)
    # Keeping nothing gives .6, one .5, two .7, five .4: the running best is .6 .6 .6 .7 .7
    kept = Known(10, lambda gone, by: {0: 0.9, 10: 0.6, 9: 0.5, 8: 0.7}.get(len(gone), 0.4))
    drops = [0.3, 0.3, 0.3, 0.2, 0.2]
    assert metrics.sufficiency(e, kept, as_released=True) == pytest.approx(sum(drops) / 6)


def test_aopc_by_hand():
    # Without the top k: drops of .10, .19, .27, .34, .40, .45, .49, .52, .54, .55
    e = made(SCORES, special=(0,))
    assert metrics.aopc(e, WORTH) == pytest.approx(3.85 / 10)
    against = made([100.0, *range(10, 0, -1)], special=(0,))
    rises = Known(10, lambda gone, by: 0.5 + 0.02 * len(gone) * (1 if by == "delete" else -1))
    assert metrics.aopc(against, rises) == pytest.approx(-0.11)
    assert metrics.aopc(against, rises, as_released=True) == pytest.approx(0.11)
    assert metrics.aopc(against, rises, by="pad") == pytest.approx(0.11)


def test_log_odds_by_hand():
    halves = Known(10, lambda gone, by: 0.8 * 0.5 ** len(gone) if by == "pad" else 0.0)
    e = made(SCORES, special=(0,))
    whole = Known(10, lambda gone, by: 0.8 * 0.5 ** len(gone))
    assert metrics.log_odds(e, whole) == pytest.approx(-5.5 * np.log(2))
    with np.errstate(divide="ignore"):
        assert np.isfinite(metrics.log_odds(e, halves))  # probability 0 has a floor


def test_curve_by_hand():
    e = made(SCORES, special=(0,))
    c = metrics.curve(e, WORTH)
    assert c.counts == list(range(11))
    np.testing.assert_allclose(c.shares, np.arange(11) / 10)
    np.testing.assert_allclose(c.probabilities[:4], [0.9, 0.8, 0.71, 0.63])
    assert c.removed(3) == [10, 9, 8]
    assert c.area == pytest.approx(np.trapezoid(c.probabilities, c.shares))
    assert curve_counts(400, 5) == [0, 100, 200, 300, 400]
    with pytest.raises(InputError, match="at least two"):
        curve_counts(10, 1)


def test_ties_go_by_position_and_special_tokens_stay():
    order = WORTH.ranking(np.array([9.0, 1, 2, 2, 0, 2, 1, 0, 0, 0, 3]))
    assert order == [10, 2, 3, 5, 1, 6, 4, 7, 8, 9]


@pytest.fixture(scope="module")
def bert():
    return tiny.model("bert"), tiny.tokenizer()


@pytest.mark.parametrize("method", ["raw_attention", "gradient", "random"])
def test_metrics_equal_their_naive_twins(bert, method):
    model, tokenizer = bert
    e = explain(model, TEXT, method, tokenizer=tokenizer)
    case = prepare(model, TEXT, tokenizer=tokenizer)
    ids, ordinary = [t.id for t in e.tokens], case.encoding.ordinary()
    given = (model, ids, int(e.target), e.scores.astype(float).tolist(), ordinary)
    assert metrics.comprehensiveness(e, case) == pytest.approx(
        naive.comprehensiveness(*given), abs=1e-5
    )
    assert metrics.sufficiency(e, case) == pytest.approx(naive.sufficiency(*given), abs=1e-5)
    assert metrics.aopc(e, case) == pytest.approx(naive.aopc(*given), abs=1e-5)
    assert metrics.log_odds(e, case) == pytest.approx(naive.log_odds(*given, pad=0), abs=1e-5)


def test_edited_texts_run_once_and_together(bert):
    model, tokenizer = bert
    passes: list[int] = []
    e = explain(model, TEXT, "raw_attention", tokenizer=tokenizer)
    handle = model.register_forward_hook(lambda *_: passes.append(1))
    try:
        values = [f(e, model, tokenizer=tokenizer) for f in (metrics.aopc, metrics.log_odds)]
        metrics.comprehensiveness(e, model, tokenizer=tokenizer)
        metrics.sufficiency(e, model, tokenizer=tokenizer)
        metrics.curve(e, model, tokenizer=tokenizer)
        first = len(passes)
        assert first <= 12  # texts of like length together, not one by one: there are 30
        for repeat in (metrics.aopc, metrics.log_odds):
            assert repeat(e, model, tokenizer=tokenizer) in values
        assert len(passes) == first
    finally:
        handle.remove()
    # 17 ordinary tokens: every count of the top ones once, kept tops, and padded tops
    assert metrics.evidence(e, model, tokenizer).passes <= 1 + 17 + 4 + 10


def test_nothing_keeps_a_case_or_a_model_alive():
    model, tokenizer = tiny.model("bert"), tiny.tokenizer()
    case = prepare(model, TEXT, tokenizer=tokenizer)
    e = metrics.explain_case(case, "raw_attention")
    metrics.blank_out_rho(e, case)
    metrics.aopc(e, model, tokenizer=tokenizer)
    held = [weakref.ref(case), weakref.ref(model)]
    known = len(_of_explanations)
    del case, model
    gc.collect()
    assert [one() for one in held] == [None, None]
    del e
    gc.collect()
    assert len(_of_explanations) == known - 1


def test_model_and_case_give_the_same(bert):
    model, tokenizer = bert
    text, pair = "the film is not bad", "we saw a deep plot"
    e = explain(model, text, "raw_attention", tokenizer=tokenizer, text_pair=pair)
    case = prepare(model, text, tokenizer=tokenizer, text_pair=pair)
    rebuilt = metrics.evidence(e, model, tokenizer).case.encoding
    for name, tensor in case.encoding.inputs.items():
        torch.testing.assert_close(rebuilt.inputs[name], tensor)
    assert metrics.aopc(e, case) == pytest.approx(metrics.aopc(e, model, tokenizer=tokenizer))
    other = prepare(model, "a film", tokenizer=tokenizer)
    with pytest.raises(InputError, match="another text"):
        metrics.aopc(e, other)


def test_the_mask_that_is_asked_about_stays():
    model, tokenizer = tiny.model("bert", "MaskedLM"), tiny.tokenizer()
    e = explain(model, "the [MASK] is bad", "raw_attention", tokenizer=tokenizer)
    shared = metrics.evidence(e, model, tokenizer)
    assert shared.removable == (1, 3, 4)
    c = metrics.curve(e, shared)
    assert bool((c.probabilities > 0).all())
    assert c.probabilities[0] == pytest.approx(e.target.probability, rel=1e-4)
    assert np.isfinite(metrics.blank_out_rho(e, shared))


def test_the_second_mask_can_be_asked_about():
    model, tokenizer = tiny.model("bert", "MaskedLM"), tiny.tokenizer()
    text = "the [MASK] is [MASK] bad"
    e = explain(model, text, "raw_attention", tokenizer=tokenizer, focus=4)
    shared = metrics.evidence(e, model, tokenizer)
    assert e.target.position == 4
    assert shared.removable == (1, 2, 3, 5)
    blank = explain(model, text, "blank_out", tokenizer=tokenizer, focus=4, target=e.target)
    np.testing.assert_allclose(shared.explanation("blank_out").scores, blank.scores, atol=1e-6)


@pytest.mark.parametrize(("family", "head"), [("gpt2", "CausalLM"), ("llama", "CausalLM")])
def test_causal_models_are_measured(family, head):
    model, tokenizer = tiny.model(family, head), tiny.tokenizer()
    e = explain(model, "the film is not bad", "raw_attention", tokenizer=tokenizer)
    assert np.isfinite(metrics.comprehensiveness(e, model, tokenizer=tokenizer))
    assert np.isfinite(metrics.log_odds(e, model, tokenizer=tokenizer))


def test_a_model_without_a_head_has_nothing_to_lose():
    model, tokenizer = tiny.model("bert", ""), tiny.tokenizer()
    e = explain(model, TEXT, "raw_attention", tokenizer=tokenizer)
    with pytest.raises(UnsupportedMethodError, match="no head"):
        metrics.aopc(e, model, tokenizer=tokenizer)


def test_an_unknown_way_of_removing_is_refused(bert):
    e = explain(bert[0], TEXT, "raw_attention", tokenizer=bert[1])
    with pytest.raises(InputError, match="by is 'vanish'"):
        metrics.aopc(e, bert[0], by="vanish", tokenizer=bert[1])


def test_agreement_is_scipys():
    a, b = made([5, 1, 2, 3, 4, 0, 7, 6]), made([5, 2, 1, 3, 9, 0, 1, 6])
    found = metrics.agreement(a, b)
    assert found["spearman"] == pytest.approx(stats.spearmanr(a.scores, b.scores).statistic)
    assert found["kendall"] == pytest.approx(stats.kendalltau(a.scores, b.scores).statistic)
    assert found["jaccard"] == pytest.approx(1 / 3)  # tops {6, 7} and {4, 7}
    ordinary = metrics.agreement(made([9, 1, 2], (0,)), made([9, 2, 1], (0,)), special=False)
    assert ordinary["spearman"] == pytest.approx(-1)
    assert np.isnan(metrics.agreement(made([1, 1, 1]), made([1, 2, 3]))["kendall"])
    with pytest.raises(InputError, match="different texts"):
        metrics.agreement(a, made([1, 2]))
    matrix = metrics.agreement_matrix([a, b, a], "jaccard")
    np.testing.assert_allclose(matrix, [[1, 1 / 3, 1], [1 / 3, 1, 1 / 3], [1, 1 / 3, 1]])
    with pytest.raises(InputError, match="measure"):
        metrics.agreement_matrix([a, b], "cosine")


def test_agreement_with_another_method(bert):
    model, tokenizer = bert
    e = explain(model, TEXT, "raw_attention", tokenizer=tokenizer)
    other = explain(model, TEXT, "alti", tokenizer=tokenizer)
    for measure, value in metrics.agreement(e, other, special=False).items():
        found = metrics.agreement_with(
            e, model, other="alti", measure=measure, special=False, tokenizer=tokenizer
        )
        assert found == pytest.approx(value)


def test_kendall_compares_with_the_other_classes(bert):
    model, tokenizer = bert
    options = {"tokenizer": tokenizer}
    e = explain(model, TEXT, "gradient_x_input", target=0, **options)
    others = [explain(model, TEXT, "gradient_x_input", target=c, **options) for c in (1, 2)]
    taus = [stats.kendalltau(e.scores, other.scores).statistic for other in others]
    assert metrics.kendall(e, model, **options) == pytest.approx(np.mean(taus), abs=1e-6)
    orders = [np.argsort(-x.scores.astype(float), kind="stable") for x in (e, *others)]
    released = [stats.kendalltau(orders[0], order).statistic for order in orders[1:]]
    found = metrics.kendall(e, model, as_released=True, **options)
    assert found == pytest.approx(np.mean(released), abs=1e-6)
    plain = explain(model, TEXT, "raw_attention", **options)
    with pytest.raises(UnsupportedMethodError, match="whatever the class"):
        metrics.kendall(plain, model, **options)


def test_cue_metrics_by_hand_and_by_sklearn():
    e = made([0.1, 0.4, 0.2, 0.3])
    assert metrics.cue_dot(e, [1, 3]) == pytest.approx(0.7)
    assert metrics.cue_dot(made([2.0, -8.0, 4.0, 6.0]), [1, 3]) == pytest.approx(0.7)
    assert metrics.probes_needed(e, [2]) == 2
    assert metrics.probes_needed(e, [0, 1]) == 0
    expected = average_precision_score([0, 0, 1, 1], [0.1, 0.4, 0.2, 0.3])
    assert metrics.cue_ap(e, [2, 3]) == pytest.approx(expected)
    assert metrics.cue_ap(e, [2, 3]) == pytest.approx((1 / 2 + 2 / 3) / 2)
    flat = made([0.5, 0.5, 0.5, 0.5])
    assert metrics.cue_ap(flat, [2]) == pytest.approx(1 / 3)  # ties by position
    with pytest.raises(InputError, match="no cue"):
        metrics.cue_dot(e, [])
    with pytest.raises(InputError, match="not in the text"):
        metrics.cue_dot(e, [4])


def test_scores_of_a_layer_and_an_aggregate(bert):
    e = explain(bert[0], TEXT, "attention_rollout", tokenizer=bert[1])
    np.testing.assert_allclose(scores_of(e), e.scores)
    np.testing.assert_allclose(scores_of(e, layer=1), e.maps[1, e.focus])
    np.testing.assert_allclose(scores_of(e, "rollout", 1), e.rollout(1)[e.focus])
    np.testing.assert_allclose(scores_of(e, "sum"), e.maps.sum(0)[e.focus], atol=1e-6)
    layered = made([1, 2], layer_scores=np.array([[1, 2], [3, 4]], dtype=np.float32))
    np.testing.assert_allclose(scores_of(layered, layer=0), [1, 2])
    np.testing.assert_allclose(scores_of(layered, how="rollout"), [1, 2])  # has no maps
    with pytest.raises(InputError, match="layers 0 to 1"):
        scores_of(layered, layer=2)


def test_precision_at_k_by_hand():
    e = made([9, 1, 8, 3, 4, 5], special=(0,))
    assert metrics.precision_at_k(e, [1, 2], k=2) == pytest.approx(0.5)  # top: 2, 5
    assert metrics.precision_at_k(e, [1, 2]) == 1.0  # all five are among the top 20
    span = made([9, 1, 8, 3], target=Target("span", (2, 3), "w2 w3"))
    assert metrics.precision_at_k(span, k=1) == pytest.approx(0.0)
    assert metrics.precision_at_k(span, k=2) == pytest.approx(0.5)
    with pytest.raises(InputError, match="no answer span"):
        metrics.precision_at_k(e)


def test_rank_correlations_with_the_model(bert):
    model, tokenizer = bert
    options = {"tokenizer": tokenizer}
    e = explain(model, TEXT, "raw_attention", **options)
    saliency = explain(model, TEXT, "gradient_x_input", of="logit", **options)
    expected = stats.spearmanr(e.scores, saliency.scores).statistic
    assert metrics.saliency_rho(e, model, **options) == pytest.approx(expected, abs=1e-6)
    blank = explain(model, TEXT, "blank_out", **options)
    inner = slice(1, -1)  # all but [CLS] and [SEP]
    expected = stats.spearmanr(e.scores[inner], blank.scores[inner]).statistic
    assert metrics.blank_out_rho(e, model, **options) == pytest.approx(expected, abs=1e-6)
    assert metrics.blank_out_rho(blank, model, **options) == pytest.approx(1)
    expected = stats.spearmanr(e.scores, blank.scores).statistic
    assert metrics.blank_out_rho(e, model, special=True, **options) == pytest.approx(
        expected, abs=1e-6
    )


# Not the methods that read layer outputs: after the only layer nothing but [CLS] is read.
METHODS = ["attn_norm", "alti", "value_zeroing", "gradient_x_input", "blank_out"]


@pytest.mark.parametrize("method", METHODS)
def test_good_attributions_beat_random_on_a_model_that_is_known(method):
    model, tokenizer = planted.model(), tiny.tokenizer()
    texts = ["the film was good and it is a plot", "we saw the boring film , it was thin"]
    for text, cue in zip(texts, ("good", "boring"), strict=True):
        case = prepare(model, text, tokenizer=tokenizer)
        e = metrics.explain_case(case, method)
        place = e.tokens.index(cue)
        assert e.scores[1:-1].argmax() + 1 == place
        # Whatever the share, the one word that counts goes first: the drop is exact.
        without = metrics.evidence(e, case).probabilities([(frozenset([place]), "delete")])[0]
        drop = e.target.probability - without
        assert drop > 0.3
        assert metrics.comprehensiveness(e, case) == pytest.approx(drop, abs=1e-5)
        assert metrics.sufficiency(e, case) < 0.05
        floor = [metrics.explain_case(case, "random", seed=seed) for seed in range(8)]
        for metric, sign in (("comprehensiveness", 1), ("sufficiency", -1), ("aopc", 1)):
            measure = getattr(metrics, metric)
            lucky = [sign * measure(r, case) for r in floor]
            assert sign * measure(e, case) > np.mean(lucky) + 0.1
        assert metrics.cue_ap(e, [place]) >= 0.5
