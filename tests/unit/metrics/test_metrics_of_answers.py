"""Metrics of answers against plain loops over the model; `benchmark` over chats and answers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from mixwidget import benchmark, explain, metrics
from mixwidget.engine import prepare
from mixwidget.errors import InputError
from mixwidget.metrics import evidence, faithfulness_report
from tests.lib import tiny

TEMPLATE = (
    "{% for m in messages %}[CLS] {{ m['role'] }} , {{ m['content'] | trim }} [SEP]\n{% endfor %}"
    "{% if add_generation_prompt %}[CLS] film ,{% endif %}"
)
CHAT = [
    {"role": "the", "content": "it is a film ."},
    {"role": "user", "content": "the film is not bad . we saw it . is it good"},
]
ANSWER = "it is good ."


@pytest.fixture(scope="module")
def asked() -> tuple[Any, Any]:
    tokenizer = tiny.tokenizer(pairs=False)
    tokenizer.chat_template = TEMPLATE
    return tiny.model("llama", "CausalLM"), tokenizer


def each(model: Any, ids: list[int], count: int) -> float:
    """Mean log probability of the last `count` ids."""
    with torch.no_grad():
        shares = model(input_ids=torch.tensor([ids])).logits[0].double().log_softmax(-1)
    return float(np.mean([float(shares[i - 1, ids[i]]) for i in range(len(ids) - count, len(ids))]))


def test_values_are_those_of_plain_loops(asked: tuple[Any, Any]) -> None:
    model, tokenizer = asked
    e = explain(model, CHAT, "gradient_x_input", tokenizer=tokenizer, answer=ANSWER)
    ids, count = [t.id for t in e.tokens], e.answer.stop - e.answer.start
    removable = [t.position for t in e.tokens[: e.answer.start] if not t.special]
    order = sorted(removable, key=lambda i: (-e.scores[i], i))

    def left(gone: list[int]) -> float:
        return each(model, [x for i, x in enumerate(ids) if i not in gone], count)

    def padded(gone: list[int]) -> float:
        pad = tokenizer.pad_token_id
        return each(model, [pad if i in gone else x for i, x in enumerate(ids)], count)

    def top(percent: int) -> list[int]:
        return order[: -(-percent * len(order) // 100)]

    whole, bins = left([]), (1, 5, 10, 20, 50)
    rest = [[i for i in order if i not in top(b)] for b in bins]
    steps = range(10, 101, 10)
    ask = {"tokenizer": tokenizer}
    found = {
        "comprehensiveness": whole - np.mean([left(top(b)) for b in bins]),
        "sufficiency": whole - np.mean([left(gone) for gone in rest]),
        "aopc": whole - np.mean([left(top(k)) for k in steps]),
        "log_odds": np.mean([padded(top(k)) for k in steps]) - whole,
    }
    for name, value in found.items():
        assert getattr(metrics, name)(e, model, **ask) == pytest.approx(value, abs=1e-5), name
    curve = metrics.curve(e, model, **ask)
    drawn = [left(curve.removed(point)) for point in range(len(curve.counts))]
    assert np.allclose(curve.probabilities, drawn, atol=1e-5)


def test_metrics_of_units(asked: tuple[Any, Any]) -> None:
    model, tokenizer = asked
    e = explain(model, CHAT, "gradient_x_input", tokenizer=tokenizer, answer=ANSWER)
    ids, count = [t.id for t in e.tokens], e.answer.stop - e.answer.start
    units = [one for one in e.by("sentences").units if max(one.tokens) < e.answer.start]
    units = [one for one in units if one.place is not None]
    assert len(units) == 4
    scores = [float(sum(e.scores[i] for i in one.tokens)) for one in units]

    def without(gone: list[int]) -> float:
        kept = [x for i, x in enumerate(ids) if not any(i in units[u].tokens for u in gone)]
        return count * each(model, kept, count)

    order = sorted(range(4), key=lambda u: -scores[u])
    falls = {k: without([]) - without(order[:k]) for k in (1, 3, 5)}
    ask = {"tokenizer": tokenizer}
    assert metrics.top_k_drop(e, model, k=3, **ask) == pytest.approx(falls[3], abs=1e-5)
    assert metrics.top_k_drop(e, model, **ask) == pytest.approx(
        np.mean([*falls.values()]), abs=1e-5
    )
    masks = [
        np.random.RandomState(1000 + k).choice([False, True], size=4, p=[0.5, 0.5])
        for k in range(32)
    ]
    values = [without([u for u in range(4) if not mask[u]]) for mask in masks]
    rho = spearmanr([float(mask @ np.array(scores)) for mask in masks], np.round(values, 6))[0]
    assert metrics.lds(e, model, **ask) == pytest.approx(rho, abs=1e-3)
    for wrong in ({"k": 0}, {"k": []}, {"units": "pages"}):
        with pytest.raises(InputError):
            metrics.top_k_drop(e, model, **wrong, **ask)


def test_a_report_of_an_answer(asked: tuple[Any, Any]) -> None:
    case = prepare(*asked[:1], CHAT, tokenizer=asked[1], answer=ANSWER)
    report = faithfulness_report(case, ["alti", "gradient_x_input"], seeds=3)
    assert report["start"]["per_token"]
    made = explain(*asked[:1], CHAT, "alti", tokenizer=asked[1], answer=ANSWER)
    whole = evidence(made, case).probability
    assert report["start"]["probability"] == pytest.approx(np.exp(whole))
    assert max(report["start"]["removable"]) < made.answer.start
    drawn = report["curves"]["alti"]["probabilities"]
    assert all(0 < p < 1 for p in drawn)
    assert "target" not in report["verdict"]["text"]


def test_nothing_left_is_read_after_the_token_that_begins_texts(asked: tuple[Any, Any]) -> None:
    model, tokenizer = asked
    e = explain(model, "the film", "blank_out", tokenizer=tokenizer, answer=[9, 8],
                by="delete", units="sentences")  # fmt: skip
    begin = [tokenizer.bos_token_id, tokenizer.cls_token_id, tokenizer.eos_token_id]
    first = next(one for one in begin if one is not None)
    ids = [t.id for t in e.tokens]
    fall = 2 * (each(model, ids, 2) - each(model, [first, 9, 8], 2))
    assert e.info["values"] == pytest.approx([fall], abs=1e-5)
    assert e.dependence.sum() == pytest.approx(fall, abs=1e-5)


def test_benchmark_over_chats_and_answers(asked: tuple[Any, Any], tmp_path: Any) -> None:
    model, tokenizer = asked
    answered = [*CHAT, {"role": "assistant", "content": ANSWER}]
    rows = [
        {"text": CHAT, "answer": ANSWER},
        answered,
        {"text": "the film is bad . we saw it .", "answer": "it is"},
    ]
    names = ["gradient_x_input", "context_cite", "random"]
    asks = ["comprehensiveness", "top_k_drop", "lds", ("top_k_drop", {"k": 1})]
    given = {"tokenizer": tokenizer, "progress": False, "per_example": True}
    table = benchmark(model, rows, names, asks, **given)
    means = table[table["example"].isna()]
    assert (means["n"] + means["error"].notna() >= 2).all(), means
    assert not means["errors"].any()
    single = table[table["example"].notna() & (table["metric"] == "comprehensiveness")]
    first = single[(single["example"] == 0) & (single["method"] == "gradient_x_input")]
    e = explain(model, CHAT, "gradient_x_input", tokenizer=tokenizer, answer=ANSWER)
    value = metrics.comprehensiveness(e, model, tokenizer=tokenizer)
    assert first["value"].item() == pytest.approx(value, abs=1e-6)
    assert "we saw it" in first["text"].item()
    file = tmp_path / "chats.jsonl"
    file.write_text("\n".join(json.dumps({"messages": one}) for one in (CHAT, answered)))
    kept = benchmark(model, file, ["random"], ["aopc"], answer=True, tokenizer=tokenizer,
                     progress=False)  # fmt: skip
    assert kept["n"].tolist() == [2]
    with pytest.raises(InputError, match="only be True"):
        benchmark(model, rows, ["random"], answer="good", tokenizer=tokenizer, progress=False)
