"""The life of a session's thread, and callers on several threads."""

from __future__ import annotations

import _thread
import gc
import signal
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mixwidget import explain
from mixwidget.errors import CancelledError
from mixwidget.protocol import Want
from mixwidget.saving import exported_view
from mixwidget.session import Session
from tests.lib import tiny
from tests.lib.sessions import OTHER, TEXT, Recorder, gate, need, session, source, until, wish


def test_all_is_told_on_the_worker() -> None:
    with session() as (asked, recorder):
        asked.ask(wish())
        asked.wait(20)
        assert recorder.threads == {"mixwidget"}


def test_close_ends_the_thread_at_once() -> None:
    with gate() as slow, session() as (asked, recorder):
        asked.ask(wish(method="gate"))
        assert slow.began.wait(10)
        asked.close()
        until(lambda: not asked.working, 2)
        told = len(recorder.history)
        with pytest.raises(CancelledError):
            asked.wait(1)
        asked.ask(wish())  # nothing, and no thread
        assert not asked.working
        assert len(recorder.history) == told


def test_an_idle_thread_ends_and_comes_back() -> None:
    with session(idle_seconds=0.05) as (asked, _):
        asked.ask(wish())
        asked.wait(10)
        until(lambda: not asked.working, 3)
        asked.ask(wish(OTHER))
        asked.wait(10)
        assert "raw_attention" in asked.explanations()


def test_garbage_collection_ends_the_thread() -> None:
    asked = Session(source, Recorder(), exported_view, idle_seconds=60)
    asked.ask(wish())
    asked.wait(10)
    thread = asked._inbox.thread
    assert thread is not None
    gone = weakref.ref(asked)
    del asked
    gc.collect()
    thread.join(3)
    assert not thread.is_alive()
    assert gone() is None


def test_no_hook_is_left_on_the_model() -> None:
    given = source()
    config = given.model.config
    before = config._attn_implementation
    with gate() as slow, session(given) as (asked, _):
        asked.ask(wish(method="gate", compared=("gradient",)))
        assert slow.began.wait(10)
        asked.cancel()
        asked.close(5)
    assert config._attn_implementation == before
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in given.model.modules())


def test_two_sessions_on_one_model() -> None:
    given = source()
    expected = {text: explain(given, text, "alti").maps for text in (TEXT, OTHER)}
    with session(given) as (one, _), session(given) as (two, _):
        for _ in range(5):
            one.ask(wish(TEXT, method="alti"))
            two.ask(wish(OTHER, method="alti"))
            one.wait(20)
            two.wait(20)
            np.testing.assert_array_equal(one.explanations()["alti"].maps, expected[TEXT])
            np.testing.assert_array_equal(two.explanations()["alti"].maps, expected[OTHER])
            one.rerun()
            two.rerun()


def test_wishes_from_two_threads() -> None:
    with session() as (asked, recorder):
        texts = [TEXT, OTHER]

        def ask(text: str) -> None:
            for _ in range(20):
                asked.ask(wish(text))
                time.sleep(0.001)

        threads = [threading.Thread(target=ask, args=(text,)) for text in texts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        asked.wait(20)
        last = asked._inbox.wish
        assert last is not None
        assert asked.explanations()["raw_attention"].tokens[1:-1] == tiny_tokens(last.text)
        assert recorder.values["status"]["state"] == "ready"


def tiny_tokens(text: str) -> list[str]:
    return list(tiny.tokenizer().tokenize(text))


def test_twenty_quick_changes_end_in_the_right_state() -> None:
    given = source()
    with session(given) as (asked, recorder):
        for number in range(20):
            method = ("raw_attention", "attention_rollout", "alti")[number % 3]
            asked.ask(wish((TEXT, OTHER)[number % 2], method=method, focus=number % 4))
        asked.wait(20)
        found = asked.explanations()
        assert set(found) == set(recorder.values["runs"]) == {"attention_rollout"}
        expected = explain(given, OTHER, "attention_rollout", focus=3)
        np.testing.assert_allclose(found["attention_rollout"].scores, expected.scores, 1e-6)
        assert len(recorder.values["tokens"]) == len(expected.tokens)
        assert recorder.values["focus"] == 3
        assert recorder.values["status"]["state"] == "ready"


@pytest.fixture
def _interrupts() -> Iterator[None]:
    """Python's own handler: who starts tests in the background may have told it to ignore them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interrupts")
def test_an_interrupt_while_waiting_harms_nothing() -> None:
    with gate() as slow, session() as (asked, _):
        asked.ask(wish(method="gate"))
        assert slow.began.wait(10)
        threading.Timer(0.1, _thread.interrupt_main).start()
        with pytest.raises(KeyboardInterrupt):
            asked.wait(10)
        slow.open.set()
        asked.wait(10)
        assert "gate" in asked.explanations()


def test_waiting_can_time_out() -> None:
    with gate() as slow, session() as (asked, _):
        asked.ask(wish(method="gate"))
        assert slow.began.wait(10)
        with pytest.raises(TimeoutError):
            asked.wait(0.05)


def test_waiting_on_the_worker_is_refused() -> None:
    class Waits(Recorder):
        failure: Exception | None = None

        def publish(self, values: dict[str, Any]) -> None:
            super().publish(values)
            try:
                asked.wait(5)
            except RuntimeError as error:
                self.failure = error

    waits = Waits()
    asked = Session(source, waits, exported_view)
    asked.ask(wish())
    until(lambda: waits.failure)
    asked.close(5)


def test_cancel_while_the_model_is_loading() -> None:
    loading, go = threading.Event(), threading.Event()

    def opener() -> Any:
        loading.set()
        go.wait(10)
        return source()

    recorder = Recorder()
    asked = Session(opener, recorder, exported_view)
    asked.ask(wish())
    assert loading.wait(10)
    asked.cancel()
    go.set()
    with pytest.raises(CancelledError):
        asked.wait(10)
    assert recorder.values["status"]["state"] == "ready"
    asked.rerun()
    asked.wait(10)
    assert recorder.values["status"]["state"] == "ready"
    asked.close(5)


def test_a_pause_lets_the_pass_go_and_a_request_brings_it_back() -> None:
    with gate() as slow, session() as (asked, recorder):
        asked.ask(wish(method="raw_attention", compared=("gate",)))
        assert slow.began.wait(10)
        for number in range(10):
            asked.pause()
            asked.request(need(f"p{number}", Want("", "heads", 0)))
            asked.pause(False)
            asked.request(need(f"r{number}", Want("", "heads", 0)))
            until(lambda n=number: recorder.finals(f"r{n}"))  # type: ignore[misc]
        assert recorder.of_kind("array", "r9")
        slow.open.set()
        asked.wait(10)
        assert set(asked.explanations()) == {"raw_attention", "gate"}
