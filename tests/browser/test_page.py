"""A saved page in Chromium, opened from disk with no network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from mixwidget import MixView, demo
from tests.browser.cells import HOSTILE, hostile_view
from tests.browser.driver import Sheet

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Opener = Callable[..., Sheet]
VIEWS = ("text", "layers", "map", "graph", "multiples", "compare", "faithfulness", "heads")


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Opener]:
    """Saves a view and opens the page; in the end nothing has gone wrong on it."""
    sheet = Sheet(browser)
    requests: list[str] = []

    def open(view: MixView, **options: Any) -> Sheet:
        path = tmp_path / "page.html"
        view.save(path, **options)
        view.close()
        sheet.context.set_offline(True)
        sheet.page.on("request", lambda request: requests.append(request.url))
        sheet.page.goto(path.as_uri())
        sheet.ready(timeout=10)
        return sheet

    yield open
    asked = [url for url in requests if not url.startswith(("data:", "blob:"))]
    sheet.close()
    assert len(asked) == 1, asked  # the file itself
    assert sheet.problems == []
    assert sheet.elsewhere == []


def test_all_views_work_without_a_kernel(opened: Opener) -> None:
    view = MixView(method="alti", compared=["attention_rollout", "attcat"])
    view.wait()
    expected = view.explanations["alti"].rollout(1)[0]
    sheet = opened(view)
    assert sheet.tokens() == ["[CLS]", *demo.SENTENCE.split(), "[SEP]"]
    assert "positive" in sheet.root().inner_text()
    sheet.slide(1)
    scores = "els => els.map(e => Number(e.dataset.score))"
    right = pytest.approx(list(expected), rel=5e-3, abs=1e-4)
    sheet.until(lambda: sheet.part("token").evaluate_all(scores) == right, "layer 1 is shown")
    for name in VIEWS:
        sheet.view(name)
        sheet.until(lambda: sheet.root().get_attribute("data-view") == name, name)  # noqa: B023
        panel = sheet.root().locator(f".mix-view-{name}")
        assert panel.locator(".mix-notice:visible").count() == 0, panel.inner_text()
        drawn = "canvas:visible, .mix-ranking li:visible, .mix-compare *:visible"
        sheet.until(lambda: panel.locator(drawn).count() > 0, f"{name} is drawn")  # noqa: B023


def test_a_node_is_traced_and_a_token_focused(opened: Opener) -> None:
    sheet = opened(MixView(method="attention_rollout", compared=["partial_lrp"]))
    sheet.view("graph")
    canvas = sheet.root().locator("canvas[role=img]:visible").first
    sheet.until(lambda: "graph" in str(canvas.get_attribute("aria-label")), "the graph is drawn")
    sheet.click_a_node()
    sheet.until(lambda: "comes from" in str(canvas.get_attribute("aria-label")), "it is traced")
    sheet.view("text")
    scores = "els => els.map(e => e.dataset.score).join()"
    before = sheet.part("token").evaluate_all(scores)
    said = sheet.part("verdict").inner_text()
    sheet.part("token", index=3).click()
    sheet.until(lambda: "“is”" in sheet.part("card").inner_text(), "it is held")
    assert sheet.part("token").evaluate_all(scores) == before  # looking asks for nothing
    sheet.part("into").click()
    sheet.until(lambda: sheet.part("token").evaluate_all(scores) != before, "its row is shown")
    # The test stays about the answer, and says so.
    words = "The test is about positive, not about is."
    sheet.until(lambda: words in sheet.part("verdict").inner_text(), "it says so")
    assert sheet.part("verdict").inner_text().startswith(said.removesuffix(" Test"))
    sheet.choose("partial_lrp")
    sheet.until(
        lambda: "another focus token" in sheet.root().inner_text(), "scores of another token"
    )
    sheet.part("back").click()
    sheet.until(lambda: sheet.part("token", index=3).get_attribute("data-score"), "they are back")


def test_faithfulness_is_part_of_the_page(opened: Opener) -> None:
    sheet = opened(MixView(method="alti", compared=["attention_rollout"]))
    sheet.view("faithfulness")
    canvas = sheet.root().locator(".mix-view-faithfulness canvas[role=img]")
    sheet.until(lambda: "2 curves" in str(canvas.get_attribute("aria-label")), "curves are drawn")
    assert "measure" in sheet.part("verdict").inner_text()
    assert "Comprehensiveness" in sheet.root().locator(".mix-strips").inner_text()
    assert "Attention rollout" in str(sheet.part("metrics").text_content())
    sheet.part("compare-remove").click()  # one fewer to compare
    sheet.until(lambda: "1 curve" in str(canvas.get_attribute("aria-label")), "one is left")
    sheet.view("text")
    sheet.row(2)
    sheet.view("faithfulness")
    sheet.page.wait_for_timeout(200)
    assert "1 curve" in str(canvas.get_attribute("aria-label"))  # still the answer's


def test_what_needs_the_notebook_is_absent_and_says_so(opened: Opener) -> None:
    sheet = opened(MixView(method="attention_rollout"))
    for part in ("edit", "text-input", "run", "compare-add"):
        assert not sheet.part(part).is_visible(), part
    assert sheet.part("target-select").inner_text().startswith("positive")
    assert sheet.root().locator(":disabled").count() == 0
    assert "notebook" in sheet.root().locator(".mix-foot").inner_text()
    sheet.part("method-picker").click()
    toggles = sheet.root().locator("[data-part=method-toggle]:visible")
    assert toggles.count() == 1
    sheet.root().locator(".mix-off summary").click()
    assert "needs the notebook" in sheet.root().locator(".mix-off").inner_text()
    sheet.page.keyboard.press("Escape")
    sheet.part("export").click()
    formats = sheet.root().locator("[data-format]:visible")
    assert formats.evaluate_all("els => els.map(e => e.dataset.format)") == ["png", "svg"]
    with sheet.page.expect_download() as download:
        formats.first.click()
    assert Path(download.value.path()).read_bytes().startswith(b"\x89PNG")


def test_html_in_tokens_and_labels_is_text(opened: Opener) -> None:
    sheet = opened(hostile_view())
    assert sheet.tokens() == ["[CLS]", *HOSTILE, "[SEP]"]
    for name in VIEWS:
        sheet.view(name)
        sheet.until(lambda: sheet.root().get_attribute("data-view") == name, name)  # noqa: B023
    assert sheet.page.evaluate("window.broken") is None
    assert sheet.root().locator("img, script").count() == 0
    assert sheet.page.title().endswith(" ".join(HOSTILE)[:57] + "...")
