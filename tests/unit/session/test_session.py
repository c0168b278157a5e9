"""The session without a widget: cancel, errors, cache, and what the listener is told."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mixwidget import explain, mixing_ratios
from mixwidget.errors import CancelledError, TextTooLongError, UnsupportedMethodError
from mixwidget.methods.registry import forget, method
from mixwidget.protocol import Request, Want, unpack
from mixwidget.saving import exported_view
from mixwidget.session import Session, describe
from mixwidget.session.cache import ByteCache
from mixwidget.session.results import head_stats
from tests.lib import tiny
from tests.lib.sessions import CARD, OTHER, TEXT, Recorder, gate, need, session, source, until, wish


def run_id(recorder: Recorder, method: str = "raw_attention") -> str:
    return str(recorder.values["runs"][method]["run"])


def received(recorder: Recorder, what: str, run: str) -> list[tuple[dict[str, Any], Any]]:
    return [
        (content, unpack(content, data))
        for content, data in recorder.messages
        if content["kind"] == "array" and (content["what"], content["run"]) == (what, run)
    ]


def test_layers_arrive_as_the_engine_computes_them() -> None:
    given = source()
    with session(given) as (asked, recorder):
        asked.ask(wish(method="attention_rollout"))
        asked.wait(20)
        expected = explain(given, TEXT, "attention_rollout")
        run = run_id(recorder, "attention_rollout")
        layers = received(recorder, "layer", run)
        rollouts = received(recorder, "rollout", run)
        assert [content["layer"] for content, _ in layers] == [0, 1, 2]
        for layer in range(3):
            np.testing.assert_allclose(layers[layer][1], expected.maps[layer], atol=1e-3)
            np.testing.assert_allclose(rollouts[layer][1], expected.rollout(layer), atol=1e-3)
        np.testing.assert_allclose(received(recorder, "scores", run)[0][1], expected.scores, 1e-6)
        assert [content["seq"] for content in recorder.of_kind("array")] == list(range(7))
        found = asked.explanations()["attention_rollout"]
        np.testing.assert_array_equal(found.maps, expected.maps)
        assert recorder.values["status"]["state"] == "ready"
        assert recorder.values["runs"]["attention_rollout"]["done_layers"] == [0, 1, 2]


@pytest.mark.parametrize("id", ["alti", "attn_norm", "gae", "cat", "gradient", "attention_flow"])
def test_every_kind_of_method_comes_through(id: str) -> None:
    given = source()
    with session(given) as (asked, recorder):
        asked.ask(wish(method=id))
        asked.wait(30)
        expected = explain(given, TEXT, id)
        run = run_id(recorder, id)
        np.testing.assert_allclose(received(recorder, "scores", run)[-1][1], expected.scores, 1e-5)
        if expected.maps is not None:
            rollouts = {c["layer"]: values for c, values in received(recorder, "rollout", run)}
            for layer in range(3):
                np.testing.assert_allclose(rollouts[layer], expected.rollout(layer), atol=1e-3)
        if expected.layer_scores is not None:
            scores = {c["layer"]: values for c, values in received(recorder, "layer_scores", run)}
            np.testing.assert_allclose(scores[1], expected.layer_scores[1], 1e-5)


def test_cancel_keeps_what_is_done_and_rerun_goes_on() -> None:
    with gate() as slow, session() as (asked, recorder):
        asked.ask(wish(method="gate"))
        assert slow.began.wait(10)
        asked.cancel()
        with pytest.raises(CancelledError):
            asked.wait(10)
        assert recorder.values["runs"]["gate"]["state"] == "cancelled"
        assert recorder.values["status"]["state"] == "ready"
        assert "Cancelled" in recorder.values["status"]["message"]
        slow.open.set()
        asked.rerun()
        asked.wait(10)
        assert recorder.values["runs"]["gate"]["state"] == "ready"
        assert slow.begun == 2


def test_cancel_one_run_of_two() -> None:
    with gate("one") as one, gate("two") as two, session() as (asked, recorder):
        asked.ask(wish(method="one", compared=("two",)))
        assert one.began.wait(10)
        asked.cancel(run_id(recorder, "two"))
        until(lambda: recorder.values["runs"]["two"]["state"] == "cancelled")
        one.open.set()
        asked.wait(10)
        assert recorder.values["runs"]["one"]["state"] == "ready"
        assert not two.begun


def test_a_new_wish_cancels_what_it_does_not_need() -> None:
    with gate() as slow, session() as (asked, recorder):
        asked.ask(wish(method="gate"))
        assert slow.began.wait(10)
        begin = time.monotonic()
        asked.ask(wish(method="raw_attention"))
        asked.wait(10)
        assert time.monotonic() - begin < 2
        assert set(recorder.values["runs"]) == {"raw_attention"}


def test_work_that_is_still_wanted_goes_on() -> None:
    with gate() as slow, session() as (asked, recorder):
        asked.ask(wish(method="gate"))
        assert slow.began.wait(10)
        asked.ask(wish(method="gate", compared=("raw_attention",), focus=2))
        until(lambda: "raw_attention" in recorder.values["runs"])
        slow.open.set()
        asked.wait(10)
        assert slow.begun == 1
        assert asked.explanations()["gate"].focus == 2


def test_the_method_in_front_goes_first() -> None:
    with gate() as slow, session() as (asked, recorder):
        asked.ask(wish(method="raw_attention", compared=("gate",)))
        assert slow.began.wait(10)
        assert recorder.values["runs"]["raw_attention"]["state"] == "ready"
        asked.ask(wish(method="attention_rollout", compared=("gate",)))
        until(lambda: recorder.values["runs"].get("attention_rollout", {}).get("state") == "ready")
        slow.open.set()
        asked.wait(10)
        assert recorder.values["runs"]["gate"]["state"] == "ready"


def test_focus_of_mixing_maps_recomputes_nothing() -> None:
    given = source()
    with gate() as counted, session(given) as (asked, recorder):
        counted.open.set()
        asked.ask(wish(method="gate", compared=("attention_rollout",)))
        asked.wait(10)
        before = dict(recorder.values["runs"])
        asked.ask(wish(method="gate", compared=("attention_rollout",), focus=3))
        asked.wait(10)
        assert counted.begun == 1
        assert {m: r["run"] for m, r in recorder.values["runs"].items()} == {
            m: r["run"] for m, r in before.items()
        }
        content, scores = received(recorder, "scores", run_id(recorder, "attention_rollout"))[-1]
        expected = explain(given, TEXT, "attention_rollout", focus=3)
        assert content["focus"] == 3
        np.testing.assert_allclose(scores, expected.scores, 1e-6)
        np.testing.assert_allclose(
            asked.explanations()["attention_rollout"].scores, expected.scores, 1e-6
        )


def test_focus_matters_only_to_methods_that_read_it() -> None:
    """A class is explained the same whatever token is looked at; Grad-CAM reads one row."""
    given, methods = source(), ("attcat", "gae", "grad_cam")
    with session(given) as (asked, recorder):
        asked.ask(wish(method=methods[0], compared=methods[1:]))
        asked.wait(20)
        before = {m: r["run"] for m, r in recorder.values["runs"].items()}
        asked.ask(wish(method=methods[0], compared=methods[1:], focus=3))
        asked.wait(20)
        after = {m: r["run"] for m, r in recorder.values["runs"].items()}
        assert [m for m in methods if before[m] != after[m]] == ["grad_cam"]
        for method in methods:
            expected = explain(given, TEXT, method, focus=3).scores
            np.testing.assert_allclose(asked.explanations()[method].scores, expected, 1e-5, 1e-7)


def test_target_matters_only_to_methods_that_explain_one() -> None:
    with session() as (asked, recorder):
        asked.ask(wish(method="attention_rollout", compared=("gradient",)))
        asked.wait(20)
        before = {m: r["run"] for m, r in recorder.values["runs"].items()}
        predicted = recorder.values["model_info"]["prediction"]["index"]
        asked.ask(wish(method="attention_rollout", compared=("gradient",), target=predicted))
        asked.wait(20)
        assert {m: r["run"] for m, r in recorder.values["runs"].items()} == before
        asked.ask(
            wish(method="attention_rollout", compared=("gradient",), target=(predicted + 1) % 3)
        )
        asked.wait(20)
        after = {m: r["run"] for m, r in recorder.values["runs"].items()}
        assert after["attention_rollout"] == before["attention_rollout"]
        assert after["gradient"] != before["gradient"]
        assert asked.explanations()["gradient"].target == (predicted + 1) % 3


def test_going_back_is_instant_and_sends_nothing() -> None:
    with gate() as counted, session() as (asked, recorder):
        counted.open.set()
        asked.ask(wish(method="gate"))
        asked.wait(10)
        run = run_id(recorder, "gate")
        asked.ask(wish(OTHER, method="raw_attention"))
        asked.wait(10)
        sent = len(recorder.messages)
        asked.ask(wish(method="gate"))
        asked.wait(10)
        assert counted.begun == 1
        assert len(recorder.messages) == sent
        assert run_id(recorder, "gate") == run
        assert [token["piece"] for token in recorder.values["tokens"]][1:3] == ["the", "film"]


def test_the_cache_is_bounded_and_keeps_what_is_shown() -> None:
    with session(cache_bytes=1) as (asked, recorder):
        for text in (TEXT, OTHER, "the plot is thin", TEXT):
            asked.ask(wish(text))
            asked.wait(10)
            assert set(asked.explanations()) == {"raw_attention"}
            assert len(asked._cache) == 2  # the text that is shown, and its run
        run = run_id(recorder)
        assert recorder.answer(asked, need("n", Want(run, "layer", 0)))[-1]["missing"] == []


def test_byte_cache_drops_the_oldest() -> None:
    cache = ByteCache(10)
    for key in "abc":
        cache.put(key, key, 4)
    assert cache.nbytes == 8
    assert cache.get("a") is None
    assert cache.get("b") == "b"
    cache.put("d", "d", 4)
    assert "c" not in cache
    assert "b" in cache
    cache.pin(["b"])
    cache.put("e", "e", 100)
    assert "b" in cache
    assert len(cache) == 2


def test_a_late_view_is_told_all_it_asks_for() -> None:
    given = source()
    with session(given) as (asked, recorder):
        asked.ask(wish(method="attention_rollout"))
        asked.wait(10)
        run = run_id(recorder, "attention_rollout")
        wants = [
            Want(run, "layer", 1),
            Want(run, "rollout", 2),
            Want(run, "sum", 2),
            Want(run, "rows", of="rollout", focus=2),
            Want(run, "rows", of="sum", focus=2),
            Want(run, "overview", 0, of="rollout"),
            Want(run, "scores"),
            Want("", "heads", 1),
            Want("", "head_stats"),
            Want("", "mixing"),
            Want(run, "layer", 99),
            Want("no-such-run", "layer", 0),
            Want(run, "layer_scores", 0),
        ]
        answers = recorder.answer(asked, need("late", *wants))
        assert [content["kind"] for content in answers] == ["array"] * 10 + ["done"]
        assert [want["what"] for want in answers[-1]["missing"]] == [
            "layer",
            "layer",
            "layer_scores",
        ]
        expected = explain(given, TEXT, "attention_rollout")
        by_name = {
            (content["what"], content["of"]): unpack(content, data)
            for content, data in recorder.messages
            if content["id"] == "late" and data is not None
        }
        np.testing.assert_allclose(by_name["sum", None], expected.maps.sum(0), atol=2e-3)
        rows = np.stack([expected.rollout(layer)[2] for layer in range(3)])
        np.testing.assert_allclose(by_name["rows", "rollout"], rows, rtol=1e-5)
        np.testing.assert_allclose(by_name["rows", "sum"][2], expected.maps[:, 2].sum(0), 1e-5)
        heads, stats = by_name["heads", None], by_name["head_stats", None]
        assert heads.shape == (4, len(expected.tokens), len(expected.tokens))
        assert stats.shape == (3, 4, 6)
        np.testing.assert_allclose(stats[1, :, 0], [head.diagonal().mean() for head in heads], 1e-2)
        ratios = mixing_ratios(given.model, TEXT, tokenizer=given.tokenizer)
        np.testing.assert_allclose(by_name["mixing", None].ravel(), ratios["enc"], rtol=1e-5)
        assert (stats >= 0).all()
        assert (stats <= 1 + 1e-6).all()


def test_requests_are_answered_while_something_slow_runs() -> None:
    with gate() as slow, session() as (asked, recorder):
        asked.ask(wish(method="raw_attention", compared=("gate",)))
        assert slow.began.wait(10)
        begin = time.monotonic()
        answers = recorder.answer(asked, need("now", Want(run_id(recorder), "layer", 0)))
        assert time.monotonic() - begin < 1
        assert [content["kind"] for content in answers] == ["array", "done"]


def test_a_gap_is_filled_with_the_same_bytes() -> None:
    with session() as (asked, recorder):
        asked.ask(wish())
        asked.wait(10)
        run = run_id(recorder)
        pushed = received(recorder, "layer", run)[1][1]
        recorder.answer(asked, need("gap", Want(run, "layer", 1)))
        np.testing.assert_array_equal(received(recorder, "layer", run)[-1][1], pushed)


def failing(run: Any) -> Iterator[Any]:
    yield run.part(0, None)
    raise RuntimeError("the method is broken")


def test_an_exception_in_a_method_is_told_in_words(caplog: pytest.LogCaptureFixture) -> None:
    method("broken", title="broken", yields="maps", needs=(), **CARD)(failing)
    try:
        with caplog.at_level(logging.WARNING, "mixwidget"), session() as (asked, recorder):
            asked.ask(wish(method="broken"))
            with pytest.raises(RuntimeError, match="the method is broken"):
                asked.wait(10)
            status = recorder.values["status"]
            assert status["state"] == "error"
            assert "the method is broken" in status["message"]
            assert status["hint"]
            assert "Traceback" in caplog.text
            asked.ask(wish(method="raw_attention"))
            asked.wait(10)
            assert recorder.values["status"]["state"] == "ready"
    finally:
        forget("broken")


def test_an_error_in_a_compared_method_leaves_the_front_alone() -> None:
    method("broken", title="broken", yields="maps", needs=(), **CARD)(failing)
    try:
        with session() as (asked, recorder):
            asked.ask(wish(method="raw_attention", compared=("broken",)))
            asked.wait(10)
            assert recorder.values["status"]["state"] == "ready"
            assert recorder.values["runs"]["broken"]["state"] == "error"
            assert "broken" in recorder.values["runs"]["broken"]["message"]
    finally:
        forget("broken")


def test_a_text_that_is_too_long_and_the_next_one() -> None:
    with session() as (asked, recorder):
        asked.ask(wish("film " * 100))
        with pytest.raises(TextTooLongError):
            asked.wait(10)
        assert recorder.values["status"]["state"] == "error"
        assert "102 tokens" in recorder.values["status"]["message"]
        assert recorder.values["runs"] == {}
        asked.ask(wish())
        asked.wait(10)
        assert recorder.values["status"]["state"] == "ready"


def test_truncate_cuts_instead() -> None:
    with session(truncate=True) as (asked, recorder):
        asked.ask(wish("film " * 100))
        asked.wait(10)
        assert len(recorder.values["tokens"]) == 64


def test_a_model_without_a_head_says_why_not() -> None:
    with session(source(head="")) as (asked, recorder):
        asked.ask(wish(method="gradient"))
        with pytest.raises(UnsupportedMethodError, match="no head"):
            asked.wait(10)
        entries = {entry["id"]: entry for entry in recorder.values["catalogue"]}
        assert not entries["gradient"]["available"]
        assert "no head" in entries["gradient"]["reason"]
        assert entries["alti"]["available"]
        assert recorder.values["model_info"]["prediction"] is None
        assert recorder.values["model_info"]["targets"] == []


@pytest.mark.parametrize(
    ("family", "head", "text", "kind"),
    [
        ("bert", "MaskedLM", "the film is [MASK] .", "masked_lm"),
        ("gpt2", "CausalLM", TEXT, "causal_lm"),
        ("bert", "QuestionAnswering", TEXT, "question_answering"),
    ],
)
def test_other_tasks(family: str, head: str, text: str, kind: str) -> None:
    with session(source(family, head)) as (asked, recorder):
        asked.ask(wish(text, method="attention_rollout", compared=("gradient",)))
        asked.wait(20)
        info = recorder.values["model_info"]
        assert info["task"] == kind
        assert info["prediction"]["label"]
        assert info["targets"][0]["value"] == info["prediction"]["index"]
        assert info["adds_up"]
        assert max(info["adds_up"]) < 1e-4


def test_an_answer_is_picked_among_the_likeliest() -> None:
    given = source("bert", "QuestionAnswering")
    with session(given) as (asked, recorder):
        asked.ask(wish(method="alti"))
        asked.wait(20)
        info = recorder.values["model_info"]
        spans = [choice["value"] for choice in info["targets"]]
        assert info["answer"] == recorder.values["focus"] == spans[0][0]
        assert len(spans) == len({tuple(span) for span in spans}) == 20
        assert all(first <= last for first, last in spans)
        shares = [choice["probability"] for choice in info["targets"]]
        assert shares == sorted(shares, reverse=True)
        other = next(span for span in spans if span[0] != spans[0][0])
        asked.ask(wish(method="alti", target=other))
        asked.wait(20)
        assert recorder.values["focus"] == recorder.values["model_info"]["answer"] == other[0]
        asked.ask(wish(method="alti", target=other, focus=0))
        asked.wait(20)
        assert recorder.values["focus"] == 0
        assert recorder.values["model_info"]["answer"] == other[0]


def test_what_heads_wrote_into_the_answer_comes_where_heads_are_looked_at() -> None:
    given = source("gpt2", "CausalLM")
    with session(given) as (asked, recorder):
        asked.ask(wish(method="attention_rollout", heads=True))
        asked.wait(20)
        assert list(asked.explanations()) == ["attention_rollout"]  # it was not asked for
        assert recorder.values["runs"]["logit"]["state"] == "ready"
        run = run_id(recorder, "logit")
        wants = [Want(run, "head_sums"), Want(run, "head_scores", layer=1)]
        recorder.answer(asked, need("h", *wants))
        (_, sums), (_, scores) = [*received(recorder, "head_sums", run),
                                  *received(recorder, "head_scores", run)]  # fmt: skip
        held = explain(given, TEXT, "logit").head_scores
        assert held is not None
        np.testing.assert_allclose(sums, held.sum(-1), rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(scores, held[1], rtol=1e-6)
        asked.ask(wish(method="attention_rollout"))
        asked.wait(20)
        assert "logit" not in recorder.values["runs"]


def test_a_run_tells_its_balance_and_the_heads_of_its_mask() -> None:
    with session(source()) as (asked, recorder):
        asked.ask(wish(method="attn_lrp", compared=("mask_lrp", "raw_attention")))
        asked.wait(20)
        runs = recorder.values["runs"]
        assert 0 <= runs["attn_lrp"]["balance"]["error"] < 1e-4
        assert runs["attn_lrp"]["balance"]["unmet"] == ""
        assert np.shape(runs["mask_lrp"]["mask"]) == (3, 4)
        assert "heads" in runs["mask_lrp"]["mask_note"]
        assert "balance" not in runs["raw_attention"]
        chosen = [[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
        asked.ask(wish(method="mask_lrp", params={"mask_lrp": {"mask": chosen}}))
        asked.wait(20)
        assert recorder.values["runs"]["mask_lrp"]["mask"] == chosen
        assert "2 of 12" in recorder.values["runs"]["mask_lrp"]["mask_note"]
    kept = {"error": 0.2, "argmax": 0.3, "sort": -0.7, "inputs": 1.0}
    info = {"balance": kept, "rules": {"unmet": {"argmax": 1, "sort": 2}}}
    assert describe.told(info) == {"balance": {"error": 0.2, "unmet": "sort"}}


def test_an_opener_that_fails_is_tried_again() -> None:
    tries: list[int] = []

    def opener() -> Any:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("the disk is away")
        return source()

    recorder = Recorder()
    asked = Session(opener, recorder, exported_view)
    asked.ask(wish())
    with pytest.raises(OSError, match="disk"):
        asked.wait(10)
    assert recorder.values["status"]["state"] == "error"
    asked.rerun()
    asked.wait(10)
    assert recorder.values["status"]["state"] == "ready"
    asked.close(5)


def test_progress_and_time_left() -> None:
    with gate() as slow, session() as (asked, recorder):
        asked.ask(wish(method="gate"))
        assert slow.began.wait(10)
        run = until(
            lambda: (r := recorder.values["runs"]["gate"])["seconds_left"] is not None and r
        )
        assert run["state"] == "computing"
        assert 0 < run["progress"] < 1
        assert recorder.values["status"]["state"] == "computing"


def test_long_texts_send_overviews_and_rows() -> None:
    model = tiny.model("bert", max_position_embeddings=320)
    tokenizer = tiny.tokenizer()
    tokenizer.model_max_length = 320
    from mixwidget.models import open_source

    given, text = open_source(model, tokenizer), "the film is not bad " * 50
    with session(given) as (asked, recorder):
        asked.ask(wish(text, method="attention_rollout"))
        asked.wait(20)
        pushed = {(c["what"], c["of"]) for c in recorder.of_kind("array")}
        assert pushed == {
            ("overview", "layer"),
            ("rows", "layer"),
            ("rows", "rollout"),
            ("scores", None),
        }
        run = run_id(recorder, "attention_rollout")
        assert received(recorder, "overview", run)[0][1].shape == (96, 96)
        expected = explain(model, text, "attention_rollout", tokenizer=tokenizer)
        whole = np.stack([expected.rollout(layer) for layer in range(3)])
        rows = [row for content, row in received(recorder, "rows", run) if content["of"] != "layer"]
        np.testing.assert_allclose(rows[-1], whole[:, expected.focus], rtol=1e-5)
        # All layers are rolled out only when somebody looks at them.
        wants = [Want(run, "overview", 2, of="rollout"), Want(run, "rollout", 2)]
        answers = recorder.answer(asked, need("full", *wants))
        assert [content["shape"] for content in answers[:2]] == [[96, 96], [252, 252]]
        overview = next(a for c, a in received(recorder, "overview", run) if c["of"] == "rollout")
        np.testing.assert_allclose(overview.max(), whole[2].max(), rtol=1e-2)


def test_an_unknown_format_is_refused_in_words() -> None:
    with session() as (asked, recorder):
        asked.ask(wish())
        asked.wait(10)
        answers = recorder.answer(asked, Request("export", "e", format="docx"))
        assert [content["kind"] for content in answers] == ["error"]
        assert "docx" in answers[0]["message"]
        answers = recorder.answer(asked, Request("export", "j", format="json"))
        assert [content["kind"] for content in answers] == ["file", "done"]
        assert answers[0]["mime"] == "application/json"


def test_options_are_part_of_a_run() -> None:
    given = source()
    with session(given) as (asked, recorder):
        asked.ask(wish(method="alti"))
        asked.wait(10)
        plain = run_id(recorder, "alti")
        asked.ask(wish(method="alti", params={"alti": {"p": 2}, "globenc": {}}))
        asked.wait(10)
        assert run_id(recorder, "alti") != plain
        expected = explain(given, TEXT, "alti", p=2)
        np.testing.assert_array_equal(asked.explanations()["alti"].maps, expected.maps)
        asked.ask(wish(method="alti", params={"alti": {"p": 1}}))  # the default, said aloud
        asked.wait(10)
        assert run_id(recorder, "alti") == plain


def test_a_method_registered_later_is_in_the_catalogue() -> None:
    with session() as (asked, recorder):
        asked.ask(wish())
        asked.wait(10)
        assert "late" not in {entry["id"] for entry in recorder.values["catalogue"]}
        with gate("late") as quick:
            quick.open.set()
            asked.ask(wish(method="late"))
            asked.wait(10)
            assert "late" in {entry["id"] for entry in recorder.values["catalogue"]}


def test_head_statistics_count_only_tokens_that_attend() -> None:
    """Of an encoder-decoder's layer some rows are empty: they are no zeros to average in."""
    weights = np.zeros((1, 4, 4), np.float32)
    weights[0, 3] = [0.0, 0.0, 0.25, 0.75]
    found = head_stats(weights, np.array([True, False, False, False]))
    np.testing.assert_allclose(found[0], [0.75, 0.25, 0, 0, 0, 1])
    assert not head_stats(np.zeros((2, 3, 3)), np.zeros(3, bool)).any()
    full = np.random.default_rng(0).dirichlet(np.ones(4), (2, 4))
    offsets = full.argmax(-1) - np.arange(4)
    most = [np.unique(one, return_counts=True)[1].max() / 4 for one in offsets]
    found = head_stats(full, np.array([True, False, False, True]))
    np.testing.assert_allclose(found[:, 0], np.diagonal(full, 0, 1, 2).mean(-1), rtol=1e-5)
    np.testing.assert_allclose(found[:, 1], np.diagonal(full, -1, 1, 2).mean(-1), rtol=1e-5)
    np.testing.assert_allclose(found[:, 4], full[..., [0, 3]].sum(-1).mean(-1), rtol=1e-5)
    np.testing.assert_allclose(found[:, 5], most, rtol=1e-5)


def test_the_ways_of_another_method_stand_in_where_scores_alone_are_asked_for() -> None:
    with session() as (asked, recorder):
        asked.ask(wish(method="gradient_x_input", ways=True))
        asked.wait(20)
        until(lambda: "alti" in recorder.values["runs"])
        assert list(recorder.values["runs"]) == ["gradient_x_input", "alti"]
        assert set(asked.explanations()) == {"gradient_x_input"}  # it was not asked for
        asked.ask(wish(method="gradient_x_input", compared=("globenc",), ways=True))
        asked.wait(20)
        until(lambda: "globenc" in recorder.values["runs"])
        assert list(recorder.values["runs"]) == ["gradient_x_input", "globenc"]
