"""Every control of MixView: right and wrong values, from Python and from the browser."""

from __future__ import annotations

from typing import Any

import pytest
from traitlets import TraitError

from mixwidget import MixView
from mixwidget.widget.controls import CONTROLS
from tests.lib import tiny
from tests.lib.pages import Page, make, page, view
from tests.lib.sessions import OTHER, TEXT

__all__ = ["page", "view"]  # fixtures

WRONG = [
    ("text", ""),
    ("text", 3),
    ("text_pair", "  "),
    ("method", "nothing"),
    ("method", 3),
    ("compared", "alti"),
    ("compared", ["nothing"]),
    ("compared", ["alti", "globenc", "raw_attention", "attention_rollout", "random"]),
    ("params", {"alti": {"p": 3}}),
    ("params", {"alti": {"q": 1}}),
    ("params", []),
    ("view", "nowhere"),
    ("layer", 3),
    ("layer", -4),
    ("layer", "first"),
    ("layer", 1.5),
    ("layer", True),
    ("aggregate", "product"),
    ("focus", 99),
    ("focus", "cheese"),
    ("target", 3),
    ("target", "LABEL_9"),
    ("target", [0, 1, 2]),
    ("target", 0.5),
    ("threshold", 1.5),
    ("threshold", "half"),
    ("top_k", -1),
    ("unit", "letters"),
    ("special", "yes"),
    ("colours", "rainbow"),
    ("head", 4),
    ("head", -2),
    ("head", None),
    ("text", None),
    ("front", 1),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_wrong_value_raises_and_reaches_nobody(
    view: MixView, page: Page, name: str, value: Any
) -> None:
    before, sent = getattr(view, name), len(page.sent)
    with pytest.raises(TraitError, match=r"\w+ \w+"):
        setattr(view, name, value)
    assert getattr(view, name) == before
    assert len(page.sent) == sent


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_wrong_value_from_the_browser_is_taken_back(
    view: MixView, page: Page, name: str, value: Any
) -> None:
    before = getattr(view, name)
    page.set(**{name: value})
    assert getattr(view, name) == before
    assert page.updates()[-1] == {name: before}
    refused = page.messages("")[-1]
    assert refused["kind"] == "error"
    assert refused["message"]


def test_what_python_shows_cannot_be_set(view: MixView, page: Page) -> None:
    with pytest.raises(TraitError):
        view.tokens = []
    tokens = view.tokens
    page.set(tokens=[], layer=1)
    assert view.tokens == tokens
    assert page.updates()[-1] == {"tokens": tokens}
    assert view.layer == 1


RIGHT = [
    ("text", OTHER),
    ("method", "raw_attention"),
    ("compared", ["raw_attention", "alti"]),
    ("params", {"alti": {"p": 2}}),
    ("view", "layers"),
    ("layer", 1),
    ("aggregate", "sum"),
    ("focus", 3),
    ("target", 1),
    ("target", "LABEL_2"),
    ("target", [0, 1]),
    ("threshold", 0.5),
    ("top_k", 3),
    ("unit", "words"),
    ("special", False),
    ("colours", "viridis"),
    ("head", 2),
    ("max_new_tokens", 256),
    ("shade", "dependence"),
]


@pytest.mark.parametrize(("name", "value"), RIGHT)
def test_both_sides_can_set_every_control(view: MixView, page: Page, name: str, value: Any) -> None:
    before, seen = getattr(view, name), []
    view.observe(seen.append, name)
    page.set(**{name: value})
    assert getattr(view, name) == value
    assert [change["new"] for change in seen] == [value]
    setattr(view, name, before)
    assert page.state[name] == before
    setattr(view, name, value)
    assert page.state[name] == value
    view.wait(20)
    assert view.status["state"] == "ready"


def test_every_control_is_tried() -> None:
    others = {"text_pair", "front", "answer", "step"}  # in tests of their own
    assert {name for name, _ in RIGHT} | others == set(CONTROLS)


def test_counting_from_the_end(view: MixView) -> None:
    view.layer, view.focus = -1, -2
    assert view.layer == 2
    assert view.focus == len(view.tokens) - 2


def test_controls_can_be_given_before_the_model_is_known(page: Page) -> None:
    view = make(layer=-2, focus=-1, view="map", compared=("raw_attention",), head=9, top_k=2)
    view.wait(20)
    assert (view.layer, view.view, view.head, view.top_k) == (1, "map", -1, 2)
    assert view.focus == len(view.tokens) - 1
    assert set(view.explanations) == {"attention_rollout", "raw_attention"}
    view.close()
    view = make(layer=40, focus=40)
    view.wait(20)
    assert (view.layer, view.focus) == (2, 0)
    view.close()


def test_a_shorter_text_takes_the_focus_back(view: MixView) -> None:
    view.focus = 7
    view.wait(20)
    view.text = "a film"
    view.wait(20)
    assert view.focus == 0
    assert view.explanation is not None
    assert view.explanation.focus == 0


def test_a_chosen_focus_stays_and_a_default_one_moves() -> None:
    with_gpt = {"model": tiny.model("gpt2", "CausalLM"), "tokenizer": tiny.tokenizer()}
    view = make(**with_gpt)
    view.wait(20)
    assert view.focus == len(view.tokens) - 1
    view.text = OTHER
    view.wait(20)
    assert view.focus == len(view.tokens) - 1
    view.focus = 2
    view.text = TEXT
    view.wait(20)
    assert view.focus == 2
    view.focus = None
    view.wait(20)
    assert view.focus == len(view.tokens) - 1
    view.close()


@pytest.mark.parametrize(
    ("family", "head", "first"),
    [("gpt2", "CausalLM", "attn_lrp"), ("bert", "SequenceClassification", "alti")],
)
def test_where_no_method_is_named_the_recommended_one_is_taken(
    family: str, head: str, first: str
) -> None:
    view = MixView(tiny.model(family, head), TEXT, tiny.tokenizer())
    assert view.method == ""  # nothing is known of the model yet
    view.wait(20)
    assert view.method == first
    assert view.explanation is not None
    assert "recommended" in view.explanation.info["recommended"]
    assert view.model_info["first"][0]["id"] == first
    assert {one["id"] for one in view.model_info["first"]} <= {m["id"] for m in view.catalogue}
    view.method = "random"
    assert "recommended" not in view.wait(20).explanation.info
    view.method = None  # the recommended one again
    assert view.wait(20).method == first
    view.close()


def test_a_method_chosen_before_the_recommended_one_is_known_stays() -> None:
    view = MixView(tiny.model("bert"), TEXT, tiny.tokenizer())
    view.method = "raw_attention"
    view._show({"method": "alti"})  # the worker, a moment too late
    assert view.method == "raw_attention"
    assert list(view.wait(60).explanations) == ["raw_attention"]
    view.close()
