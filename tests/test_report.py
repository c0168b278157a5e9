"""The data of the faithfulness view: parts that are JSON, in order, and a modest verdict."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mixwidget import demo, metrics
from mixwidget.engine import prepare
from mixwidget.errors import CancelledError
from mixwidget.metrics.report import verdict
from tests import planted, tiny


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
    text = metrics.faithfulness_report(case, ["alti"], seeds=10)["verdict"]["text"]
    assert "On this text" in text
    assert "lowers the probability of LABEL_1 more than" in text


def test_verdict_claims_no_more_than_its_numbers():
    curve, random = [0.9, 0.2, 0.1], [0.1] * 10 + [0.3] * 10
    assert "more than all 20" in verdict("X", "good", curve, 0.5, random, 9)
    assert "not clearly different" in verdict("X", "good", curve, 0.2, random, 9)
    assert "10 of 20" in verdict("X", "good", curve, 0.2, random, 9)
    assert "worse than chance" in verdict("X", "good", curve, 0.0, random, 9)
    assert "more than 19 of 20" in verdict("X", "good", curve, 0.35, [*random[1:], 0.4], 9)
    assert "only 1 token to" in verdict("X", "good", curve, 0.5, random, 1)
    flat = verdict("X", "good", [0.9, 0.89], 0.01, [0.0, 0.02], 9)
    assert "hardly moves (by 0.01 at most)" in flat
    assert "no random order" in verdict("X", "good", curve, 0.5, [], 9)
