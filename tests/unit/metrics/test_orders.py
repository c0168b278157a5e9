"""Random orders: what they cost is known beforehand, and no more are asked than settle it."""

from __future__ import annotations

import itertools
import time
from types import SimpleNamespace

import numpy as np
import pytest

from mixwidget import demo, metrics
from mixwidget.engine import prepare
from mixwidget.metrics import evidence
from mixwidget.metrics import report as report_module
from mixwidget.metrics.cost import Cost, weighing
from mixwidget.metrics.judging import beaten, settled
from mixwidget.metrics.orders import Orders
from tests.lib import planted, tiny

MEASURES = ("comprehensiveness", "sufficiency", "aopc", "log_odds")
TEXT = "the film was good and it is a plot " * 4


def known(text=TEXT):
    case = prepare(planted.model(), text, tokenizer=tiny.tokenizer())
    return case, evidence(metrics.explain_case(case, "alti"), case)


def all_of(shared, seeds=20):
    orders = Orders(shared)
    return Cost(shared).seconds((seeds + 1) * orders.size())


def test_the_size_of_an_order_is_what_it_asks():
    _, shared = known()
    orders = Orders(shared)
    before = shared.tokens
    list(orders.random([0]))
    whole = len(shared.case.encoding.tokens)
    # The whole text, and the text with nothing left, are each asked once for all orders.
    assert shared.tokens - before == orders.size() - (before > 0) * whole
    assert weighing(shared.case.source.model) < sum(
        p.numel() for p in shared.case.source.model.parameters()
    )


def test_the_clock_changes_nothing_but_how_long_it_is_said_to_take(monkeypatch):
    def told(budget):
        case, _ = known()
        parts = list(metrics.faithfulness(case, ["alti"], budget=budget))
        return [{**part, "seconds": 0} if part["part"] == "budget" else part for part in parts]

    budgets = [share * all_of(known()[1]) for share in (0.01, 0.2, 0.6, 1.1)]
    quick = [told(budget) for budget in budgets]
    assert {len(parts) for parts in quick} > {2}  # of the least nothing is begun
    ticks = itertools.count(0.0, 1e4)
    monkeypatch.setattr(time, "perf_counter", lambda: next(ticks))
    monkeypatch.setattr(time, "process_time", lambda: next(ticks))
    assert [told(budget) for budget in budgets] == quick


@pytest.mark.parametrize("method", ["alti", "random", "gradient"])
@pytest.mark.parametrize(
    "text", [TEXT, "a film that was not bad and is good , " * 3, "the plot " * 15]
)
def test_what_few_orders_settle_is_what_all_of_them_say(text, method):
    case, shared = known(text)
    parts = list(metrics.faithfulness(case, [method], budget=0.99 * all_of(shared)))
    kinds = [part["part"] for part in parts]
    assert kinds in (["start", "curve", "verdict", "budget"], ["start", "curve", "budget"])
    asked = evidence(metrics.explain_case(case, method), case).passes
    whole = list(metrics.faithfulness(case, [method]))[-1]
    if kinds[2] == "budget":  # then all of them are needed
        assert max(worse for worse, _ in whole["judged"][method]["beats"].values()) >= 18
        return
    early, full = parts[2]["judged"][method], whole["judged"][method]
    assert (early["level"], early["headline"]) == (full["level"], full["headline"])
    assert asked < evidence(metrics.explain_case(case, method), case).passes
    for id, (worse, count) in early["beats"].items():
        assert (worse >= 0.95 * count) == (full["beats"][id][0] >= 0.95 * full["beats"][id][1])


def test_settled_is_settled_whatever_comes():
    """All ways in which ten random orders can come out, against a method of value 1."""
    for seen in range(11):
        for worse in range(seen + 1):
            values = [0.0] * worse + [2.0] * (seen - worse)
            said = settled("aopc", [curve(1.0)], values, 10)
            ends = {
                clear(values + [0.0] * more + [2.0] * (10 - seen - more))
                for more in range(10 - seen + 1)
            }
            assert said == (len(ends) == 1), (seen, worse)


def curve(value):
    return {"metrics": {**dict.fromkeys(MEASURES), "aopc": value}}


def clear(values):
    floor = {"metrics": {id: {"values": values if id == "aopc" else []} for id in MEASURES}}
    ((worse, count),) = beaten({"aopc": 1.0}, floor).values()
    return worse >= 0.95 * count


def test_a_long_text_names_the_word_that_turns_it_over():
    case, _ = known("the film was good and it is a plot " + "it is a film and " * 6)
    parts = list(metrics.faithfulness(case, ["blank_out"], seeds=2))
    assert len(parts[0]["counts"]) == 11
    assert "“good”" in parts[-1]["text"]


def test_the_same_verdict_asked_for_or_not():
    model, tokenizer = demo.load()
    whole = metrics.faithfulness_report(
        prepare(model, demo.SENTENCE, tokenizer=tokenizer), ["alti"]
    )
    parts = list(
        metrics.faithfulness(
            prepare(model, demo.SENTENCE, tokenizer=tokenizer), ["alti"], budget=2.0
        )
    )
    assert parts[-1] == whole["verdict"]
    assert np.isclose(parts[1]["probabilities"], whole["curves"]["alti"]["probabilities"]).all()


def test_a_verdict_of_few_orders_says_of_how_many():
    shared = SimpleNamespace(
        removable=tuple(range(6)),
        logs=False,
        target=SimpleNamespace(label="good"),
        case=SimpleNamespace(
            source=SimpleNamespace(task="causal_lm", labels=[]),
            encoding=SimpleNamespace(tokens=[SimpleNamespace(text="a")] * 6),
        ),
    )
    part = {
        "metrics": {**dict.fromkeys(MEASURES), "comprehensiveness": 0.1},
        "order": list(range(6)),
        "probabilities": [0.9, 0.2, 0.2, 0.2, 0.2, 0.2, 0.1],
        "counts": list(range(7)),
    }
    floor = {"early": True, "metrics": {id: {"values": []} for id in MEASURES}}
    floor["metrics"]["comprehensiveness"]["values"] = [0.0, 0.2, 0.3]
    said = report_module.judge(shared, "X", part, floor, 0.8)
    assert said["level"] == "chance"
    assert "2 of the first 3 random removals hurt the answer as much." in said["text"]
