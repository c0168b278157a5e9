"""The faithfulness tab on a live kernel: curves come, a point says which tokens are gone."""

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
from tests.browser.servers import Server

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CELLS = [
    "from mixwidget import MixView, metrics\n"
    "view = MixView(method='alti', compared=['raw_attention'])\n"
    "view",
    "view",
    "from tests.browser.cells import hostile_view\nhostile = hostile_view()\nhostile",
]


@pytest.fixture(scope="module")
def book(browser: Browser, jupyter_server: Server) -> Iterator[Notebook]:
    made = Notebook(browser, jupyter_server, "lab", "faithfulness.ipynb", CELLS)
    made.run_cell(0)
    made.ready()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def nothing_goes_wrong(book: Notebook) -> Iterator[None]:
    yield
    assert book.cell_errors() == []
    assert book.elsewhere == []
    assert book.problems == []


def value(book: Notebook, expression: str) -> Any:
    return json.loads(book.execute(f"import json; print(json.dumps({expression}))"))


def verdict(book: Notebook, number: int = 0) -> str:
    return str(book.part("verdict", number).inner_text(timeout=5000))


def hover(book: Notebook, share: float) -> None:
    """Point at the curves, a share of the way along the axis."""
    canvas = book.part("curves").locator("canvas[role=img]")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    book.page.mouse.move(box["x"] + share * box["width"], box["y"] + 0.4 * box["height"])


def test_curves_come_when_the_tab_is_opened(book: Notebook) -> None:
    book.view("faithfulness")
    book.until(lambda: "Test" not in verdict(book) and verdict(book), "there is a verdict", 60)
    assert "measure of four" in verdict(book) or "measures" in verdict(book)
    label = str(book.part("curves").locator("canvas[role=img]").get_attribute("aria-label"))
    assert "2 curves, with the band of random orders" in label
    rows = book.part("metrics").locator("tbody tr").all_text_contents()
    measured = "metrics.comprehensiveness(view.explanation, view._session.case)"
    np.testing.assert_allclose(
        float(rows[0].removeprefix("ALTI")[:5]), value(book, measured), atol=1e-3
    )
    assert rows[1].startswith("Raw attention")
    assert "Spearman" in str(book.part("agreements").text_content())
    assert book.part("measure-progress").is_hidden()


def test_a_point_strikes_its_tokens_through(book: Notebook) -> None:
    hover(book, 0.5)
    gone = book.root().locator(".mix-gone")
    book.until(lambda: gone.count() > 1, "tokens are gone")
    order = value(book, "metrics.curve(view.explanation, view._session.case).order")
    words = ["[CLS]", *demo.SENTENCE.split(), "[SEP]"]
    tip = book.root().locator(".mix-tip")
    assert f"{gone.count()} of {len(order)} tokens gone" in tip.inner_text()
    assert "probability of “positive” 0." in tip.inner_text()
    if tip.inner_text().startswith("ALTI"):
        expected = sorted(order[: gone.count()])
        assert gone.all_text_contents() == [words[i] for i in expected]
    book.part("curves").focus()
    book.page.keyboard.press("End")
    book.until(lambda: gone.count() == len(order), "the end of the curve takes all")
    book.page.keyboard.press("Escape")
    book.until(lambda: gone.count() == 0, "nothing is chosen")


def test_another_text_is_measured_and_going_back_is_instant(book: Notebook) -> None:
    first = verdict(book)
    book.execute("view.text = 'a deep and moving film that nobody should miss'")
    book.until(lambda: verdict(book) not in ("", first), "the new text is measured", 60)
    book.execute(f"view.text = {demo.SENTENCE!r}")
    book.until(lambda: verdict(book) == first, "the first is back", 10)


def test_another_view_gets_what_there_is(book: Notebook) -> None:
    book.run_cell(1)
    book.until(lambda: book.page.locator(".mixwidget").count() == 2, "there are two views")
    book.until(lambda: verdict(book, 1) == verdict(book), "it shows the same", 20)


def test_a_method_more_is_a_curve_more(book: Notebook) -> None:
    book.execute("view.compared = ['raw_attention', 'gradient']")
    canvas = book.part("curves").locator("canvas[role=img]")
    book.until(lambda: "3 curves" in str(canvas.get_attribute("aria-label")), "a third", 60)
    book.ready()


def test_html_in_tokens_and_targets_is_text(book: Notebook) -> None:
    book.run_cell(2)
    book.until(lambda: book.page.locator(".mixwidget").count() == 3, "there is a third widget")
    book.ready(2)
    book.view("faithfulness", 2)
    curves = book.part("curves", 2).locator("canvas[role=img]")
    book.until(lambda: "random" in str(curves.get_attribute("aria-label")), "it is measured", 30)
    book.part("curves", 2).focus()
    book.page.keyboard.press("End")
    gone = book.root(2).locator(".mix-gone")
    book.until(lambda: gone.all_text_contents() == list(HOSTILE), "all are struck through")
    assert book.page.evaluate("window.broken") is None
    assert book.root(2).locator("img, script").count() == 0
