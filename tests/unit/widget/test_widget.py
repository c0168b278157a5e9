"""MixView without a browser: a comm that records what would have been sent."""

from __future__ import annotations

import gc
import json
import logging
import pickle
import re
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import ipywidgets
import numpy as np
import pytest
import transformers
from traitlets import TraitError

import mixwidget
from mixwidget import MixView, explain
from mixwidget.errors import (
    CancelledError,
    InputError,
    ModelInputError,
    TextTooLongError,
    UnknownMethodError,
    UnsupportedModelError,
)
from mixwidget.protocol import unpack
from tests.lib import tiny
from tests.lib.pages import MODEL, Page, make, page, view
from tests.lib.sessions import OTHER, TEXT, gate, until

__all__ = ["page", "view"]  # fixtures


def test_it_shows_what_explain_gives(view: MixView, page: Page) -> None:
    expected = explain(MODEL, TEXT, "attention_rollout", tokenizer=tiny.tokenizer())
    found = view.explanation
    assert found is not None
    np.testing.assert_array_equal(found.maps, expected.maps)
    assert [token["piece"] for token in view.tokens] == list(expected.tokens)
    assert [token["index"] for token in view.tokens] == list(range(len(expected.tokens)))
    assert view.status["state"] == "ready"
    assert page.state["status"] == view.status
    assert page.state["runs"]["attention_rollout"]["state"] == "ready"
    assert (view.focus, view.layer, view.head) == (0, 2, -1)
    assert view.model_info["labels"] == ["LABEL_0", "LABEL_1", "LABEL_2"]
    assert len(view.model_info["targets"]) == 3
    arrays = [
        (content["content"]["what"], unpack(content["content"], buffers[0]))
        for content, buffers in page.sent
        if content["method"] == "custom" and content["content"]["kind"] == "array"
    ]
    assert [what for what, _ in arrays] == ["layer", "rollout"] * 3 + ["scores"]
    np.testing.assert_allclose(arrays[1][1], expected.rollout(0), atol=1e-3)


def test_everything_is_sent_from_the_worker(view: MixView, page: Page) -> None:
    assert threading.get_ident() not in page.threads


def test_the_demo_model_is_the_default(page: Page) -> None:
    view = MixView(method="raw_attention")
    view.wait(60)
    assert view.text == mixwidget.demo.SENTENCE
    assert view.model_info["name"] == "demo model"
    assert view.model_info["prediction"]["label"] == "positive"
    view.close()


