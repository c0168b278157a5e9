"""Measuring in the session: streams, is overtaken or stopped, and computes nothing twice."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest

from mixwidget.errors import CancelledError
from mixwidget.metrics import evidence
from mixwidget.protocol import Request
from mixwidget.saving import exported_view
from mixwidget.session import Session
from tests.lib.sessions import OTHER, TEXT, Recorder, gate, session, source, until, wish

METHODS = ("raw_attention", "alti")


def measure(recorder: Recorder, id: str, *methods: str, **more: Any) -> Request:
    """What the browser sends: the runs, target and focus as it sees them."""
    runs = {method: str(recorder.values["runs"][method]["run"]) for method in methods}
    return Request("measure", id, runs=runs, focus=recorder.values["focus"], **more)


def shown(asked: Session, recorder: Recorder, **more: Any) -> None:
    asked.ask(wish(method=METHODS[0], compared=METHODS[1:], **more))
    asked.wait(20)
    until(lambda: set(METHODS) <= set(recorder.values["runs"]))


def passes(asked: Session) -> int:
    front = asked.explanations()[METHODS[0]]
    return evidence(front, asked.case).passes


def test_parts_stream_and_end_with_one_answer() -> None:
    with session() as (asked, recorder):
        shown(asked, recorder)
        said = recorder.answer(asked, measure(recorder, "m", *METHODS))
        parts = [content.get("part", content["kind"]) for content in said]
        assert parts[:3] == ["start", "curve", "random"]
        assert parts[-4:] == ["curve", "agreement", "verdict", "done"]
        assert len(recorder.finals("m")) == 1
        assert said[0]["methods"] == list(METHODS)
        assert {content["kind"] for content in said[:-1]} == {"faithfulness"}
        json.dumps(said, allow_nan=False)


def test_asked_again_no_pass_is_made_twice() -> None:
    with session() as (asked, recorder):
        shown(asked, recorder)
        first = recorder.answer(asked, measure(recorder, "first", *METHODS))
        before = passes(asked)
        assert before > 0
        shown(asked, recorder, text=OTHER)
        recorder.answer(asked, measure(recorder, "other", *METHODS))
        shown(asked, recorder)
        again = recorder.answer(asked, measure(recorder, "again", *METHODS))
        assert passes(asked) == before
        assert [{**c, "id": ""} for c in again] == [{**c, "id": ""} for c in first]


def test_an_exported_page_holds_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[list[dict[str, Any]]] = []
    monkeypatch.setattr("mixwidget.saving.page.make_page", lambda *all: held.append(all[3]) or b"")
    with session() as (asked, recorder):
        shown(asked, recorder)
        exported_view(asked.shown(), "html", {})
        told = recorder.answer(asked, measure(recorder, "m", *METHODS))
        exported_view(asked.shown(), "html", {})
        shown(asked, recorder, focus=2)
        exported_view(asked.shown(), "html", {})
        shown(asked, recorder, target=0)
        exported_view(asked.shown(), "html", {})
    # The test is about the answer, whatever row is looked at.
    assert [len(parts) for parts in held] == [0, len(told) - 1, len(told) - 1, 0]
    assert [part["part"] for part in held[1]] == [content["part"] for content in told[:-1]]


def test_another_target_is_another_answer() -> None:
    with session() as (asked, recorder):
        shown(asked, recorder, target=0)
        zero = recorder.answer(asked, measure(recorder, "zero", *METHODS, target=0))
        shown(asked, recorder, target=1)
        one = recorder.answer(asked, measure(recorder, "one", *METHODS, target=1))
        assert zero[0]["target"] != one[0]["target"]
        assert zero[0]["probability"] != pytest.approx(one[0]["probability"])


@pytest.mark.parametrize("change", [{"text": OTHER}, {"target": 0}])
def test_what_is_not_shown_is_not_measured(change: dict[str, Any]) -> None:
    """The request and the state it belongs to may come in any order."""
    with session() as (asked, recorder):
        shown(asked, recorder)
        late = measure(recorder, "late", *METHODS)
        shown(asked, recorder, **change)
        assert [c["kind"] for c in recorder.answer(asked, late)] == ["cancelled"]
        early = Request("measure", "early", runs={"gae": "gae-1"})
        assert [c["kind"] for c in recorder.answer(asked, early)] == ["cancelled"]


def test_the_answers_row_is_measured_whatever_row_is_looked_at() -> None:
    with session() as (asked, recorder):
        shown(asked, recorder)
        first = recorder.answer(asked, measure(recorder, "first", *METHODS))
        shown(asked, recorder, focus=2)
        runs = {method: recorder.values["runs"][method]["run"] for method in METHODS}
        at_answer = Request("measure", "again", runs=runs, focus=0)
        again = recorder.answer(asked, at_answer)
        assert [{**c, "id": ""} for c in again] == [{**c, "id": ""} for c in first]
        here = recorder.answer(asked, Request("measure", "here", runs=runs, focus=2))
        assert here[-1]["kind"] == "done"
        assert here[1]["order"] != first[1]["order"]
        elsewhere = recorder.answer(asked, Request("measure", "else", runs=runs, focus=3))
        assert [c["kind"] for c in elsewhere] == ["cancelled"]


def test_a_run_of_one_row_is_not_taken_for_the_answers() -> None:
    """Attention flow is computed for one row only."""
    with session() as (asked, recorder):
        asked.ask(wish(method="attention_flow", focus=2))
        asked.wait(20)
        until(lambda: "attention_flow" in recorder.values["runs"])
        runs = {"attention_flow": recorder.values["runs"]["attention_flow"]["run"]}
        said = recorder.answer(asked, Request("measure", "m", runs=runs, focus=0))
        assert [c["kind"] for c in said] == ["cancelled"]


def test_what_is_shown_is_tested_without_being_asked() -> None:
    with session(verdicts=True) as (asked, recorder):
        shown(asked, recorder)
        before = passes(asked)
        assert before > 0
        said = recorder.answer(asked, measure(recorder, "m", *METHODS))
        assert [c.get("part", c["kind"]) for c in said][-2:] == ["verdict", "done"]
        assert passes(asked) == before
        shown(asked, recorder, focus=2)
        assert passes(asked) == before


def test_what_takes_long_waits_to_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mixwidget.session.measuring.BUDGET", 1e-6)
    with session(verdicts=True) as (asked, recorder):
        shown(asked, recorder)
        said = recorder.answer(asked, measure(recorder, "m", *METHODS))
        assert [c.get("part", c["kind"]) for c in said] == ["start", "budget", "done"]
        assert said[1]["seconds"] > 0
        whole = recorder.answer(asked, measure(recorder, "whole", *METHODS, whole=True))
        assert [c.get("part", c["kind"]) for c in whole][-2:] == ["verdict", "done"]
        again = recorder.answer(asked, measure(recorder, "again", *METHODS))
        assert [c.get("part", c["kind"]) for c in again][-2:] == ["verdict", "done"]


def test_before_anything_is_shown() -> None:
    with session() as (asked, recorder):
        request = Request("measure", "m", runs={"alti": "alti-1"})
        assert [c["kind"] for c in recorder.answer(asked, request)] == ["cancelled"]


def test_maps_come_first() -> None:
    with gate() as slow, session() as (asked, recorder):
        asked.ask(wish(method="gate"))
        assert slow.began.wait(10)
        asked.request(measure(recorder, "m", "gate"))
        asked.ask(wish(method="gate", compared=("alti",)))
        slow.open.set()
        until(lambda: recorder.finals("m"))
        states = [m[0].get("part") or m[0].get("what") for m in recorder.messages]
        assert states.index("start") > states.index("layer")
        assert recorder.values["runs"]["alti"]["state"] == "ready"
        first_part = next(i for i, m in enumerate(recorder.messages) if m[0].get("part"))
        assert all(m[0]["kind"] != "array" for m in recorder.messages[first_part:])
        assert recorder.finals("m")[0]["kind"] == "done"


class Slow:
    """Makes every edited text's pass wait until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        module = importlib.import_module("mixwidget.metrics.evidence")
        self.open = self.began = False
        real = module.predict

        def predict(*given: Any, check: Any = None, **more: Any) -> Any:
            if check is not None and not self.open:
                self.began = True
                until(lambda: check() or self.open)
            return real(*given, check=check, **more)

        monkeypatch.setattr(module, "predict", predict)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    return Slow(monkeypatch)


