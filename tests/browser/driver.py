"""A page with the widget on it: what a user does and sees, and what must not happen."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Locator, Page

from tests.browser.servers import Server, write_notebook

_LOOPBACK = {"127.0.0.1", "localhost", ""}

# Things that the front ends themselves do in every notebook.
_NOT_OURS = (
    "reading 'schema'",  # Notebook 7 at its start, in its settings registry
    "'filebrowser:open-path' not registered",  # likewise
    "Could not restore the debugger state",  # JupyterLab when its kernel is restarted
    "@fortawesome/",  # Voila's own page asks a CDN for it
    "The getter for the shared module",  # Voila, at the extension that Notebook 7 brings
)

_KERNEL = """() => {
  const app = window.jupyterapp || window.jupyterlab;
  const context = app?.shell.currentWidget?.sessionContext;
  const kernel = context?.session?.kernel;
  return kernel ? [context.isReady, kernel.connectionStatus, kernel.status, kernel.id] : null;
}"""

_EXECUTE = """async (code) => {
  const app = window.jupyterapp || window.jupyterlab;
  const kernel = app.shell.currentWidget.sessionContext.session.kernel;
  const seen = { text: "", error: "" };
  const future = kernel.requestExecute({ code, store_history: false });
  future.onIOPub = (message) => {
    if (message.header.msg_type === "stream") seen.text += message.content.text;
    if (message.header.msg_type === "error")
      seen.error = `${message.content.ename}: ${message.content.evalue}`;
  };
  await future.done;
  return seen;
}"""


class Sheet:
    """One browser page, with a record of errors and of requests to other hosts."""

    def __init__(self, browser: Browser) -> None:
        self.context = browser.new_context(viewport={"width": 1300, "height": 1000})
        self.problems: list[str] = []
        self.elsewhere: list[str] = []
        self.context.route(lambda url: not _local(url), lambda route: route.abort())
        self.page: Page = self.context.new_page()
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self._note(f"uncaught: {error}"))
        self.page.on("request", lambda request: self._on_request(request.url))
        self.page.on("dialog", lambda dialog: dialog.accept())

    def _on_console(self, message: Any) -> None:
        if message.type == "error":
            self._note(f"console: {message.text} @ {message.location.get('url', '')}")

    def _note(self, problem: str) -> None:
        if not any(known in problem for known in _NOT_OURS):
            self.problems.append(problem)

    def _on_request(self, url: str) -> None:
        if not _local(url) and not any(known in url for known in _NOT_OURS):
            self.elsewhere.append(url)

    def close(self) -> None:
        self.context.close()

    def until(self, condition: Callable[[], Any], what: str, timeout: float = 20) -> Any:
        """Wait for a condition; its value. Never sleeps: the page's events must come through."""
        end = time.monotonic() + timeout
        while not (value := condition()):
            if time.monotonic() > end:
                raise AssertionError(f"{what}: it did not come to that. {self.problems}")
            self.page.wait_for_timeout(25)
        return value

    # The widget on the page.

    def root(self, number: int = 0) -> Locator:
        return self.page.locator(".mixwidget").nth(number)

    def part(self, name: str, number: int = 0, **data: Any) -> Locator:
        """A part by its stable handle; `data` are other data attributes."""
        more = "".join(f'[data-{key}="{value}"]' for key, value in data.items())
        return self.root(number).locator(f'[data-part="{name}"]{more}')

    def state(self, number: int = 0) -> str | None:
        return self.root(number).get_attribute("data-state", timeout=2000)

    def ready(self, number: int = 0, timeout: float = 60) -> None:
        self.page.wait_for_selector(".mixwidget", timeout=timeout * 1000)
        self.until(lambda: self.state(number) == "ready", "the widget is ready", timeout)

    def tokens(self, number: int = 0) -> list[str]:
        return [text.strip() for text in self.part("token", number).all_text_contents()]

    def view(self, name: str, number: int = 0) -> None:
        self.part("view-tab", number, view=name).click()

    def choose(self, method: str, number: int = 0, *, beside: bool = False) -> None:
        """Put a method in front, or beside the one that is, as a user does."""
        self.part("compare-add" if beside else "method-picker", number).click()
        self.part("method-toggle", number, method=method).click()

    def pressed(self, method: str, number: int = 0) -> bool:
        """Whether a method is in front."""
        toggle = self.part("method-toggle", number, method=method)
        return toggle.get_attribute("aria-pressed") == "true"

    def write(self, text: str, number: int = 0) -> None:
        """Run another text."""
        box = self.part("text-input", number)
        if not box.is_visible():
            self.part("edit", number).click()
        box.fill(text)
        box.press("Enter")

    def row(self, token: int, number: int = 0) -> None:
        """Read another row, by the panel of how things are shown."""
        self.part("display", number).click()
        self.part("focus-select", number).select_option(str(token))
        self.page.keyboard.press("Escape")

    def traced(self, number: int = 0) -> tuple[int, int]:
        """Level and token of the node that the graph traces; level 0 is the input."""
        stage = self.root(number).locator(".mix-graph")
        level, token = (stage.get_attribute(f"data-{name}") for name in ("level", "token"))
        return int(level or -1), int(token or -1)

    def slide(self, value: int, number: int = 0) -> None:
        """Move the layer slider as a user's hand does."""
        slider = self.slider(number)
        slider.focus()
        for _ in range(40):
            now = int(slider.input_value())
            if now == value:
                return
            self.page.keyboard.press("ArrowRight" if now < value else "ArrowLeft")
        raise AssertionError(f"the slider stays at {slider.input_value()}")

    def slider(self, number: int = 0) -> Locator:
        slider = self.part("layer-slider", number)
        inner = slider.locator("input[type=range]")
        return inner if inner.count() else slider

    def click_a_node(self, number: int = 0) -> None:
        """Go down the middle of the graph until the pointer says that there is a node."""
        canvas = self.root(number).locator("canvas[role=img]:visible").first
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        assert box is not None
        middle = int(box["width"] / 2)
        for y in range(4, int(box["height"]), 4):
            for x in range(middle, middle + 40, 6):
                self.page.mouse.move(box["x"] + x, box["y"] + y)
                if canvas.evaluate("c => c.parentElement.style.cursor") == "pointer":
                    self.page.mouse.click(box["x"] + x, box["y"] + y)
                    return
        raise AssertionError("there is no node")


