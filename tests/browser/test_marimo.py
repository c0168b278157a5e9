"""MixView in marimo. As in test_jupyter.py the tests follow one another on one page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from mixwidget import demo
from tests.browser.cells import HOSTILE
from tests.browser.driver import Sheet
from tests.browser.figures import walk
from tests.browser.servers import marimo

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NOTEBOOK = Path(__file__).with_name("marimo_notebook.py")
TOKENS = ["[CLS]", *demo.SENTENCE.split(), "[SEP]"]


@pytest.fixture(scope="module")
def sheet(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sheet]:
    with marimo(tmp_path_factory.mktemp("marimo"), NOTEBOOK.read_text()) as server:
        made = Sheet(browser)
        made.page.goto(f"{server.url}/?access_token={server.token}")
        yield made
        made.close()


@pytest.fixture(autouse=True)
def nothing_goes_wrong(sheet: Sheet) -> Iterator[None]:
    yield
    assert sheet.page.locator(".marimo-error, [data-testid=error]").count() == 0
    assert sheet.elsewhere == []
    assert sheet.problems == []


def says(sheet: Sheet, text: str) -> None:
    """What a cell that depends on the widget shows."""
    sheet.until(lambda: sheet.page.get_by_text(text).count() == 1, f"a cell says {text!r}")


def test_the_demo_shows_its_tokens(sheet: Sheet) -> None:
    sheet.until(lambda: sheet.page.locator(".mixwidget").count() == 3, "the widgets are there", 90)
    sheet.ready()
    assert sheet.tokens() == TOKENS


def test_another_method_by_a_click(sheet: Sheet) -> None:
    sheet.choose("raw_attention")
    says(sheet, "method raw_attention.")
    sheet.ready()


def test_the_slider_sets_the_layer(sheet: Sheet) -> None:
    sheet.slide(2)
    says(sheet, "kernel: layer 2")


def test_the_layer_moves_the_slider(sheet: Sheet) -> None:
    sheet.page.get_by_role("button", name="to layer 1").click()
    sheet.until(lambda: sheet.slider().input_value() == "1", "the slider follows")


def test_the_second_view_is_in_step(sheet: Sheet) -> None:
    sheet.ready(1)
    assert sheet.tokens(1) == TOKENS
    sheet.slide(0, number=1)
    sheet.until(lambda: sheet.slider(0).input_value() == "0", "the first view follows")


def test_a_node_is_traced(sheet: Sheet) -> None:
    sheet.view("graph")
    canvas = sheet.root().locator("canvas[role=img]:visible").first
    sheet.until(lambda: "graph" in str(canvas.get_attribute("aria-label")), "the graph is drawn")
    sheet.click_a_node()
    sheet.until(lambda: "comes from" in str(canvas.get_attribute("aria-label")), "it is traced")
    sheet.view("text")


def test_each_view(sheet: Sheet) -> None:
    walk(sheet)


def test_a_slow_method_is_cancelled(sheet: Sheet) -> None:
    sheet.choose("slow")
    sheet.until(lambda: sheet.state() == "computing", "it computes")
    sheet.part("cancel").click()
    sheet.ready()
    assert "ancel" in sheet.part("status").inner_text()
    sheet.choose("attention_rollout")
    says(sheet, "method attention_rollout.")
    sheet.ready()


def test_edited_text_runs(sheet: Sheet) -> None:
    sheet.write("a deep and moving film")
    sheet.until(lambda: "moving" in sheet.tokens(), "the new tokens are there")
    sheet.ready()


def test_html_in_tokens_and_labels_is_text(sheet: Sheet) -> None:
    sheet.ready(2)
    assert sheet.tokens(2) == ["[CLS]", *HOSTILE, "[SEP]"]
    assert sheet.page.evaluate("window.broken") is None
    assert sheet.root(2).locator("img, script").count() == 0


def test_the_cell_runs_again(sheet: Sheet) -> None:
    sheet.page.get_by_role("button", name="run again").click()
    sheet.until(lambda: sheet.tokens() == TOKENS, "a new widget is there")
    sheet.ready()


def test_a_new_kernel(sheet: Sheet) -> None:
    """A page that is opened anew gets a kernel of its own."""
    sheet.page.reload()
    sheet.until(lambda: sheet.page.locator(".mixwidget").count() == 3, "the widgets are there", 90)
    sheet.ready()
    assert sheet.tokens() == TOKENS