def begin(asked: Session, recorder: Recorder, slow: Slow, id: str = "m") -> None:
    shown(asked, recorder)
    asked.request(measure(recorder, id, *METHODS))
    until(lambda: slow.began)


@pytest.mark.parametrize("change", [{"text": OTHER}, {"target": 0}])
def test_a_change_overtakes(slow: Slow, change: dict[str, Any]) -> None:
    with session() as (asked, recorder):
        begin(asked, recorder, slow)
        shown(asked, recorder, **change)
        until(lambda: recorder.finals("m"))
        assert [c["kind"] for c in recorder.finals("m")] == ["cancelled"]


@pytest.mark.parametrize("how", ["request", "all", "python"])
def test_stopping(slow: Slow, how: str) -> None:
    with session() as (asked, recorder):
        begin(asked, recorder, slow)
        if how == "python":
            asked.cancel()
        else:
            one = Request("cancel", "c", request="m" if how == "request" else None)
            assert [c["kind"] for c in recorder.answer(asked, one)] == ["done"]
        final = until(lambda: recorder.finals("m"))
        assert [c["kind"] for c in final] == ["error"]
        assert "stopped" in final[0]["message"]
        slow.open = True
        said = recorder.answer(asked, measure(recorder, "again", *METHODS))
        assert said[-1]["kind"] == "done"
        assert len(recorder.finals("m")) == 1
        assert recorder.values["status"]["state"] == "ready"


