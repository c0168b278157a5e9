"""The data of the faithfulness view: parts that are JSON, in order, and a modest verdict."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mixwidget import demo, metrics
from mixwidget.engine import prepare
from mixwidget.errors import CancelledError
from mixwidget.metrics import evidence
from mixwidget.metrics.report import _verdict, verdict
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
    text = metrics.faithfulness_report(case, ["alti"], seeds=10)["verdict"]["text"]
    assert "On this text" in text
    assert "lowers the probability of “LABEL_1” more than" in text


def test_verdict_claims_no_more_than_its_numbers():
    random = [0.1] * 10 + [0.3] * 10

    def said(value, random=random, tokens=9, moves=0.8):
        return verdict("X", "good", value, random, moves=moves, tokens=tokens)

    assert "more than all 20" in said(0.5)
    assert "the probability of “good”" in said(0.5)
    assert "not clearly different" in said(0.2)
    assert "10 of 20" in said(0.2)
    assert "worse than chance" in said(0.0)
    assert "more than 19 of 20" in said(0.35, [*random[1:], 0.4])
    assert "only 1 token to" in said(0.5, tokens=1)
    assert "hardly moves (by 0.01 at most)" in said(0.01, [0.0, 0.02], moves=0.01)
    assert "no random order" in said(0.5, [])
    assert "comprehensiveness 0.00, all random orders 0.00 to 0.30" in said(-0.001, [-0.004, 0.3])


def test_nothing_is_called_flat_beside_a_curve_that_falls():
    """ "Whatever is removed" goes for every curve that is drawn, not for the method alone."""
    case = prepare(
        planted.model(), "the film was good and it is a plot", tokenizer=tiny.tokenizer()
    )
    work = list(metrics.faithfulness(case, ["alti", "blank_out"], seeds=3))
    curves = [part for part in work if part["part"] == "curve"]
    curves[0]["probabilities"] = [0.9] * len(curves[0]["probabilities"])
    curves[0]["metrics"]["comprehensiveness"] = 0.0
    floor = {"metrics": {"comprehensiveness": {"values": [0.0, 0.01]}}}
    shared = evidence(metrics.explain_case(case, "alti"), case)
    flat = _verdict(shared, curves[:1], floor)["methods"]["alti"]
    beside = _verdict(shared, curves, floor)["methods"]["alti"]
    assert "hardly moves" in flat
    assert "hardly moves" not in beside