def test_the_cell_returns_at_once() -> None:
    code = (
        "import time, sys; import anywidget, numpy, transformers\n"  # libraries, not our work
        "from mixwidget import MixView\n"
        "from mixwidget.widget import MixView\n"
        "begin = time.thread_time()\n"  # the cell's own: the clock of a busy machine says little
        "view = MixView()\n"
        "seconds = time.thread_time() - begin\n"
        "print(seconds, view.status['state'])\n"
        "assert view.wait(100).explanation is not None\n"
        "view.close()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    seconds, state = done.stdout.split()
    assert float(seconds) < 0.1
    assert state == "computing"
    assert done.stderr == ""


def test_a_second_model_costs_the_cell_nothing(page: Page) -> None:
    make().close()
    begin = time.perf_counter()
    view = make()
    assert time.perf_counter() - begin < 0.1
    view.close()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((None, TEXT), ModelInputError),
        ((3, TEXT), ModelInputError),
        ((MODEL,), InputError),
        ((MODEL, ""), InputError),
        ((MODEL, "  "), InputError),
        ((MODEL, None), InputError),
        ((MODEL, ["a", "b"]), InputError),
    ],
)
def test_bad_input_raises_at_once(arguments: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        MixView(*arguments)


def test_bad_names_raise_at_once() -> None:
    with pytest.raises(UnknownMethodError, match="raw_attention"):
        make(method="raw_atention")
    with pytest.raises(TypeError, match="layer"):
        make(layr=3)
    with pytest.raises(TraitError, match="view"):
        make(view="somewhere")
    with pytest.raises(UnsupportedModelError):
        make(model=tiny.model("bert", "TokenClassification"))


def test_names_folders_and_pipelines(
    page: Page, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    MODEL.save_pretrained(tmp_path)
    tiny.tokenizer().save_pretrained(tmp_path)
    capfd.readouterr()
    view = MixView(str(tmp_path), TEXT, method="raw_attention")
    assert view.wait(30).explanation is not None
    assert capfd.readouterr() == ("", "")  # no progress bar from a thread
    assert view.model_info["name"] == tmp_path.name
    view.close()
    pipeline = transformers.TextClassificationPipeline(model=MODEL, tokenizer=tiny.tokenizer())
    view = MixView(pipeline, TEXT, method="raw_attention")
    assert view.wait(30).explanation is not None
    view.close()


def test_a_name_that_cannot_be_loaded_is_an_error_in_the_view(page: Page) -> None:
    view = MixView("no/such-model", TEXT, method="raw_attention")
    with pytest.raises(ModelInputError):
        view.wait(60)
    assert view.status["state"] == "error"
    assert view.status["hint"]
    assert isinstance(view.error, ModelInputError)
    view.close()


def test_what_belongs_together_arrives_together(view: MixView, page: Page) -> None:
    view.text = OTHER
    view.wait(20)
    for update in page.updates():
        if "tokens" in update and update.get("runs"):
            assert {"tokens", "model_info", "catalogue"} <= set(update)
    count = len(view.tokens)
    assert page.state["tokens"][-1]["index"] == count - 1


def test_sentence_pairs(page: Page) -> None:
    view = make(text_pair="it was good")
    view.wait(20)
    assert {token["segment"] for token in view.tokens} == {0, 1}
    view.text_pair = ""
    view.wait(20)
    assert {token["segment"] for token in view.tokens} == {0}
    view.close()


def test_requests_of_a_second_view(view: MixView, page: Page) -> None:
    run = view.runs["attention_rollout"]["run"]
    wants = [{"run": run, "what": "rollout", "layer": layer} for layer in range(4)]
    answers = page.ask(kind="need", wants=wants)
    assert [answer["kind"] for answer in answers] == ["array"] * 3 + ["done"]
    assert [want["layer"] for want in answers[-1]["missing"]] == [3]


def test_a_message_that_is_none_gets_an_answer(view: MixView, page: Page) -> None:
    answers = page.ask(kind="juggle")
    assert [answer["kind"] for answer in answers] == ["error"]


def test_cancel_from_the_browser_and_from_python(view: MixView, page: Page) -> None:
    with gate() as slow:
        view.method = "gate"
        assert slow.began.wait(10)
        assert page.ask(kind="cancel")[-1]["kind"] == "done"
        with pytest.raises(CancelledError):
            view.wait(10)
        assert view.runs["gate"]["state"] == "cancelled"
        slow.began.clear()
        assert page.ask(kind="rerun", method="gate")[-1]["kind"] == "done"
        assert slow.began.wait(10)
        view.cancel()
        with pytest.raises(CancelledError):
            view.wait(10)
        assert view.explanation is None
        view.method = "attention_rollout"
        assert view.wait(10).explanation is not None


def test_export_answers_with_a_file(view: MixView, page: Page) -> None:
    answers = page.ask(kind="export", format="json")
    assert [answer["kind"] for answer in answers] == ["file", "done"]
    assert page.ask(kind="export", format="xyz")[-1]["kind"] == "error"
    name, _ = page.ask(kind="export", format="html")
    assert (name["name"], name["mime"]) == (_name(view), "text/html")
    assert next(b[0] for _, b in reversed(page.sent) if b).startswith(b"<!doctype html>")


def _name(view: MixView) -> str:
    words = "-".join(re.findall(r"[a-z0-9]+", view.text))
    return f"mixwidget-bertforsequenceclassification-{view.method}-{words}.html"


def test_save_into_a_folder(view: MixView, tmp_path: Path) -> None:
    view.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [_name(view)]


def test_save(view: MixView, tmp_path: Path) -> None:
    view.save(tmp_path / "view.json")
    saved = json.loads((tmp_path / "view.json").read_text())["explanations"][0]
    assert view.explanation is not None
    np.testing.assert_allclose(saved["scores"], view.explanation.scores, rtol=1e-6)
    for ending in ("png", "svg", "pdf"):
        view.save(tmp_path / f"view.{ending}")
        assert (tmp_path / f"view.{ending}").stat().st_size > 1000
    with pytest.raises(InputError, match="json, png"):
        view.save(tmp_path / "view.docx")


def test_an_error_is_shown_in_words_and_the_view_goes_on(
    view: MixView, page: Page, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    page.set(text="film " * 99)
    with pytest.raises(TextTooLongError):
        view.wait(10)
    assert page.state["status"]["state"] == "error"
    assert "101 tokens" in page.state["status"]["message"]
    assert "Shorten" in page.state["status"]["hint"]
    page.set(text=OTHER)
    assert view.wait(10).explanation is not None
    assert page.state["status"]["state"] == "ready"
    assert capfd.readouterr() == ("", "")


def test_an_observer_that_fails_stops_nothing(
    view: MixView, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(change: Any) -> None:
        raise ValueError("not today")

    view.observe(fail, "tokens")
    with caplog.at_level(logging.ERROR, "mixwidget"):
        view.text = OTHER
        view.wait(10)
    assert "not today" in caplog.text
    assert view.status["state"] == "ready"


def test_controls_changed_by_two_threads_while_it_computes(view: MixView, page: Page) -> None:
    """The worker shows, a thread of the user's sets, the browser sets: nothing is lost."""
    ended = threading.Event()

    def user() -> None:
        for number in range(60):
            view.threshold = (number % 10) / 10
            view.text = (TEXT, OTHER)[number % 2]
        ended.set()

    thread = threading.Thread(target=user)
    thread.start()
    number = 0
    while not ended.is_set():
        page.set(layer=number % 3, top_k=number)
        number += 1
    thread.join()
    page.set(layer=1, top_k=5)
    view.wait(20)
    assert (view.layer, view.top_k, view.text, view.threshold) == (1, 5, OTHER, 0.9)
    assert page.state["threshold"] == 0.9
    assert page.state["text"] == OTHER
    assert page.state["status"]["state"] == "ready"
    assert [token["piece"] for token in page.state["tokens"]] == [t["piece"] for t in view.tokens]


def test_ipywidgets_can_link_it(view: MixView) -> None:
    slider = ipywidgets.IntSlider(max=2)
    ipywidgets.link((view, "layer"), (slider, "value"))
    slider.value = 1
    assert view.layer == 1


def test_close_leaves_nothing(page: Page) -> None:
    with gate() as slow:
        view = make(method="gate")
        assert slow.began.wait(10)
        session = view._session
        assert session is not None
        view.close()
        view.close()
        until(lambda: not session.working, 3)
    assert page.closed
    assert not any(m._forward_hooks for m in MODEL.modules())
    sent = len(page.sent)
    view.layer = 1
    view.method = "raw_attention"
    time.sleep(0.05)
    assert len(page.sent) == sent
    gone = weakref.ref(view)
    del view
    gc.collect()
    assert gone() is None


def test_a_view_that_has_gone_is_not_computed_for(view: MixView, page: Page) -> None:
    """Running a cell again takes the old view off the page; ipywidgets keeps the widget."""
    with gate() as slow:
        page.set(_view_count=1)
        view.method = "gate"
        assert slow.began.wait(10)
        page.set(_view_count=0)
        session = view._session
        assert session is not None
        until(lambda: not session.working, 6)
        page.set(_view_count=1)
        slow.open.set()
        until(lambda: view.status["state"] == "ready")
        assert slow.begun == 2
        page.set(_view_count=0)
        assert view.explanation is not None  # but its pass is not kept
        assert not session.case.recorded
        with pytest.raises(TraitError):
            view.layer = 9
        page.set(_view_count=1)
        answers = page.ask(kind="need", wants=[{"run": "", "what": "heads", "layer": 0}])
        assert [answer["kind"] for answer in answers] == ["array", "done"]
        page.set(_view_count=0)
        view.text = OTHER
        assert view.wait(10).explanation is not None


def test_it_is_found_lazily_and_prints_well(view: MixView) -> None:
    assert "MixView" in dir(mixwidget)
    assert "film" in repr(view)
    assert "attention_rollout" in repr(view)
    bundle = view._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert data is not None
    assert "application/vnd.jupyter.widget-view+json" in data
    assert "film" in data["text/plain"]
    with pytest.raises(Exception, match=r"copied|pickle"):
        pickle.dumps(view)


def test_128_tokens_and_12_layers_are_under_two_megabytes(page: Page) -> None:
    model = tiny.model("bert", num_hidden_layers=12, max_position_embeddings=128)
    tokenizer = tiny.tokenizer()
    tokenizer.model_max_length = 128
    view = MixView(model, "film " * 126, tokenizer=tokenizer, method="attention_rollout")
    view.wait(30)
    assert len(view.tokens) == 128
    total = sum(
        len(json.dumps(data)) + sum(len(buffer) for buffer in buffers)
        for data, buffers in page.sent
    )
    assert total < 2_000_000
    view.close()


def test_a_comm_that_was_closed_elsewhere_ends_the_work(view: MixView, page: Page) -> None:
    """marimo does so when a cell runs again."""
    with gate() as slow:
        view.method = "gate"
        assert slow.began.wait(10)
        page._closed = True
        session = view._session
        assert session is not None
        until(lambda: not session.working, 5)


def test_a_cut_text_says_how_much_of_it_is_left_out() -> None:
    model, tokenizer = tiny.model("bert"), tiny.tokenizer()
    limit = model.config.max_position_embeddings
    view = MixView(model, "film " * (limit + 5), tokenizer, truncate=True)
    view.wait()
    assert len(view.tokens) == limit
    assert view.model_info["cut"] == limit + 5 + 2 - limit  # two special tokens besides
    view.text = "a good film"
    view.wait()
    assert view.model_info["cut"] == 0
    view.close()