def test_wait_does_not_wait_for_it_and_requests_are_answered(slow: Slow) -> None:
    with session() as (asked, recorder):
        begin(asked, recorder, slow)
        asked.wait(1)
        assert recorder.answer(asked, Request("need", "n"))[-1]["kind"] == "done"
        assert not recorder.finals("m")


def test_a_wish_that_changes_nothing_of_it_only_holds_it_up(slow: Slow) -> None:
    with session() as (asked, recorder):
        begin(asked, recorder, slow)
        asked.ask(wish(method="gae", compared=METHODS))
        asked.wait(20)
        assert not recorder.finals("m")
        slow.open = True
        until(lambda: recorder.finals("m"))
        parts = [c["part"] for c in recorder.of_kind("faithfulness", "m")]
        assert parts.count("start") == 1
        assert parts.count("curve") == 2
        assert recorder.finals("m")[0]["kind"] == "done"


def test_two_pages_share_the_work(slow: Slow) -> None:
    with session() as (asked, recorder):
        begin(asked, recorder, slow)
        asked.request(measure(recorder, "second", *METHODS))
        asked.request(measure(recorder, "third", METHODS[1]))  # another question overtakes both
        until(lambda: recorder.finals("m") and recorder.finals("second"))
        slow.open = True
        asked.request(measure(recorder, "fourth", METHODS[1]))
        until(lambda: recorder.finals("third") and recorder.finals("fourth"))
        kinds = {id: [c["kind"] for c in recorder.finals(id)] for id in ("m", "second", "third")}
        assert kinds == {"m": ["cancelled"], "second": ["cancelled"], "third": ["done"]}
        both = [recorder.of_kind("faithfulness", id) for id in ("third", "fourth")]
        assert [c["part"] for c in both[0]] == [c["part"] for c in both[1]]


def test_a_pause_and_a_close_leave_nothing_behind(slow: Slow) -> None:
    with session(idle_seconds=0.05) as (asked, recorder):
        begin(asked, recorder, slow)
        asked.pause()
        until(lambda: recorder.finals("m"))
        assert recorder.finals("m")[0]["kind"] == "cancelled"
        until(lambda: not asked.working)
        asked.pause(False)
        asked.request(measure(recorder, "again", *METHODS))
        slow.began = False
        until(lambda: slow.began)
        asked.close(5)
        assert not asked.working


def test_a_model_without_a_head_is_refused_in_words() -> None:
    with session(source(head="")) as (asked, recorder):
        shown(asked, recorder)
        said = recorder.answer(asked, measure(recorder, "m", *METHODS))
        assert said[-1]["kind"] == "error"
        assert "no head" in said[-1]["message"]


def test_an_encoder_decoder_is_measured() -> None:
    with session(source("bart", "Seq2SeqLM")) as (asked, recorder):
        asked.ask(wish(method="raw_attention", text_pair="a good film"))
        asked.wait(20)
        said = recorder.answer(asked, measure(recorder, "m", "raw_attention"))
        assert said[-1]["kind"] == "done"
        tokens = recorder.values["tokens"]
        segments = {tokens[place]["segment"] for place in said[0]["removable"]}
        assert segments == {0, 1}  # of the source, and of what the decoder has written


def test_a_method_that_failed_says_so_and_the_others_are_measured() -> None:
    with gate(needs=("rules",)) as broken, session() as (asked, recorder):

        def fail(run: Any) -> Any:
            raise RuntimeError("it broke")

        broken.run = fail  # type: ignore[method-assign]
        asked.ask(wish(method="gate", compared=("alti",)))
        with pytest.raises(RuntimeError):
            asked.wait(20)
        until(lambda: recorder.values["runs"]["gate"]["state"] == "error")
        said = recorder.answer(asked, measure(recorder, "m", "gate", "alti"))
        assert said[0]["methods"] == ["gate", "alti"]
        assert "it broke" in said[1]["error"]
        assert said[-1]["kind"] == "done"
        assert said[-2]["methods"].keys() == {"alti"}
        assert "random" in [content.get("part") for content in said]


def test_a_stopped_run_is_said_to_be() -> None:
    with gate() as slow, session() as (asked, recorder):
        asked.ask(wish(method="gate"))
        assert slow.began.wait(10)
        asked.cancel()
        with pytest.raises(CancelledError):
            asked.wait(10)
        said = recorder.answer(asked, measure(recorder, "m", "gate"))
        assert said[-1]["kind"] == "error"
        assert "stopped" in said[-1]["message"]


def test_a_bug_is_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    from mixwidget import metrics

    def broken(*given: Any, **more: Any) -> Any:
        raise ZeroDivisionError("oh")

    with session() as (asked, recorder):
        shown(asked, recorder, text=TEXT)
        monkeypatch.setattr(metrics, "faithfulness", broken)
        said = recorder.answer(asked, measure(recorder, "m", *METHODS))
        assert [c["kind"] for c in said] == ["error"]
        assert "ZeroDivisionError: oh" in said[0]["message"]
