"""MixView in JupyterLab and in Notebook 7. The tests of a front end share one notebook and
follow one another, as a user's steps do; each leaves the widget ready."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser

from mixwidget import demo
from tests.browser.cells import HOSTILE
from tests.browser.driver import Notebook
from tests.browser.figures import measured, walk
from tests.browser.servers import Server

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CELLS = [
    "from tests.browser.cells import hostile_view, slow_method\n"
    "from mixwidget import MixView\n"
    "slow_method()\n"
    "view = MixView(method='attention_rollout')\n"
    "view",
    "view",
    "hostile = hostile_view()\nhostile",
]


@pytest.fixture(scope="module", params=["lab", "notebook"])
def book(
    request: pytest.FixtureRequest, browser: Browser, jupyter_server: Server
) -> Iterator[Notebook]:
    made = Notebook(browser, jupyter_server, request.param, f"{request.param}.ipynb", CELLS)
    made.run_cell(0)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def nothing_goes_wrong(book: Notebook) -> Iterator[None]:
    yield
    assert book.cell_errors() == []
    assert book.elsewhere == []
    assert book.problems == []


def value(book: Notebook, expression: str) -> Any:
    """A value of the kernel."""
    return json.loads(book.execute(f"import json; print(json.dumps({expression}))"))


def test_the_demo_shows_its_tokens(book: Notebook) -> None:
    book.ready()
    assert book.tokens() == ["[CLS]", *demo.SENTENCE.split(), "[SEP]"]
    assert "positive" in book.root().inner_text()
    assert book.part("token", index=3).count() == 1
    assert value(book, "view.status['state']") == "ready"


def test_the_form_in_a_notebook(book: Notebook) -> None:
    """Sentence, claim and verdict in sight below a cell of two lines, and the other figures."""
    book.ready()
    book.until(lambda: "confirmed" in verdict(book).lower(), "it is tested", 60)
    found = measured(book.page)
    assert found["first"] <= 90
    assert found["height"] <= 640
    assert found["controls"] <= 20
    assert found["disabled"] == []
    top = book.root().bounding_box()
    below = book.part("verdict").bounding_box()
    assert top is not None
    assert below is not None
    assert below["y"] + below["height"] - top["y"] <= 200  # of 690, with a cell of two lines above
    said = verdict(book)
    book.part("token", index=11).click()
    book.page.wait_for_timeout(100)
    assert verdict(book) == said
    book.page.keyboard.press("Escape")


def verdict(book: Notebook) -> str:
    return book.part("verdict").inner_text()


def test_each_view(book: Notebook) -> None:
    walk(book)


def test_another_method_by_a_click(book: Notebook) -> None:
    book.choose("raw_attention")
    book.until(lambda: value(book, "view.method") == "raw_attention", "the click has come")
    book.until(lambda: value(book, "view.explanation is not None"), "it is computed")
    book.ready()
    assert book.pressed("raw_attention")
    book.execute("view.method = 'attention_rollout'")
    book.until(lambda: book.pressed("attention_rollout"), "the toggle follows")
    book.ready()


def test_the_slider_sets_the_layer(book: Notebook) -> None:
    book.slide(1)
    book.until(lambda: value(book, "view.layer") == 1, "Python has the layer")


def test_the_layer_moves_the_slider(book: Notebook) -> None:
    book.execute("view.layer = 2")
    book.until(lambda: book.slider().input_value() == "2", "the slider follows")


def test_a_traced_node_shows_its_rollout(book: Notebook) -> None:
    book.view("graph")
    book.until(lambda: value(book, "view.view") == "graph", "Python has the view")
    canvas = book.root().locator("canvas[role=img]:visible").first
    book.until(lambda: "4 layers" in str(canvas.get_attribute("aria-label")), "it is drawn")
    book.click_a_node()
    book.until(lambda: "comes from" in str(canvas.get_attribute("aria-label")), "it is traced")
    level, token = book.until(lambda: book.traced()[0] > 0 and book.traced(), "a node")
    assert token != 0
    assert value(book, "view.focus") == 0  # looking asks for nothing
    row = book.root().locator("table tr", has=book.page.locator("th", has_text="the input"))
    book.root().locator("details.mix-table:visible summary").first.click()
    expected = value(book, f"view.explanation.rollout({level - 1})[{token}].tolist()")

    def shares() -> list[float]:
        return [float(text) for text in row.first.locator("td").all_text_contents()]

    right = pytest.approx(expected, abs=2e-3)
    book.until(lambda: shares() == right, "the table holds its rollout")
    book.view("text")


def test_a_slow_method_is_cancelled(book: Notebook) -> None:
    book.choose("slow")
    book.until(lambda: book.state() == "computing", "it computes")
    book.until(lambda: book.part("progress").is_visible(), "there is a progress bar")
    book.until(lambda: value(book, "view.runs['slow']['progress'] > 0"), "it goes on")
    book.part("cancel").click()
    book.until(lambda: value(book, "view.runs['slow']['state']") == "cancelled", "it is stopped")
    book.ready()
    assert "ancel" in book.part("status").inner_text()
    book.choose("attention_rollout")
    book.until(lambda: value(book, "view.explanation is not None"), "the view goes on")
    book.ready()


def test_edited_text_runs(book: Notebook) -> None:
    book.write("a deep and moving film")
    book.until(lambda: "moving" in book.tokens(), "the new tokens are there")
    book.ready()
    assert value(book, "view.text") == "a deep and moving film"


def test_it_streams_while_a_cell_is_busy(book: Notebook) -> None:
    book.begin("import time; view.text = 'we saw it'; time.sleep(4); shown = view.status['state']")
    book.until(lambda: "saw" in book.tokens() and book.state() == "ready", "it is shown", 3.5)
    assert book.kernel_status() == "busy"
    assert value(book, "shown") == "ready"


def test_bad_text_is_an_error_in_words_and_not_the_end(book: Notebook) -> None:
    book.write("film " * 300)
    book.until(lambda: book.state() == "error", "the error is shown")
    assert "302 tokens" in book.part("status").inner_text()
    book.execute(f"view.text = {demo.SENTENCE!r}")
    book.ready()
    assert "boring" in book.tokens()


def test_a_refused_value_is_taken_back(book: Notebook) -> None:
    before = value(book, "view.text")
    book.write("   ")
    book.page.wait_for_timeout(300)
    assert value(book, "view.text") == before
    with pytest.raises(AssertionError, match=r"TraitError.*layers 0 to 3"):
        book.execute("view.layer = 9")
    book.part("edit-cancel").click()
    book.ready()
    assert "boring" in book.tokens()


def test_a_second_view_shows_all_and_stays_in_step(book: Notebook) -> None:
    book.run_cell(1)
    book.until(lambda: book.page.locator(".mixwidget").count() == 2, "there are two views")
    book.ready(1)
    assert book.tokens(1) == book.tokens(0)
    shades = "els => els.map(e => [e.dataset.score, getComputedStyle(e).backgroundColor])"
    first, second = (book.part("token", number) for number in (0, 1))
    book.until(
        lambda: second.evaluate_all(shades) == first.evaluate_all(shades), "the shades agree"
    )
    book.slide(0, number=1)
    book.until(lambda: book.slider(0).input_value() == "0", "the first view follows")
    book.until(lambda: value(book, "view.layer") == 0, "Python follows")


def test_running_the_cell_again_leaves_nothing_behind(book: Notebook) -> None:
    book.execute("old = view; view.method = 'slow'")
    book.until(lambda: book.state() == "computing", "it computes")
    book.run_cell(1)  # the second view goes and comes
    book.run_cell(0)
    book.until(lambda: value(book, "old is not view"), "the cell has run")
    book.ready()
    book.run_cell(1)
    book.ready(1)
    book.until(lambda: not value(book, "old._session.working"), "the old thread has ended")
    book.execute("del old")


def test_html_in_tokens_and_labels_is_text(book: Notebook) -> None:
    book.run_cell(2)
    book.until(lambda: book.page.locator(".mixwidget").count() == 3, "there is a third widget")
    book.ready(2)
    assert book.tokens(2) == ["[CLS]", *HOSTILE, "[SEP]"]
    for view in ("layers", "map", "graph", "multiples", "compare", "heads", "text"):
        book.view(view, 2)
        book.until(lambda: book.root(2).get_attribute("data-view") == view, view)  # noqa: B023
        book.page.wait_for_timeout(150)
    assert book.page.evaluate("window.broken") is None
    assert book.root(2).locator("img, script").count() == 0


def test_a_page_that_is_opened_again_shows_all(book: Notebook) -> None:
    book.execute("view.text = 'a deep and moving film'; view.layer = 1; view.wait()")
    book.save()
    book.open()
    book.ready()
    book.until(lambda: "moving" in book.tokens(), "the tokens are there")
    assert book.slider().input_value() == "1"
    scores = "els => els.every(e => e.dataset.score) && els.map(e => Number(e.dataset.score))"
    shown = book.until(lambda: book.part("token").evaluate_all(scores), "the shades are there")
    expected = value(book, "view.explanation.rollout(1)[0].tolist()")
    np.testing.assert_allclose(shown, expected, atol=2e-3)


def test_the_kernel_can_be_restarted(book: Notebook) -> None:
    book.page.evaluate(
        "() => (window.jupyterapp || window.jupyterlab)"
        ".shell.currentWidget.sessionContext.restartKernel()"
    )
    book.kernel_ready()
    assert book.cell_errors() == []
    book.run_cell(0)
    book.until(
        lambda: value(book, "'view' in globals() and view.status['state'] == 'ready'"),
        "a new widget is ready",
        60,
    )
    book.ready()
    assert book.tokens() == ["[CLS]", *demo.SENTENCE.split(), "[SEP]"]
