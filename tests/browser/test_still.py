"""The picture that stays in a notebook when its kernel is gone, in JupyterLab and on paper."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.browser.driver import Notebook, Sheet
from tests.browser.servers import Server

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CELLS = [
    "from mixwidget import MixView\nview = MixView(method='attention_rollout')\nview",
    "view",
    "print('other')",
]
PICTURES = ".jp-OutputArea img"


@pytest.fixture(scope="module", params=["lab", "notebook"])
def book(
    request: pytest.FixtureRequest, browser: Browser, jupyter_server: Server
) -> Iterator[Notebook]:
    made = Notebook(browser, jupyter_server, request.param, f"still-{request.param}.ipynb", CELLS)
    made.run_cell(0)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def nothing_goes_wrong(book: Notebook) -> Iterator[None]:
    yield
    assert book.cell_errors() == []
    assert book.elsewhere == []
    assert book.problems == []


def pictures(path: Path) -> list[bytes]:
    """The pictures in the outputs of a notebook's first cell."""
    cell = json.loads(path.read_text("utf-8"))["cells"][0]
    held = [output.get("data", {}).get("image/png") for output in cell["outputs"]]
    return [base64.b64decode("".join(one)) for one in held if one]


def sizes(sheet: Sheet, selector: str = PICTURES) -> list[Any]:
    script = "els => els.map(e => [e.naturalWidth, e.getBoundingClientRect().height])"
    return list(sheet.page.locator(selector).evaluate_all(script))


def test_a_live_widget_has_no_double(book: Notebook) -> None:
    book.ready()
    book.until(lambda: sizes(book) and sizes(book)[0][0] > 300, "the picture has come", 30)
    assert len(sizes(book)) == 1
    assert sizes(book)[0][1] == 0
    book.run_cell(1)
    book.until(lambda: book.page.locator(".mixwidget").count() == 2, "there are two views")
    book.ready(1)
    book.run_cell(2)
    assert [height for _, height in sizes(book)] == [0] * len(sizes(book))
    hidden = book.page.locator(f".jp-OutputArea-child:has({PICTURES.split()[-1]}):visible")
    assert hidden.count() == 0


def test_it_is_drawn_again_when_other_work_is_done(book: Notebook) -> None:
    source = "els => els[0].src"
    before = book.page.locator(PICTURES).evaluate_all(source)
    book.choose("raw_attention")
    book.until(
        lambda: book.page.locator(PICTURES).evaluate_all(source) != before, "a new picture", 30
    )
    book.ready()
    assert {height for _, height in sizes(book)} == {0}


def test_a_saved_notebook_holds_it(book: Notebook) -> None:
    book.save()
    (png,) = pictures(book.server.folder / book.name)
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20], "big") > 300


def test_nbconvert_shows_it(book: Notebook, browser: Browser, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "--output-dir", str(tmp_path)]
    subprocess.run(
        [*command, str(book.server.folder / book.name)], check=True, capture_output=True, timeout=90
    )
    sheet = Sheet(browser)
    sheet.page.goto(next(tmp_path.glob("*.html")).as_uri(), wait_until="domcontentloaded")
    images = "img[src^='data:image/png']"
    sheet.until(lambda: sizes(sheet, images) and sizes(sheet, images)[0][1] > 50, "a picture")
    sheet.close()


class Reopened(Notebook):
    """A notebook that is there already, on a new kernel, which knows no widget."""

    def __init__(self, browser: Browser, server: Server, host: str, name: str) -> None:
        Sheet.__init__(self, browser)
        self.server, self.host, self.name = server, host, name
        self.open()

    def trusted(self) -> bool:
        script = (
            "() => (window.jupyterapp || window.jupyterlab)"
            ".shell.currentWidget.content.model.cells.get(0).trusted"
        )
        return bool(self.page.evaluate(script))


@pytest.mark.parametrize("trusted", [True, False])
def test_it_is_seen_without_its_kernel(book: Notebook, browser: Browser, trusted: bool) -> None:
    source = book.server.folder / book.name
    copy = source.with_name(f"{book.host}-{'trusted' if trusted else 'foreign'}.ipynb")
    content = json.loads(source.read_text("utf-8"))
    if not trusted:  # it is not what was signed
        content["cells"][2]["source"] = "print('changed')"
    copy.write_text(json.dumps(content), "utf-8")
    sheet = Reopened(browser, book.server, book.host, copy.name)
    assert sheet.trusted() is trusted
    sheet.until(lambda: sizes(sheet) and sizes(sheet)[0][1] > 50, "the picture is seen", 30)
    sheet.page.wait_for_timeout(500)
    assert sheet.page.locator(".mixwidget").count() == 0
    assert [height > 50 for _, height in sizes(sheet)] == [True, True]
    sheet.close()