class Notebook(Sheet):
    """A notebook in JupyterLab ("lab") or Notebook 7 ("notebook")."""

    def __init__(
        self, browser: Browser, server: Server, host: str, name: str, cells: list[str]
    ) -> None:
        super().__init__(browser)
        self.server, self.host, self.name = server, host, name
        write_notebook(server.folder / name, cells)
        self.open()

    def open(self) -> None:
        # A workspace of its own: the common one opens the notebooks of other tests too.
        lab = f"lab/workspaces/{Path(self.name).stem}/tree"
        place = {"lab": lab, "notebook": "notebooks"}[self.host]
        address = f"{self.server.url}/{place}/{self.name}?token={self.server.token}"
        self.page.goto(address, wait_until="domcontentloaded")
        self.page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
        self.kernel_ready()

    def kernel_ready(self) -> str:
        """Wait until the kernel would not lose a cell that is sent to it; its id."""

        def ready() -> str | None:
            found = self.page.evaluate(_KERNEL)
            return found[3] if found and found[:3] == [True, "connected", "idle"] else None

        return str(self.until(ready, "the kernel is ready", 60))

    def kernel_status(self) -> str:
        return str(self.page.evaluate(_KERNEL)[2])

    def save(self) -> None:
        self.page.evaluate(
            "() => (window.jupyterapp || window.jupyterlab).shell.currentWidget.context.save()"
        )

    def run_cell(self, index: int) -> None:
        """Run a cell by its key, and see that it has begun: a page that is still busy with
        itself may lose the key."""
        cell = self.page.locator(".jp-Notebook .jp-Cell").nth(index)
        prompt = cell.locator(".jp-InputPrompt")
        before = prompt.text_content()
        for _ in range(5):
            cell.locator(".cm-content").click()
            self.page.keyboard.press("Control+Enter")
            for _ in range(60):
                if prompt.text_content() != before:
                    return
                self.page.wait_for_timeout(25)
        raise AssertionError(f"cell {index} does not run")

    def execute(self, code: str) -> str:
        """Run code in the kernel, not in a cell; what it prints."""
        seen = self.page.evaluate(_EXECUTE, code)
        assert not seen["error"], seen["error"]
        return str(seen["text"]).strip()

    def begin(self, code: str) -> None:
        """Start code in the kernel and do not wait for its end."""
        self.page.evaluate(f"(code) => {{ ({_EXECUTE})(code); }}", code)

    def cell_errors(self) -> list[str]:
        selector = (
            "[data-mime-type='application/vnd.jupyter.error'],"
            "[data-mime-type='application/vnd.jupyter.stderr']"
        )
        return self.page.locator(selector).all_text_contents()


def _local(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme not in ("http", "https", "ws", "wss") or parts.hostname in _LOOPBACK
