"""MixView among other widgets: in boxes, linked, driven by `interact`; in JupyterLab and Voila."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator

from mixwidget import demo
from tests.browser.driver import Notebook, Sheet
from tests.browser.servers import Server, voila

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TOKENS = ["[CLS]", *demo.SENTENCE.split(), "[SEP]"]
CELLS = [
    """
import ipywidgets as widgets
from IPython.display import display
from mixwidget import MixView, demo

model, tokenizer = demo.load()
left = MixView(model, demo.SENTENCE, tokenizer, method="alti")
right = MixView(model, demo.SENTENCE, tokenizer, method="attention_rollout")
widgets.link((left, "layer"), (right, "layer"))

in_python = widgets.IntSlider(max=3, description="in Python")
widgets.link((in_python, "value"), (left, "layer"))
in_browser = widgets.IntSlider(max=3, description="in the browser")
widgets.jslink((in_browser, "value"), (left, "layer"))

said = widgets.Label()
left.observe(lambda change: setattr(said, "value", f"layer is {change.new}"), "layer")
display(widgets.VBox([widgets.HBox([left, right]), in_python, in_browser, said]))


def show(method):
    left.method = method
    print("asked for", method)


widgets.interact(show, method=["alti", "globenc"]);
""",
]


@pytest.fixture(scope="module", params=["lab", "voila"])
def sheet(
    request: pytest.FixtureRequest, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sheet]:
    if request.param == "lab":
        server: Server = request.getfixturevalue("jupyter_server")
        made: Sheet = Notebook(browser, server, "lab", "composed.ipynb", CELLS)
        made.run_cell(0)  # type: ignore[attr-defined]
        yield made
        made.close()
        return
    with voila(tmp_path_factory.mktemp("voila"), CELLS) as server:
        made = Sheet(browser)
        made.page.goto(server.url, wait_until="domcontentloaded", timeout=90_000)
        yield made
        made.close()


@pytest.fixture(autouse=True)
def nothing_goes_wrong(sheet: Sheet) -> Iterator[None]:
    yield
    assert sheet.page.get_by_text("Traceback").count() == 0
    assert sheet.elsewhere == []
    assert sheet.problems == []


def reading(sheet: Sheet, name: str) -> Locator:
    """The number beside a slider of ipywidgets."""
    slider = sheet.page.locator(".widget-slider", has_text=name)
    return slider.locator(".widget-readout")


def test_two_views_stand_in_a_box(sheet: Sheet) -> None:
    sheet.until(lambda: sheet.page.locator(".mixwidget").count() == 2, "both are there", 90)
    for number in (0, 1):
        sheet.ready(number)
        assert sheet.tokens(number) == TOKENS
    left, right = (sheet.root(number).bounding_box() for number in (0, 1))
    assert left is not None
    assert right is not None
    assert left["x"] + left["width"] <= right["x"] + 1
    assert min(left["width"], right["width"]) > 300
    assert sheet.page.locator("img:visible").count() == 0  # no still picture beside them


def test_linked_views_move_together(sheet: Sheet) -> None:
    sheet.slide(1, number=1)
    for name in ("in Python", "in the browser"):
        sheet.until(lambda: reading(sheet, name).inner_text() == "1", name)  # noqa: B023
    sheet.until(lambda: sheet.slider(0).input_value() == "1", "the other view")
    sheet.until(lambda: sheet.page.get_by_text("layer is 1").count() == 1, "an observer")


@pytest.mark.parametrize("name", ["in Python", "in the browser"])
def test_a_linked_slider_moves_them(sheet: Sheet, name: str) -> None:
    reading(sheet, name).fill("3" if name == "in Python" else "0")
    sheet.page.keyboard.press("Enter")
    wanted = reading(sheet, name).inner_text()
    for number in (0, 1):
        sheet.until(lambda: sheet.slider(number).input_value() == wanted, name)  # noqa: B023
    sheet.until(lambda: sheet.page.get_by_text(f"layer is {wanted}").count() == 1, "an observer")


def test_interact_sets_a_trait(sheet: Sheet) -> None:
    assert sheet.page.get_by_text("asked for alti").count() == 1
    sheet.page.locator("select", has_text="globenc").last.select_option("globenc")
    sheet.until(lambda: sheet.pressed("globenc"), "the method is in front")
    sheet.ready()
    assert sheet.page.get_by_text("asked for globenc").count() == 1
