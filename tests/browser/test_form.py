"""The widget in figures, on saved pages: geometry, controls, contrast, targets, edges."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from mixwidget import MixView, demo
from tests.browser.figures import VIEWS, faults, measured
from tests.lib import tiny

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LONG = (
    "the film is slow at first and the story is thin , but the actors are warm and the ending "
    "is never dull . "
) * 8
ODD = "Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch <b>&amp;</b> 日本語 مرحبا 😀"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Saved pages: the demo sentence, longer texts, four methods side by side, a decoder."""
    folder = tmp_path_factory.mktemp("pages")
    model, tokenizer = demo.load()
    beside = ["attention_rollout", "attcat", "globenc"]
    words = LONG.split()
    views = {
        "demo": MixView(),
        "40": MixView(model, " ".join(words[:38]), tokenizer),
        "128": MixView(model, " ".join(words[:126]), tokenizer, compared=beside),
        "cut": MixView(model, ODD + " " + LONG, tokenizer, truncate=True),
        "128 alone": MixView(model, " ".join(words[:126]), tokenizer),
        "decoder": MixView(
            tiny.model("gpt2", "CausalLM"), "the film is not bad .", tiny.tokenizer()
        ),
    }
    found = {}
    for name, view in views.items():
        found[name] = folder / f"{name}.html"
        view.wait()
        view.save(found[name])
        view.close()
    return found


@pytest.fixture
def sheet(browser: Browser) -> Iterator[Page]:
    page = browser.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield page
    page.close()
    assert problems == []


def show(page: Page, path: Path, width: int, scheme: str = "light") -> dict[str, Any]:
    page.set_viewport_size({"width": width + 24, "height": 900})  # the page has margins
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(path.as_uri())
    page.wait_for_selector(".mixwidget[data-state=ready]")
    page.wait_for_timeout(300)
    return measured(page)


def open_view(page: Page, name: str) -> None:
    page.locator(f'[data-part="view-tab"][data-view="{name}"]').click()
    page.wait_for_timeout(250)


@pytest.mark.parametrize(("width", "first", "height"), [(800, 90, 640), (460, 110, 760)])
@pytest.mark.parametrize("name", ["demo", "40", "128 alone", "cut"])
def test_the_sentence_comes_first_and_all_fits(
    sheet: Page, pages: dict[str, Path], name: str, width: int, first: int, height: int
) -> None:
    found = show(sheet, pages[name], width)
    assert found["first"] <= first
    assert found["height"] <= height
    assert found["controls"] <= 20
    if name == "cut":
        assert "tokens cut off" in sheet.locator(".mix-sentence").inner_text()
    before = sheet.locator(".mix-question").inner_text().split()
    assert len(before) <= 12
    for part in ("claim", "verdict"):
        assert sheet.locator(f"[data-part={part}]").inner_text()


@pytest.mark.parametrize("name", ["demo", "40", "128", "decoder", "cut"])
@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (800, "light"), (1200, "dark")])
def test_nothing_is_cut_faint_small_or_greyed(
    sheet: Page, pages: dict[str, Path], name: str, width: int, scheme: str
) -> None:
    show(sheet, pages[name], width, scheme)
    for view in VIEWS:
        open_view(sheet, view)
        assert faults(sheet) == {}, view
        assert measured(sheet)["page"] <= 0, view
        assert sheet.locator(".mixwidget").evaluate("e => /[ĠĊÃ]/.test(e.innerText)") is False


def test_the_graph_opens_as_the_flow_of_the_answer(sheet: Page, pages: dict[str, Path]) -> None:
    for name in ("demo", "40", "128"):
        show(sheet, pages[name], 800)
        stage = sheet.locator(".mix-graph")
        assert 0 < int(stage.get_attribute("data-edges") or 0) <= 60
        assert stage.get_attribute("data-token") == "0"
        box, panel = stage.bounding_box(), sheet.locator(".mix-panel").bounding_box()
        assert box is not None
        assert panel is not None
        assert box["width"] <= panel["width"]


def test_thirty_layers_fit_on_a_screen(sheet: Page, tmp_path: Path) -> None:
    view = MixView(
        tiny.model("bert", num_hidden_layers=30),
        "the film is not bad and it is a good plot .",
        tiny.tokenizer(),
    )
    view.wait()
    view.save(tmp_path / "deep.html")
    view.close()
    show(sheet, tmp_path / "deep.html", 800)
    box = sheet.locator(".mix-graph").bounding_box()
    assert box is not None
    assert box["height"] <= 720
    assert box["width"] <= 800


def test_the_verdict_is_that_of_the_answer_whatever_is_looked_at(
    sheet: Page, pages: dict[str, Path]
) -> None:
    show(sheet, pages["demo"], 800)
    verdict = sheet.locator("[data-part=verdict]")
    said = verdict.inner_text()
    assert said.startswith("Partly confirmed.")
    assert "One measure of four is clear of chance, three are not." in said
    assert "An empty text counts as 87 % positive." in said
    for index in range(14):
        sheet.locator(f'[data-part=token][data-index="{index}"]').click()
        sheet.wait_for_timeout(50)
        assert verdict.inner_text() == said


def test_it_is_worked_by_keys_alone(sheet: Page, pages: dict[str, Path]) -> None:
    show(sheet, pages["demo"], 800)
    presses = 0
    while not sheet.evaluate("document.activeElement.matches('[data-part=token]')"):
        sheet.keyboard.press("Tab")
        presses += 1
        assert presses <= 4
    root = sheet.locator(".mixwidget")
    for key, view in enumerate(("text", "graph", "layers", "map", "multiples"), start=1):
        sheet.keyboard.press(str(key))
        sheet.wait_for_timeout(60)
        assert root.get_attribute("data-view") == view
    sheet.keyboard.press("p")
    sheet.wait_for_timeout(100)
    size = (
        "getComputedStyle(document.querySelector('[data-part=token][data-index=\"2\"]')).fontSize"
    )
    assert sheet.evaluate(size) == "32px"
    assert not sheet.locator(".mix-bar").is_visible()
    sheet.keyboard.press("Escape")
    sheet.wait_for_timeout(100)
    sheet.keyboard.press("/")
    assert sheet.locator(".mix-picker").is_visible()
    sheet.keyboard.press("Escape")
    assert not sheet.locator(".mix-picker").is_visible()
