"""Several models of one text: the session of each, and the view that shows them."""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from traitlets import TraitError

from mixwidget import MixView, explain
from mixwidget.errors import InputError, ModelInputError
from mixwidget.session import Several
from tests.lib import tiny
from tests.lib.pages import MODEL, Page, make, page
from tests.lib.sessions import OTHER, TEXT, gate, until

__all__ = ["page"]  # a fixture

SEED = tiny.model("bert", seed=1)
NAMES = ["pretrained", "tuned"]


def pair(**options: object) -> MixView:
    return make(**{"model": [MODEL, SEED], "names": NAMES, **options})


@pytest.fixture
def view(page: Page) -> Iterator[MixView]:
    made = pair()
    made.wait(30)
    yield made
    made.close()


def test_each_model_gives_what_it_gives_alone(view: MixView, page: Page) -> None:
    found = view.explanations_by_model
    assert list(found) == view_names(view) == NAMES
    for name, model in zip(NAMES, (MODEL, SEED), strict=True):
        alone = explain(model, TEXT, "attention_rollout", tokenizer=tiny.tokenizer())
        np.testing.assert_array_equal(found[name]["attention_rollout"].maps, alone.maps)
        np.testing.assert_array_equal(found[name]["attention_rollout"].scores, alone.scores)
    assert view.explanation == found["pretrained"]["attention_rollout"]
    assert view.view == "compare"
    front, beside = page.state["models"]
    assert (front["front"], beside["front"]) == (True, False)
    assert front["runs"] == page.state["runs"]
    assert beside["runs"]["attention_rollout"]["state"] == "ready"
    assert [entry["units"] for entry in view.models] == [None, None]


def view_names(view: MixView) -> list[str]:
    return [entry["name"] for entry in view.models]


def test_arrays_say_by_their_run_whose_they_are(view: MixView, page: Page) -> None:
    runs = [entry["runs"]["attention_rollout"]["run"] for entry in view.models]
    assert len(set(runs)) == 2
    for name, run in zip(NAMES, runs, strict=True):
        want = {"run": run, "what": "scores"}
        array, done = page.ask(kind="need", wants=[want])
        assert (array["run"], done["missing"]) == (run, [])
        scores = view.explanations_by_model[name]["attention_rollout"].scores
        assert array["shape"] == [len(scores)]


def test_each_is_tested_by_its_own_predictions(view: MixView, page: Page) -> None:
    for entry in view.models:
        run = entry["runs"]["attention_rollout"]["run"]
        *parts, last = page.ask(kind="measure", runs={"attention_rollout": run}, focus=None)
        assert last["kind"] == "done"
        start = next(part for part in parts if part.get("part") == "start")
        assert start["probability"] == pytest.approx(entry["prediction"]["probability"], abs=1e-4)


def test_another_model_comes_in_front(view: MixView, page: Page) -> None:
    page.set(front=1)
    until(lambda: view.model_info["prediction"] == view.models[1]["prediction"])
    view.wait(30)
    assert [entry["front"] for entry in view.models] == [False, True]
    alone = explain(SEED, TEXT, "attention_rollout", tokenizer=tiny.tokenizer())
    assert view.explanation is not None
    np.testing.assert_array_equal(view.explanation.maps, alone.maps)
    assert list(view.runs) == ["attention_rollout"]
    view.front = "pretrained"
    assert view.front == 0
    for wrong in (2, -1, "another", None):
        with pytest.raises(TraitError, match=r"it can be 0 \(pretrained\), 1 \(tuned\)|whole"):
            view.front = wrong


def test_the_others_follow_text_method_and_row(view: MixView) -> None:
    view.text, view.method, view.focus = OTHER, "alti", 3
    view.wait(30)
    for name, model in zip(NAMES, (MODEL, SEED), strict=True):
        alone = explain(model, OTHER, "alti", tokenizer=tiny.tokenizer(), focus=3)
        found = view.explanations_by_model[name]["alti"]
        np.testing.assert_allclose(found.scores, alone.scores, atol=1e-6)


def test_the_recommended_method_is_that_of_the_model_in_front(page: Page) -> None:
    view = pair(method=None)
    view.wait(30)
    assert {tuple(held) for held in view.explanations_by_model.values()} == {(view.method,)}
    view.close()


def test_one_that_fails_is_named_and_the_others_stay(page: Page) -> None:
    class Broken(type(MODEL)):  # type: ignore[misc]
        def forward(self, *args: object, **kwargs: object) -> None:
            raise RuntimeError("no such kernel")

    broken = tiny.model("bert", seed=2)
    broken.__class__ = Broken
    view = make(model=[MODEL, broken], names=["whole", "broken"])
    with pytest.warns(UserWarning, match="broken: .*no such kernel"):
        view.wait(30)
    assert view.status["state"] == "ready"
    assert list(view.explanations) == ["attention_rollout"]
    failed = view.models[1]
    assert (failed["state"], failed["runs"]) == ("error", {})
    assert "no such kernel" in failed["message"]
    # With the broken one in front the view says so, and the way back is open.
    view.front = 1
    until(lambda: view.status["state"] == "error")
    view.front = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        view.wait(30)
    assert view.explanation is not None
    view.close()


