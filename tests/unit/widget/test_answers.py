"""Chats and answers in a `MixView`: traits, their checks, and files of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from traitlets import TraitError

from mixwidget import MixView, engine, explain
from mixwidget.errors import InputError
from mixwidget.saving import page_of
from mixwidget.saving.traits import traits_of
from tests.lib import tiny
from tests.unit.session.test_session_answers import ANSWER, CHAT, chatting

GIVEN = chatting()


def test_a_chat_opens_with_the_answer_and_every_token_can_be_asked_about(tmp_path: Path) -> None:
    view = MixView(GIVEN, CHAT, method="alti", answer=ANSWER)
    try:
        view.wait(60)
        assert view.view == "answer"
        assert view.text == CHAT
        np.testing.assert_allclose(
            view.explanation.scores, explain(GIVEN, CHAT, "alti", answer=ANSWER).scores, atol=1e-5
        )
        for wrong, value in (("step", 4), ("step", 0.5), ("answer", 3), ("answer", "")):
            with pytest.raises(TraitError):
                setattr(view, wrong, value)
        with pytest.raises(TraitError, match="its own target"):
            view.target = "bad"
        view.step = -1
        view.wait(60)
        assert view.step == 3
        assert view.explanation.target == "bad"
        view.target = ["bad", "good"]
        view.wait(60)
        assert view.explanation.target.kind == "contrast"
        view.step = 0
        assert view.target is None
        view.wait(60)
        view.save(tmp_path / "x.html")
        page = (tmp_path / "x.html").read_text("utf-8")
        data = json.loads(page.split('id="mixwidget-data">')[1].split("</script>")[0])
        assert [one["text"] for one in data["traits"]["reply"]["tokens"]] == ANSWER.split()
        assert data["traits"]["step"] == 0
        assert data["traits"]["text"] == CHAT
        for ending in ("png", "json"):
            view.save(tmp_path / f"x.{ending}")
        view.text = "the film was"
        assert view.step is None
        view.wait(60)
        assert view.reply["text"].split() == ANSWER.split()
    finally:
        view.close()


def test_a_page_without_a_view_holds_the_answer_too() -> None:
    case = engine.prepare(GIVEN, CHAT, answer=ANSWER)
    traits = traits_of(case, [engine.explain_case(case, "alti")])
    assert traits["model_info"]["whole"]
    assert traits["view"] == "answer"
    assert traits["target"] is None
    assert [one["text"] for one in traits["reply"]["tokens"]] == ANSWER.split()
    assert not traits["reply"]["offer"]
    assert b"LlamaFor" in page_of(case, [engine.explain_case(case, "alti")], progress=False)


def test_a_text_of_a_model_that_writes_is_offered_an_answer() -> None:
    view = MixView(GIVEN, "the film was", method="raw_attention", max_new_tokens=3)
    try:
        view.wait(60)
        assert view.view == "graph"
        assert view.reply["offer"]
        assert view.explanation.target.label == explain(GIVEN, "the film was", "alti").target.label
        view.answer = True
        view.wait(60)
        assert [len(view.reply["tokens"]), view.reply["state"]] == [3, "full"]
        view.answer = None
        view.wait(60)
        assert view.reply["tokens"] == []
    finally:
        view.close()


def test_what_cannot_be_asked_is_refused_in_words() -> None:
    one = tiny.model("llama", "CausalLM")
    with pytest.raises(InputError, match="of one model"):
        MixView([one, one], CHAT, tokenizer=tiny.tokenizer())
    with pytest.raises(TraitError, match="1 to 256"):
        MixView(GIVEN, CHAT, max_new_tokens=257)
    for chat in ([{"role": "user", "content": [{"type": "image"}]}], [{"role": "user"}]):
        with pytest.raises(InputError, match=r"Message 0"):
            MixView(GIVEN, chat)
    view = MixView(one, CHAT, tiny.tokenizer())
    try:
        with pytest.raises(InputError, match="no chat template"):
            view.wait(60)
        assert "no chat template" in view.status["message"]
    finally:
        view.close()


def test_markup_stays_text(tmp_path: Path) -> None:
    chat: list[dict[str, Any]] = [{"role": "user", "content": "</script><b>bad</b> film"}]
    view = MixView(GIVEN, chat, method="raw_attention", answer="not bad")
    try:
        view.wait(60)
        view.save(tmp_path / "x.html")
        assert "<b>" not in (tmp_path / "x.html").read_text("utf-8").split("</head>")[0]
        assert "</script><b>" not in (tmp_path / "x.html").read_text("utf-8")
    finally:
        view.close()
