"""The data of the faithfulness view: parts that are JSON, in order, and a modest verdict."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from mixwidget import demo, metrics
from mixwidget.engine import prepare
from mixwidget.errors import CancelledError
from mixwidget.metrics import evidence
from mixwidget.metrics.judging import beaten, judge
from mixwidget.metrics.report import _verdict
from tests.lib import planted, tiny


@pytest.fixture(scope="module")
def parts():
    case = prepare(demo.load()[0], demo.SENTENCE)
    made = list(metrics.faithfulness(case, ["alti", "no_such_method", "raw_attention"], seeds=6))
    return case, made


def test_parts_come_in_order_and_are_json(parts):
    _, made = parts
    kinds = [part["part"] for part in made]
    assert kinds == ["start", "curve", "random", "random", "curve", "curve", "agreement", "verdict"]
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    assert "no method 'no_such_method'" in made[4]["error"]
    assert made[2]["seeds"] == 5
    assert made[3]["seeds"] == 6


def test_numbers_are_those_of_the_plain_functions(parts):
    case, made = parts
    start, curve, floor = made[0], made[1], made[3]
    e = metrics.explain_case(case, "alti")
    plain = metrics.curve(e, case)
    np.testing.assert_allclose(curve["probabilities"], plain.probabilities)
    np.testing.assert_allclose(start["shares"], plain.shares)
    assert curve["order"] == plain.order
    assert start["removable"] == sorted(plain.order)
    for id, value in curve["metrics"].items():
        assert value == pytest.approx(getattr(metrics, id)(e, case))
    assert all(low <= high for low, high in zip(floor["low"], floor["high"]))
    raw = metrics.explain_case(case, "raw_attention")
    between = metrics.agreement(e, raw, special=False)
    assert made[-2]["spearman"][0][1] == pytest.approx(between["spearman"])
    assert made[-2]["jaccard"][1][0] == pytest.approx(between["jaccard"])


def test_report_joins_the_parts(parts):
    case, made = parts
    report = metrics.faithfulness_report(case, ["alti", "raw_attention"], seeds=6)
    assert set(report) == {"start", "curves", "random", "agreement", "verdict"}
    assert report["curves"]["alti"] == made[1]
    assert report["random"] == made[3]


def test_computed_explanations_are_used_and_cancel_ends_the_work():
    case = prepare(tiny.model("bert"), "the film is not bad .", tokenizer=tiny.tokenizer())
    e = metrics.explain_case(case, "alti")
    work = metrics.faithfulness(case, ["alti"], explanations={"alti": e}, seeds=2)
    assert [part["part"] for part in work] == ["start", "curve", "random", "verdict"]
    stop = False
    work = metrics.faithfulness(case, ["alti", "raw_attention"], cancelled=lambda: stop)
    next(work)
    stop = True
    with pytest.raises(CancelledError):
        list(work)


def test_a_metric_that_needs_a_token_the_tokenizer_lacks_has_no_value():
    tokenizer = tiny.tokenizer()
    tokenizer.pad_token = None  # as GPT-2's
    case = prepare(tiny.model("bert"), "the film is not bad .", tokenizer=tokenizer)
    report = metrics.faithfulness_report(case, ["alti"], seeds=2)
    values = report["curves"]["alti"]["metrics"]
    assert values["log_odds"] is None
    assert report["random"]["metrics"]["log_odds"]["mean"] is None
    assert values["comprehensiveness"] is not None
    assert report["verdict"]["text"]


def test_verdict_on_a_model_that_is_known():
    case = prepare(
        planted.model(), "the film was good and it is a plot", tokenizer=tiny.tokenizer()
    )
    verdict = metrics.faithfulness_report(case, ["alti"], seeds=20)["verdict"]
    judged = verdict["judged"]["alti"]
    assert judged["level"] in ("confirmed", "partly")
    assert judged["beats"]["comprehensiveness"][0] >= 19
    assert verdict["text"] == f"{judged['headline']} {judged['text']}"
    assert "“good”" in verdict["text"]


MEASURES = ("comprehensiveness", "sufficiency", "aopc", "log_odds")


def judged(beats, curve=(0.9, 0.3, 0.2, 0.1, 0.1, 0.1, 0.6), *, task="classification", moves=0.8):
    """A method that beats so many of 20 random orders by each measure."""
    words = ["not", "bad", "film", "a", "the", "it"][: len(curve) - 1]
    shared = SimpleNamespace(
        removable=tuple(range(len(words))),
        target=SimpleNamespace(label="good"),
        logs=False,
        case=SimpleNamespace(
            source=SimpleNamespace(task=task, labels=["bad", "good"]),
            encoding=SimpleNamespace(tokens=[SimpleNamespace(text=word) for word in words]),
        ),
    )
    lower = ("sufficiency", "log_odds")
    values = {id: (-1.0 if id in lower else 1.0) * (count - 0.5) for id, count in beats.items()}
    random = {
        id: {
            "values": [(-1.0 if id in lower else 1.0) * i for i in range(20)] if id in beats else []
        }
        for id in MEASURES
    }
    part = {
        "metrics": {**dict.fromkeys(MEASURES), **values},
        "order": list(range(len(words))),
        "probabilities": list(curve),
        "counts": list(range(len(curve))),
    }
    return judge(shared, "X", part, {"metrics": random}, moves)


def test_a_verdict_tells_all_measures():
    made = judged({"comprehensiveness": 19, "sufficiency": 14, "aopc": 12, "log_odds": 13})
    assert made["beats"] == {
        "comprehensiveness": [19, 20],
        "sufficiency": [14, 20],
        "aopc": [12, 20],
        "log_odds": [13, 20],
    }
    assert (made["level"], made["headline"]) == ("partly", "Partly confirmed.")
    assert made["text"] == (
        "Without “not” the answer flips. One measure of four is clear of chance, three are not. "
        "An empty text counts as 60 % good."
    )


@pytest.mark.parametrize(
    ("clear", "level", "words"),
    [
        (4, "confirmed", "All four measures are clear of chance."),
        (3, "confirmed", "Three measures of four are clear of chance, one is not."),
        (2, "partly", "Two measures of four are clear of chance, two are not."),
        (0, "chance", "10 of 20 random removals hurt the answer as much."),
    ],
)
def test_its_level_is_how_many_are_clear_of_chance(clear, level, words):
    made = judged({id: 20 if i < clear else 10 for i, id in enumerate(MEASURES)})
    assert made["level"] == level
    assert words in made["text"]


def test_a_verdict_claims_no_more_than_its_numbers():
    clear = dict.fromkeys(MEASURES, 20)
    # 18 of 20 is luck one time in ten.
    assert judged({**clear, "aopc": 18})["text"].count("Three measures of four") == 1
    # Without padding there are three measures, and two of them are most.
    three = dict.fromkeys(MEASURES[:3], 20)
    assert judged({**three, "aopc": 3})["level"] == "confirmed"
    assert "Two measures of three" in judged({**three, "aopc": 3})["text"]
    assert judged(clear, (0.9, 0.8, 0.7))["headline"] == "This text cannot tell."
    assert "only 2 tokens" in judged(clear, (0.9, 0.8, 0.7))["text"]
    assert "hardly moves (by 0.01 at most)" in judged(clear, moves=0.01)["text"]
    assert judged({})["level"] == "unclear"
    # What does not flip is not said to, nor is what may have other rivals.
    stays = judged(clear, (0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.7))["text"]
    assert stays.startswith("Without “not”, good falls from 90 % to 80 %.")
    token = judged(clear, task="causal_lm")["text"]
    assert token.startswith("Without “not”, good falls from 90 % to 30 %.")
    assert "empty text" not in token
    late = judged(clear, (0.9, 0.8, 0.7, 0.3, 0.3, 0.3, 0.3))["text"]
    assert late.startswith("Without “not”, “bad” and “film” the answer flips.")


def test_luck_that_comes_out_the_same_counts_half():
    # Two random orders take the deciding word first, as the best order does.
    assert beaten({"aopc": 1.0}, floor(aopc=[0.0] * 18 + [1.0] * 2))["aopc"] == [19, 20]
    assert beaten({"aopc": 1.0}, floor(aopc=[1.0] * 20))["aopc"] == [10, 20]
    assert beaten({"log_odds": -1.0}, floor(log_odds=[-2.0] * 5 + [0.0] * 15))["log_odds"] == [
        15,
        20,
    ]
    assert beaten({"aopc": None}, floor(aopc=[])) == {}


def floor(**values):
    return {"metrics": {id: {"values": values.get(id, [])} for id in MEASURES}}


def test_what_takes_too_long_is_told_and_not_begun():
    case = prepare(tiny.model("bert"), "the film is not bad .", tokenizer=tiny.tokenizer())
    kinds = [part["part"] for part in metrics.faithfulness(case, ["alti"], budget=1e-6)]
    assert kinds == ["start", "budget"]
    parts = list(metrics.faithfulness(case, ["alti"], budget=1e6, seeds=2))
    assert [part["part"] for part in parts] == ["start", "curve", "random", "verdict"]
    again = list(metrics.faithfulness(case, ["alti"], budget=1e-6, seeds=2))
    assert again[-1]["part"] == "budget"
    assert again[-1]["seconds"] >= 0


def test_nothing_is_called_flat_beside_a_curve_that_falls():
    """ "Whatever is removed" goes for every curve that is drawn, not for the method alone."""
    case = prepare(
        planted.model(), "the film was good and it is a plot", tokenizer=tiny.tokenizer()
    )
    work = list(metrics.faithfulness(case, ["alti", "blank_out"], seeds=3))
    curves = [part for part in work if part["part"] == "curve"]
    curves[0]["probabilities"] = [0.9] * len(curves[0]["probabilities"])
    curves[0]["metrics"]["comprehensiveness"] = 0.0
    floor = {"metrics": {id: {"values": [0.0, 0.01]} for id in MEASURES}}
    shared = evidence(metrics.explain_case(case, "alti"), case)
    flat = _verdict(shared, curves[:1], floor)["methods"]["alti"]
    beside = _verdict(shared, curves, floor)["methods"]["alti"]
    assert "hardly moves" in flat
    assert "hardly moves" not in beside
