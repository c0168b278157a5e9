"""An explanation is a value: it holds its text, equals its copy, and tells itself in a line."""

from __future__ import annotations

import json
import pickle
import re

import numpy as np
import pandas as pd
import pytest
import torch

from mixwidget import Explanation, explain
from mixwidget.errors import InputError
from tests.lib import tiny

TEXT = "the film is not badly bad ."
HOSTILE = "<script>alert(1)</script> a film & <img src=x onerror=alert(1)> not bad"


def made(text: str = TEXT, method: str = "alti", **options: object) -> Explanation:
    model = tiny.model("bert", id2label={0: "<b>no</b>", 1: "yes " * 60, 2: "c"})
    return explain(model, text, method, tokenizer=tiny.tokenizer(), **options)


class Raises:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    __hash__ = None  # type: ignore[assignment]


def test_it_holds_its_text() -> None:
    e = made("a film", text_pair="not bad")
    assert (e.text, e.text_pair, e.id) == ("a film", "not bad", None)
    back = Explanation.from_json(e.to_json())
    assert (back.text, back.text_pair, back.id) == ("a film", "not bad", None)
    frame = e.to_frame()
    assert set(frame["text"]) == {"a film"}
    assert frame["text_id"].isna().all()


def test_a_file_of_before_has_no_text() -> None:
    whole = json.loads(made().to_json())
    for name in ("text", "text_pair", "id"):
        del whole["explanations"][0][name]
    assert Explanation.from_json(json.dumps(whole)).text == ""


@pytest.mark.parametrize("method", ["alti", "attcat", "gradient", "attention_flow", "random"])
def test_a_copy_is_equal(method: str) -> None:
    e = made(method=method)
    for copy in (pickle.loads(pickle.dumps(e)), Explanation.from_json(e.to_json())):
        assert copy == e
        assert hash(copy) == hash(e)
        assert {copy, e} == {e}
        assert copy in [made("a film"), e]


def test_what_differs_is_not_equal() -> None:
    e = made()
    assert e != made("the film is not badly good .")
    assert e != made(method="globenc")
    assert e != made(focus=2)
    assert e != made(p=2)
    assert e == made()  # another run of the same: only its time differs


@pytest.mark.parametrize(
    "other",
    [None, 1, "a", np.zeros(3), np.zeros((7, 7)), torch.zeros(3), Raises, pd.DataFrame({"a": [1]})],
    ids=lambda x: type(x).__name__,
)
def test_comparing_never_raises(other: object) -> None:
    e = made()
    assert (e == other) is False


def test_arrays_beside_it_in_a_list_do_no_harm() -> None:
    e = made()
    assert np.zeros((7, 7)) != e
    assert e in [np.zeros(3), torch.zeros(3), None, e]
    assert [np.zeros(3), e].index(e) == 1


def test_options_that_cannot_be_compared_are_unlike() -> None:
    one, other = made(), made()
    one.params["x"], other.params["x"] = Raises(), Raises()
    assert one != other
    one.params["x"] = other.params["x"] = torch.ones(2)
    assert one == other
    one.params["x"], other.params["x"] = float("nan"), float("nan")
    assert one == other


@pytest.mark.parametrize("text", [TEXT, "a film\n" * 20, "not bad " * 28])
def test_its_repr_is_a_short_line(text: str) -> None:
    for method in ("alti", "attcat", "random"):
        line = repr(made(text, method, target=1))
        assert len(line) < 200
        assert "\n" not in line
        assert method in line


def test_its_html_is_text_without_scripts() -> None:
    page = made(HOSTILE, "attcat", target=0)._repr_html_()
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;b&gt;no&lt;/b&gt;" in page
    allowed = {"div", "/div", "span", "/span", "b", "/b"}
    assert set(re.findall(r"<(/?\w+)", page)) == allowed
    assert not re.search(r"\son\w+=", re.sub(r">[^<]*<", "><", page))
    e = made()
    shown = re.findall(r'background:(#\w{6});[^>]*title="[^"]*">([^<]*)<', e._repr_html_())
    assert [text for _, text in shown] == [token.text for token in e.tokens]
    assert len({colour for colour, _ in shown}) > 2


def test_long_texts_are_cut_in_html() -> None:
    model = tiny.model("bert", max_position_embeddings=700)
    tokenizer = tiny.tokenizer()
    tokenizer.model_max_length = 700
    page = explain(model, "film " * 650, "raw_attention", tokenizer=tokenizer)._repr_html_()
    assert "and 52 more tokens" in page


def test_word_scores_add_up() -> None:
    e = made(method="attcat")
    words = e.word_scores
    assert [word for word, _ in words] == ["[CLS]", *TEXT.split(), "[SEP]"]
    assert sum(score for _, score in words) == pytest.approx(float(e.scores.sum()), abs=1e-6)
    assert words[5].score == pytest.approx(float(e.scores[5] + e.scores[6]), abs=1e-6)


def test_focus_may_be_a_tokens_text() -> None:
    assert made(focus="film").focus == 2
    assert made(focus="##ly").focus == made(focus="ly").focus == 6
    with pytest.raises(InputError, match=r"focus 'bad' stands at tokens 5, 7; say which: focus=5"):
        made(focus="bad")
    with pytest.raises(InputError, match=r"No token is 'cheese'.*\[CLS\] the film is not bad ly"):
        made(focus="cheese")