def test_stopping_stops_all_of_them(page: Page) -> None:
    with gate() as made:
        view = pair(method="gate")
        assert made.began.wait(10)
        view.cancel()
        until(lambda: view.status["state"] == "ready")
        made.open.set()
        until(lambda: not view._session.working, 20)
    assert made.begun == 1  # the other was not begun after that
    assert view.explanations_by_model == {"pretrained": {}, "tuned": {}}
    view.close()


def test_no_thread_stays_when_the_view_is_closed(page: Page) -> None:
    view = pair()
    view.wait(30)
    view.close()
    until(lambda: not any(t.name == "mixwidget" and t.is_alive() for t in threading.enumerate()))


def test_models_are_called_as_a_benchmark_calls_them(page: Page) -> None:
    one, other = tiny.model("bert"), tiny.model("bert", seed=1)
    one.name_or_path = other.name_or_path = "/models/a/film"
    view = make(model=[one, other])
    assert view.names == ("film 1", "film 2")
    view.close()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": []}, "two to 4, not 0"),
        ({"model": [MODEL] * 5}, "two to 4, not 5"),
        ({"model": [MODEL, SEED], "names": ["same", "same"]}, "2 different names"),
        ({"model": [MODEL, SEED], "names": ["one"]}, "2 different names"),
        ({"model": [MODEL, SEED], "tokenizer": [tiny.tokenizer()]}, "1 tokenizers for 2"),
        ({"model": MODEL, "names": ["one"]}, "names are for several"),
        ({"model": [MODEL, None]}, "model is None"),
        ({"model": [MODEL, torch.nn.Linear(2, 2)]}, "not a transformers model"),
    ],
)
def test_what_is_no_list_of_models_is_refused(options: dict, words: str) -> None:
    with pytest.raises((InputError, ModelInputError), match=words):
        make(**options)


def test_a_view_of_one_model_has_no_others(page: Page) -> None:
    view = make()
    view.wait(30)
    assert (view.models, view.names, view.front) == ([], (), 0)
    assert not isinstance(view._session, Several)
    with pytest.raises(TraitError, match="several models"):
        view.front = 1
    (held,) = view.explanations_by_model.values()
    assert held["attention_rollout"] == view.explanation
    view.close()


def test_tokenizers_that_cut_the_text_otherwise_meet_in_its_words(page: Page) -> None:
    text = "the film is badly deep , never boring ."
    letters = tiny.letters()
    view = make(
        model=[MODEL, tiny.model("bert", vocab_size=60)],
        tokenizer=[tiny.tokenizer(), letters],
        text=text,
        names=["pieces", "letters"],
    )
    view.wait(30)
    first, second = view.models
    words = ["[CLS]", *text.split(), "[SEP]"]
    assert len(set(first["units"])) == len(words)
    joined: dict[int, str] = {}
    for token, unit in zip(letters.tokenize(text, add_special_tokens=True), second["units"]):
        joined[unit] = joined.get(unit, "") + token
    assert [joined[unit] for unit in sorted(joined)] == words
    assert second["tokens"] == len(second["units"]) > len(first["units"])
    # A row is read at the same word of both.
    view.focus = [token["text"] for token in view.tokens].index("never")
    view.wait(30)
    found = view.explanations_by_model["letters"]["attention_rollout"]
    assert second["units"][found.focus] == first["units"][view.focus]
    view.close()


def test_a_page_holds_all_models(view: MixView, tmp_path) -> None:
    view.save(tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text("utf-8")
    data = html.split('id="mixwidget-data">')[1].split("</script>")[0]
    saved = json.loads(data)
    runs = [entry["runs"]["attention_rollout"]["run"] for entry in saved["traits"]["models"][1:]]
    held = {content["run"] for content, _ in saved["arrays"]}
    assert set(runs) < held
    assert saved["beside"]["1"][0]["part"] == "start"
    view.save(tmp_path / "all.json")
    assert len(json.loads((tmp_path / "all.json").read_text())["explanations"]) == 2


def test_the_still_picture_draws_them_side_by_side(view: MixView) -> None:
    from mixwidget.widget.still import _plot_of

    kind, options = _plot_of(view)
    assert (kind, options["names"]) == ("compare", NAMES)
    assert view.explanation is not None
    assert view.explanation.plot(kind, **options).axes
