"""Many texts at once: in order, one bad text named and not in the way, and as a table."""

from __future__ import annotations

import gc
import resource
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mixwidget import Explanation, Failure, demo, explain, explain_frame
from mixwidget.errors import InputError, TextTooLongError, UnknownMethodError
from tests.lib import tiny

TEXTS = ["the film is not bad", "good", "a deep plot and thin acting", "we saw it"]


@pytest.fixture(scope="module")
def bert() -> Any:
    return tiny.model("bert", id2label={0: "no", 1: "yes", 2: "maybe"})


def many(model: Any, texts: Any, method: str = "attention_rollout", **options: Any) -> Any:
    return explain(model, texts, method, tokenizer=tiny.tokenizer(), **options)


class Column:
    """A column of a dataset: it has a length, items, and is no list."""

    def __init__(self, values: list[str]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)


FORMS = {
    "tuple": tuple,
    "series": pd.Series,
    "strings": lambda texts: pd.Series(texts, dtype="string"),
    "objects": lambda texts: np.array(texts, dtype=object),
    "array": np.array,
    "generator": iter,
    "dict values": lambda texts: dict(enumerate(texts)).values(),
    "column": Column,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_many_texts(bert: Any, form: str) -> None:
    found = many(bert, FORMS[form](TEXTS))
    assert [e.text for e in found] == TEXTS
    assert [e.id for e in found] == [0, 1, 2, 3]
    assert all(type(e.text) is str for e in found)
    one = many(bert, TEXTS[2])
    np.testing.assert_allclose(found[2].scores, one.scores, atol=1e-5)


def test_a_datasets_column(bert: Any) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is an optional extra")
    data = datasets.Dataset.from_dict({"text": TEXTS, "label": [0, 1, 0, 1]})
    assert [e.text for e in many(bert, data["text"], targets=data["label"])] == TEXTS
    with pytest.raises(InputError, match=r"a table with the columns text, label.*explain_frame"):
        many(bert, data)


def test_a_series_gives_its_labels(bert: Any) -> None:
    found = many(bert, pd.Series(["good", "", "bad"], index=["a", "b", "c"]), errors="row")
    assert [e.id for e in found] == ["a", "b", "c"]
    assert found[1].index == 1


def test_no_text_at_all(bert: Any) -> None:
    assert many(bert, []) == []
    assert many(bert, iter(())) == []


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        ({"a", "b"}, "a set, which has no order"),
        (np.array([["a", "b"]]), "2 dimensions"),
        (pd.DataFrame({"review": ["a"]}), r"a table with the columns review.*explain_frame"),
        (3, "must be a string, not int"),
        (b"good", "must be a string, not bytes"),
    ],
    ids=["set", "matrix", "frame", "number", "bytes"],
)
def test_what_is_no_list_of_texts(bert: Any, texts: Any, why: str) -> None:
    with pytest.raises(InputError, match=why):
        many(bert, texts)


def test_a_list_as_target_is_refused_with_the_way_on(bert: Any) -> None:
    for wrong in (["yes", "no"], np.array([0, 1]), pd.Series([0, 1])):
        with pytest.raises(InputError, match=r"targets=\[\.\.\.\].*target=\(for, against\)"):
            many(bert, TEXTS[:2], "attcat", target=wrong)
    contrast = many(bert, TEXTS[:2], "attcat", target=("yes", "no"))
    assert [e.target.index for e in contrast] == [(1, 0), (1, 0)]


@pytest.mark.parametrize("form", [list, pd.Series, iter, tuple])
def test_a_target_for_each(bert: Any, form: Any) -> None:
    found = many(bert, TEXTS, "attcat", targets=form(["yes", 0, None, ("maybe", "no")]))
    assert [e.target.index for e in found][:2] == [1, 0]
    assert found[3].target.index == (2, 0)
    assert found[2].target.index == many(bert, TEXTS[2], "attcat").target.index


def test_numbers_that_do_not_fit(bert: Any) -> None:
    for options in ({"targets": [0]}, {"text_pairs": ["a"] * 5}, {"text_pair": ["a"] * 5}):
        with pytest.raises(InputError, match="There are 4 texts but"):
            many(bert, TEXTS, **options)
    with pytest.raises(InputError, match="none is left for text 2"):
        many(bert, iter(TEXTS), targets=iter([0, 1]))
    with pytest.raises(InputError, match="There are 4 texts, but more targets"):
        many(bert, iter(TEXTS), targets=iter([0] * 9))
    with pytest.raises(InputError, match="give one of them"):
        many(bert, TEXTS, target=0, targets=[0] * 4)
    with pytest.raises(InputError, match="targets is str"):
        many(bert, TEXTS, targets="yes")
    with pytest.raises(InputError, match="for one pass target="):
        many(bert, "good", targets=[0])


def test_pairs(bert: Any) -> None:
    found = many(bert, TEXTS, text_pairs=["good", None, "bad", "a plot"])
    assert [e.text_pair for e in found] == ["good", None, "bad", "a plot"]
    assert [e.text_pair for e in many(bert, TEXTS, text_pair="good")] == ["good"] * 4


