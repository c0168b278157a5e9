"""Take the README's picture: the widget in JupyterLab, tracing where an answer comes from.

python -m tools.picture [FILE]    docs/picture.png by default
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
MixView(view="graph")"""


def take(path: Path) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        jupyter(Path(folder)) as server,
        sync_playwright() as playwright,
    ):
        chromium = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        notebook = Notebook(chromium, server, "lab", "picture.ipynb", [CELL])
        notebook.run_cell(0)
        notebook.ready()
        notebook.root().get_by_text("Trace the focus").click()
        notebook.page.set_viewport_size({"width": 1300, "height": 1500})  # all of it, no bars
        notebook.page.mouse.move(5, 5)
        notebook.page.wait_for_timeout(800)
        notebook.root().screenshot(path=str(path))
        chromium.close()


if __name__ == "__main__":
    take(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/picture.png"))
