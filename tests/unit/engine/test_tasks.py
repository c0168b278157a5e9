"""What five people want to do, each as they would write it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mixwidget import Failure, benchmark, demo, explain, explain_frame, methods
from mixwidget.cli import main
from tests.lib import tiny


@pytest.fixture(scope="module")
def model() -> Any:
    return demo.load()[0]


def test_a_teacher_shows_a_class_what_drove_a_prediction(model: Any, tmp_path: Path) -> None:
    e = explain(model, "the plot is thin , but the acting is never boring .", "attcat")
    assert e.target == "positive"
    words = [pair for pair in e.word_scores if not pair.word.startswith("[")]
    strongest = max(words, key=lambda pair: abs(pair.score))
    assert strongest.word in {"never", "boring", "but", "thin"}
    assert len(repr(e)) < 200  # a cell that ends in `e`
    assert "<span" in e._repr_html_()
    e.plot("text").savefig(tmp_path / "handout.png")
    thin = explain(model, "the plot is thin", "alti", focus="thin")  # a word by its text
    assert thin.tokens[thin.focus] == "thin"


def test_a_student_compares_methods_and_cites_them(model: Any) -> None:
    texts = [("never boring", "positive"), ("a dull , thin plot", "negative")]
    names = ["raw_attention", "alti", "attcat", "random"]
    table = benchmark(model, texts, names, ["comprehensiveness"], progress=False)
    assert set(table["method"]) == set(names)
    assert table["n"].eq(2).all()
    cited = methods().query("id in @names and bibtex != ''")["bibtex"]
    assert cited.str.startswith("@misc{").all()
    assert len(cited) >= 3


def test_an_engineer_explains_reviews_and_keeps_a_table(model: Any, tmp_path: Path) -> None:
    reviews = pd.DataFrame(
        {
            "review": ["not bad at all", None, "a dull , thin plot", "never boring"] * 5,
            "stars": [4, 3, 1, 5] * 5,
        }
    )
    done: list[int] = []
    tokens = explain_frame(
        model,
        reviews,
        "review",
        method="gradient_x_input",
        keep=["stars"],
        progress=lambda count, total: done.append(count),
    )
    assert done[-1] == len(reviews)
    assert tokens.loc[tokens["error"].notna(), "text_id"].tolist() == [1, 5, 9, 13, 17]
    assert tokens.groupby("text_id")["score"].sum().round(3).isin([0.0, 1.0]).all()
    reviews.to_csv(tmp_path / "in.csv", index=False)
    command = ["explain", "--data", str(tmp_path / "in.csv"), "--out", str(tmp_path / "out.csv")]
    assert main([*command, "--method", "gradient_x_input", "--quiet"]) == 0
    assert len(pd.read_csv(tmp_path / "out.csv")) == len(tokens)


def test_someone_with_a_chat_model_asks_about_many_prompts() -> None:
    chat_model, tokenizer = tiny.model("llama", "CausalLM"), tiny.tokenizer()
    prompts = ["the film is", "we saw a good", "", "the acting was not"]
    found = explain(chat_model, prompts, "attcat", tokenizer=tokenizer, errors="row")
    assert [isinstance(one, Failure) for one in found] == [False, False, True, False]
    for prompt, one in zip(prompts, found, strict=True):
        if not isinstance(one, Failure):
            assert one.text == prompt
            assert one.target.kind == "token"
            assert one.target.position == len(one.tokens) - 1


def test_a_bertviz_user_looks_at_attention_and_beyond(model: Any) -> None:
    texts = ["the plot is thin", "never boring"]
    attention = explain(model, texts, "raw_attention")
    assert attention[0].maps.ndim == 3
    np.testing.assert_allclose(attention[0].maps.sum(-1), 1, atol=1e-5)
    mixing = explain(model, texts, "globenc")
    assert mixing[0].tokens == attention[0].tokens
    assert mixing[0] != attention[0]
    assert max(mixing[0].info["adds_up"]) < 1e-4