def test_one_bad_text_is_named_or_left_as_a_row(bert: Any) -> None:
    texts = [*TEXTS, "", "good"]
    with pytest.raises(InputError, match=r"^Text 4, '': text is empty"):
        many(bert, texts)
    with pytest.raises(TextTooLongError, match=r"^Text 0, 'film film .*has 102 tokens"):
        many(bert, ["film " * 100, "good"])
    found = many(bert, texts, errors="row")
    assert [type(one) for one in found] == [*[Explanation] * 4, Failure, Explanation]
    failure = found[4]
    assert (failure.index, failure.text) == (4, "")
    assert isinstance(failure.error, InputError)
    assert failure.error.__traceback__ is None
    assert not hasattr(failure, "scores")
    assert len(repr(failure)) < 200


def test_what_is_wrong_for_all_is_said_at_once(bert: Any) -> None:
    with pytest.raises(UnknownMethodError):
        many(bert, TEXTS, "atli", errors="row")
    with pytest.raises(InputError, match="has no option"):
        many(bert, TEXTS, "alti", errors="row", q=2)
    with pytest.raises(InputError, match="it can be 'raise' or 'row'"):
        many(bert, TEXTS, errors="ignore")
    with pytest.raises(InputError, match="it can be 'all' or 'scores'"):
        many(bert, TEXTS, keep="maps")


def test_progress(bert: Any, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[tuple[int, int | None]] = []
    many(bert, TEXTS, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    many(bert, iter(TEXTS), progress=lambda done, of: seen.append((done, of)))
    assert seen[-1] == (4, None)
    many(bert, [*TEXTS, ""], progress=True, errors="row")
    told = capsys.readouterr().err
    assert "5/5" in told
    assert "failed=1" in told


def test_only_scores_are_kept(bert: Any) -> None:
    whole, kept = many(bert, TEXTS), many(bert, TEXTS, keep="scores")
    for one, other in zip(whole, kept, strict=True):
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-6)
        assert other.maps is None
        assert other.layer_scores is None
    with pytest.raises(NotImplementedError, match='keep="scores"'):
        kept[0].rollout()


def test_a_thousand_texts_with_five_bad_ones(bert: Any) -> None:
    bad = {17: "", 230: "film " * 90, 499: 3, 731: None, 998: "  "}
    asked = 0

    def texts() -> Iterator[Any]:
        nonlocal asked
        for number in range(1000):
            asked = number
            if number == 300:
                peaks.append(peak())
            yield bad.get(number, "the film is not " + "bad " * (number % 9 + 1))

    ahead, peaks, done = [], [], []

    def progress(count: int, total: int | None) -> None:
        done.append(count)
        ahead.append(asked - count)

    found = many(bert, texts(), "raw_attention", errors="row", keep="scores", progress=progress)
    peaks.append(peak())
    failed = [one for one in found if isinstance(one, Failure)]
    assert len(found) == 1000
    assert [one.index for one in failed] == list(bad)
    assert all(str(one.error) for one in failed)
    assert [len(e.tokens) for e in found[:9]] == list(range(7, 16))
    assert done == list(range(1, 1001))
    assert max(ahead) < 100, "texts are taken as they are needed"
    assert peaks[1] - peaks[0] < 40e6, "memory is flat"


def peak() -> int:
    gc.collect()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def test_a_table_of_texts_becomes_a_table_of_tokens() -> None:
    model, tokenizer = demo.load()
    reviews = pd.DataFrame(
        {"body": ["not bad", None, "a thin plot"], "wanted": ["negative", 0, None], "stars": 3},
        index=[10, 20, 30],
    )
    found = explain_frame(
        model, reviews, "body", "wanted", "attcat", tokenizer=tokenizer, keep=["stars"]
    )
    assert {"text_id", "token", "position", "score", "stars", "error"} <= set(found.columns)
    assert found["text_id"].tolist() == [10] * 4 + [20] + [30] * 5
    assert found["stars"].eq(3).all()
    assert found.loc[4, "error"].startswith("InputError: text must be a string")
    assert np.isnan(found.loc[4, "score"])
    e = explain(model, "not bad", "attcat", tokenizer=tokenizer, target="negative")
    np.testing.assert_allclose(found["score"][:4], e.scores, atol=1e-5)
    assert found["target"][:4].eq("negative").all()
    assert len(explain_frame(model, reviews[:0], "body", tokenizer=tokenizer)) == 0


def test_a_table_without_the_column() -> None:
    model, tokenizer = demo.load()
    frame = pd.DataFrame({"body": ["a"], "token": [1]})
    with pytest.raises(InputError, match=r"no column 'text' in the frame. It has: body, token"):
        explain_frame(model, frame, tokenizer=tokenizer)
    with pytest.raises(InputError, match="has a column 'token' of its own"):
        explain_frame(model, frame, "body", tokenizer=tokenizer, keep=["token"])
    with pytest.raises(InputError, match="not a pandas frame"):
        explain_frame(model, ["a"], tokenizer=tokenizer)  # type: ignore[arg-type]


def test_a_list_of_chats_is_several_texts() -> None:
    model, tokenizer = tiny.model("llama", "CausalLM"), tiny.tokenizer()
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
    chats = [[{"role": "user", "content": words}] for words in ("a good film", "we saw it")]
    found = explain(model, chats, "attcat", tokenizer=tokenizer)
    assert [e.text for e in found] == chats
    for chat, one in zip(chats, found, strict=True):
        alone = explain(model, chat, "attcat", tokenizer=tokenizer)
        np.testing.assert_allclose(one.scores, alone.scores, atol=1e-5)
