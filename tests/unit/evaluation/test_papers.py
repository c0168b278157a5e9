"""The list of the papers' tables and figures: complete, on its page, and every call of it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from benchmarks import papers
from mixwidget import Explanation, Study
from tests.lib import tiny
from tools.project import ROOT

LISTED = papers.items()[0]
SENTENCES = ["the film is not bad", "a good plot and a thin plot", "never boring"]
AGREEMENT = [
    {"masked": f"the {film} [MASK] {how}", "target": a, "foil": b, "cues": [film], "number": a}
    for film, a, b in (("films", "was", "is"), ("film", "is", "was"))
    for how in ("bad", "not bad", "never good", "boring and thin")
]


@pytest.fixture(scope="module")
def scope(tmp_path_factory: pytest.TempPathFactory) -> papers.Scope:
    folder = tmp_path_factory.mktemp("models")

    def kept(name: str, family: str, head: str = "SequenceClassification", seed: int = 0) -> str:
        tiny.model(family, head, seed=seed).save_pretrained(folder / name)
        tokenizer = tiny.tokenizer()
        if family == "distilbert":
            tokenizer.model_input_names = ["input_ids", "attention_mask"]
        tokenizer.save_pretrained(folder / name)
        return str(folder / name)

    context = "the film is bad and the plot is thin"
    question = {
        "question": "is the plot good",
        "context": context,
        "answers": {"text": ["thin"], "answer_start": [context.index("thin")]},
    }
    model = kept("bert", "bert")
    builds = {name: kept(name, name) for name in ("roberta", "distilbert", "electra")}
    return papers.Scope(
        model,
        [{"sentence": text, "label": number % 3} for number, text in enumerate(SENTENCES[:2])],
        " ".join(SENTENCES * 5),
        kept("mlm", "bert", "MaskedLM"),
        AGREEMENT,
        kept("qa", "bert", "QuestionAnswering"),
        [question],
        {"bert": model, **builds},
        [model, kept("again", "bert", seed=1)],
        model,
        (SENTENCES[0], SENTENCES[2]),
    )


@pytest.mark.parametrize("call", list(dict.fromkeys(one.call for one in LISTED)))
def test_every_call_of_the_list(call: str, scope: papers.Scope, tmp_path: Path) -> None:
    found: Any = papers.run(call, scope)
    assert found is not None
    for one in found if isinstance(found, list) else [found]:
        if isinstance(one, Study):
            assert one.failures.empty
        if isinstance(one, pd.DataFrame):
            assert len(one)
            assert "errors" not in one or not one["errors"].sum()
        assert not isinstance(one, Explanation)  # a picture or a number, not what it is made of
    list(papers.told(found, None, ""))
    plt.close("all")


def test_the_list_names_every_table_and_figure() -> None:
    counted = {paper: sum(one.paper == paper for one in LISTED) for paper in papers.items()[1]}
    assert counted == {"ALTI": 21, "GlobEnc": 15, "Mask-LRP": 19, "AttCAT": 7, "Value Zeroing": 25}
    assert len({str(one) for one in LISTED}) == len(LISTED)


def test_no_row_is_empty() -> None:
    assert [str(one) for one in LISTED if len(one.found) < 10] == []
    told = [cell for one in LISTED for cell in (one.shows, one.call, one.found)]
    assert not [cell for cell in told if "|" in cell]  # which would end a cell of the page's tables
    with pytest.raises(ValueError, match="must say"):
        papers.items("# A | B\n\n## Table 1\nshows: this\ncall: 1\n")


def test_sections_that_are_named_are_there() -> None:
    text = (ROOT / "docs" / "tables.md").read_text("utf-8")
    heads = [line.lstrip("#").strip().lower() for line in text.splitlines() if line[:1] == "#"]
    known = {
        "".join(c for c in head if c.isalnum() or c in " -").replace(" ", "-") for head in heads
    }
    named = {one.where.partition("#")[2] for one in LISTED if one.where.startswith("tables.md#")}
    assert named <= known


def test_the_page_is_made_from_the_list() -> None:
    written = papers.PAGE.read_text("utf-8")
    assert written == papers.page(), "python -m benchmarks.papers --write"
