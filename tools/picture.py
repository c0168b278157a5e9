"""Take pictures of the widget.

python -m tools.picture [FILE]         the README's, in JupyterLab; docs/picture.png by default
python -m tools.picture --all [FOLDER] every view: light and dark, three widths, three lengths, a
                                       decoder, a chat; build/pictures by default
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.driver import Notebook
from tests.browser.servers import jupyter
from tools.browser import find_browser

CELL = """from mixwidget import MixView
MixView()"""
VIEWS = (
    "text",
    "graph",
    "layers",
    "map",
    "multiples",
    "compare",
    "faithfulness",
    "heads",
    "answer",
)
WIDTHS = (1200, 800, 460)
LONG = (
    "the film is slow at first and the story is thin , but the actors are warm and the ending "
    "is never dull . "
) * 8


def take(path: Path) -> None:
    """The widget as it opens in JupyterLab."""
    with (
        tempfile.TemporaryDirectory() as folder,
        jupyter(Path(folder)) as server,
        sync_playwright() as playwright,
    ):
        chromium = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        notebook = Notebook(chromium, server, "lab", "picture.ipynb", [CELL])
        notebook.run_cell(0)
        notebook.ready()
        notebook.page.set_viewport_size({"width": 1300, "height": 1500})  # all of it, no bars
        verdict = notebook.part("verdict")
        notebook.until(lambda: "confirmed" in verdict.inner_text().lower(), "it is tested", 30)
        notebook.page.mouse.move(5, 5)
        notebook.page.wait_for_timeout(800)
        notebook.root().screenshot(path=str(path))
        chromium.close()


def pages(folder: Path) -> list[Path]:
    """Saved pages of a short, a middle and a long text, of methods side by side, of a decoder and
    a chat."""
    from mixwidget import MixView, demo
    from tests.browser.cells import chat_view
    from tests.lib import tiny

    model, tokenizer = demo.load()
    words = LONG.split()
    beside = ["attention_rollout", "attcat"]
    views = {
        "short": MixView(compared=beside),
        "middle": MixView(model, " ".join(words[:38]), tokenizer),
        "long": MixView(model, " ".join(words[:126]), tokenizer, compared=beside),
        "decoder": MixView(
            tiny.model("gpt2", "CausalLM"), "the film is not bad .", tiny.tokenizer()
        ),
        "chat": chat_view(answer="it was not bad , but thin", step=3, compared=["alti"]),
    }
    made = []
    for name, view in views.items():
        made.append(folder / f"{name}.html")
        view.wait()
        view.save(made[-1])
        view.close()
    return made


def take_all(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as given, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        for path in pages(Path(given)):
            for scheme in ("light", "dark"):
                page = chromium.new_page(color_scheme=scheme)
                page.goto(path.as_uri())
                for width in WIDTHS:
                    page.set_viewport_size({"width": width + 24, "height": 900})
                    for view in VIEWS:
                        tab = page.locator(f'[data-part="view-tab"][data-view="{view}"]')
                        if tab.count() == 0:  # of a model that reads there is no answer
                            continue
                        tab.click()
                        page.wait_for_timeout(250)
                        name = f"{path.stem}-{view}-{width}-{scheme}.png"
                        page.locator(".mixwidget").screenshot(path=str(folder / name))
                page.close()
        chromium.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--all"]:
        take_all(Path(sys.argv[2] if len(sys.argv) > 2 else "build/pictures"))
    else:
        take(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/picture.png"))
