"""Answers in a session: chats, steps, what is written while it is watched, and what is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mixwidget import explain
from mixwidget.errors import InputError
from mixwidget.models import Source, open_source
from mixwidget.protocol import Want, unpack
from tests.lib import tiny
from tests.lib.sessions import gate, need, session, until, wish
from tests.unit.session.test_session import run_id

TEMPLATE = (
    "{% for m in messages %}[CLS] {{ m['role'] }} {{ m['content'] }} [SEP] {% endfor %}"
    "{% if add_generation_prompt %}[CLS] assistant {% endif %}"
)
CHAT = [
    {"role": "system", "content": "the film"},
    {"role": "user", "content": "was it good or bad"},
]
ANSWER = "it was not bad"


def chatting(config: str = "llama") -> Source:
    tokenizer = tiny.tokenizer(pairs=False)
    tokenizer.chat_template = TEMPLATE
    model = tiny.model(config, "CausalLM")
    model.generation_config.eos_token_id = model.config.eos_token_id = None
    tokenizer.eos_token = None
    return open_source(model, tokenizer)


def asked(**given: Any) -> Any:
    return wish(**{"text": CHAT, "method": "alti", "answer": ANSWER, **given})


def test_a_step_is_the_prefix_explained_alone_and_the_whole_is_the_engines() -> None:
    given = chatting()
    with session(given) as (made, recorder):
        made.ask(asked(compared=("attn_lrp", "gradient_x_input")))
        made.wait(60)
        for method, found in made.explanations().items():
            whole = explain(given, CHAT, method, answer=ANSWER)
            np.testing.assert_allclose(found.scores, whole.scores, atol=1e-5)
            assert found.answer == whole.answer
        # Of a long text the browser asks for the rows of each layer: of an answer their mean.
        read = recorder.values["model_info"]["answer"]
        given_rows = Want(run_id(recorder, "alti"), "rows", of="rollout", focus=read)
        content = recorder.answer(made, need("rows", given_rows))[0]
        sent = next(data for one, data in recorder.messages if one is content)
        mixed = explain(given, CHAT, "alti", answer=ANSWER)
        np.testing.assert_allclose(unpack(content, sent)[-1], mixed.scores, atol=1e-3)
        told = recorder.values["reply"]
        assert [one["text"] for one in told["tokens"]] == ANSWER.split()
        assert recorder.values["model_info"]["whole"]
        assert recorder.values["tokens"][told["start"]]["role"] == "assistant"
        for step in (0, 2, -1):
            made.ask(asked(step=step, compared=("attn_lrp",)))
            made.wait(60)
            at = step % 4
            assert recorder.values["step"] == at
            assert len(recorder.values["tokens"]) == told["start"] + at
            for method, found in made.explanations().items():
                alone = explain(given, CHAT, method, answer=ANSWER).step(at)
                np.testing.assert_allclose(found.scores, alone.scores, atol=1e-5)
                assert found.target == alone.target
            assert recorder.values["model_info"]["prediction"]["label"] == ANSWER.split()[at]


def test_what_each_token_could_have_been() -> None:
    given = chatting()
    with session(given) as (made, recorder):
        made.ask(asked())
        made.wait(60)
        whole = explain(given, CHAT, "alti", answer=ANSWER)
        for t, token in enumerate(recorder.values["reply"]["tokens"]):
            assert token["probability"] == pytest.approx(whole.step(t).target.probability, abs=1e-5)
            likeliest = explain(given, CHAT, "alti", answer=ANSWER).step(t).tokens
            others = [one["probability"] for one in token["others"]]
            assert others == sorted(others, reverse=True)
            assert len(others) == 4
            assert token["id"] not in [one["value"] for one in token["others"]]
            assert len(likeliest) == len(whole.tokens) - 4 + t
            assert token["needed"] is None
        made.ask(asked(shade="dependence"))
        made.wait(60)
        needed = [token["needed"] for token in recorder.values["reply"]["tokens"]]
        np.testing.assert_allclose(needed, whole.dependence, atol=1e-3)


def test_an_alternative_is_a_contrast() -> None:
    given = chatting()
    with session(given) as (made, recorder):
        made.ask(asked(step=1))
        made.wait(60)
        token = recorder.values["reply"]["tokens"][1]
        other = token["others"][0]["value"]
        made.ask(asked(step=1, method="gradient_x_input", target=(token["id"], other)))
        made.wait(60)
        expected = explain(given, CHAT, "gradient_x_input", answer=ANSWER).step(1, foil=other)
        found = made.explanations()["gradient_x_input"]
        np.testing.assert_allclose(found.scores, expected.scores, atol=1e-5)
        assert found.target == expected.target


def test_the_answer_is_written_while_it_is_watched() -> None:
    given = chatting()
    with session(given) as (made, recorder):
        made.ask(asked(answer=None))
        made.wait(60)
        told = recorder.values["reply"]
        assert told["offer"]
        assert told["state"] == ""
        assert told["tokens"] == []
        made.ask(asked(answer=True, longest=6))
        made.wait(60)
        expected = explain(given, CHAT, "alti", answer=True, max_new_tokens=6)
        told = recorder.values["reply"]
        assert told["own"]
        assert told["state"] == "full"
        assert [one["id"] for one in told["tokens"]] == [
            token.id for token in expected.tokens[expected.answer]
        ]
        np.testing.assert_allclose(made.explanations()["alti"].scores, expected.scores, atol=1e-5)
        states = [one["reply"]["state"] for one in recorder.history if "reply" in one]
        assert states.index("writing") < states.index("full")
        said = [one["status"]["message"] for one in recorder.history if "status" in one]
        assert "Writing the answer" in said


def test_what_is_written_stays_when_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    from mixwidget import models

    given = chatting()
    with session(given) as (made, recorder):

        def slowly(source: Any, encoding: Any, longest: int, check: Any, wrote: Any) -> Any:
            def writes(token: int) -> None:
                wrote(token)
                if writes.count == 2:  # type: ignore[attr-defined]
                    made.cancel()
                writes.count += 1  # type: ignore[attr-defined]

            writes.count = 0  # type: ignore[attr-defined]
            return plain(source, encoding, longest, check, writes)

        plain = models.greedy
        monkeypatch.setattr(models, "greedy", slowly)
        made.ask(asked(answer=True, longest=40))
        made.wait(60)
        told = recorder.values["reply"]
        assert told["state"] == "stopped"
        assert len(told["tokens"]) == 3
        assert made.explanations()["alti"].answer is not None
        monkeypatch.setattr(models, "greedy", plain)
        made.rerun()
        made.wait(60)
        assert len(recorder.values["reply"]["tokens"]) == 40


def test_a_chat_that_ends_with_its_answer_and_a_plain_text() -> None:
    given = chatting()
    whole = [*CHAT, {"role": "assistant", "content": ANSWER}]
    with session(given) as (made, recorder):
        made.ask(asked(text=whole, answer=None, step=1))
        made.wait(60)
        assert recorder.values["reply"]["text"] == ANSWER
        assert not recorder.values["reply"]["own"]
        made.ask(asked(text=whole, answer=True))
        with pytest.raises(InputError, match="ends with the assistant's message"):
            made.wait(60)
        made.ask(asked(text="the film was", answer="not bad", step=1))
        made.wait(60)
        expected = explain(given, "the film was", "alti", answer="not bad").step(1)
        np.testing.assert_allclose(made.explanations()["alti"].scores, expected.scores, atol=1e-5)


def test_a_reader_has_no_answer_to_offer() -> None:
    with session() as (made, recorder):
        made.ask(wish(method="alti"))
        made.wait(20)
        assert not recorder.values["reply"]["offer"]
        made.ask(wish(method="alti", answer="bad"))
        with pytest.raises(Exception, match="models that write text"):
            made.wait(20)


def test_another_token_overtakes_the_one_that_is_worked_on() -> None:
    given = chatting()
    with gate() as slow, session(given) as (made, recorder):
        made.ask(asked(method="gate", step=3))
        assert slow.began.wait(20)
        made.ask(asked(step=0))
        slow.open.set()
        made.wait(60)
        assert until(lambda: recorder.values["step"] == 0)
        assert set(made.explanations()) == {"alti"}
