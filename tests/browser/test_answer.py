"""The answer view in JupyterLab: a chat, its reply asked about token by token, and written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.driver import Notebook
from tests.browser.servers import Server

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CELLS = [
    """from tests.browser.cells import chat_view
view = chat_view(answer="it was not bad", method="alti", max_new_tokens=12)
view"""
]


@pytest.fixture
def notebook(browser: Browser, jupyter_server: Server) -> Iterator[Notebook]:
    made = Notebook(browser, jupyter_server, "lab", "answer.ipynb", CELLS)
    made.run_cell(0)
    made.ready()
    yield made
    assert made.elsewhere == []
    made.close()


def test_a_reply_is_asked_about_and_written(notebook: Notebook) -> None:
    root = notebook.root()
    replies = root.locator('[data-part="answer-token"]')
    assert [text.strip() for text in replies.all_inner_texts()] == ["it", "was", "not", "bad"]
    assert root.get_attribute("data-view") == "answer"
    assert root.locator('[data-part="turn-fold"]').count() == 2
    assert "deep" in root.inner_text()
    assert root.locator("b").count() == 0
    claim = notebook.part("claim")
    whole = claim.inner_text()
    assert "the whole answer" in whole

    notebook.part("answer-token", index=2).click()
    notebook.until(lambda: notebook.execute("print(view.step)") == "2", "Python knows the step")
    notebook.until(lambda: claim.inner_text() not in (whole, ""), "the claim changes")
    notebook.ready()
    assert notebook.part("prediction").inner_text() == "not"
    assert notebook.execute("print(view.explanation.target.label)") == "not"

    root.locator('[data-part="alternative"]').first.click()
    contrast = "print(view.explanation and view.explanation.target.kind)"
    notebook.until(lambda: notebook.execute(contrast) == "contrast", "it is contrasted")
    assert " rather than " in notebook.part("prediction").inner_text()

    notebook.part("answer-whole").click()
    notebook.until(lambda: "the whole answer" in claim.inner_text(), "all of it again")
    notebook.part("generate").click()
    notebook.until(lambda: replies.count() == 12, "the model has written", 60)
    notebook.ready()
    assert notebook.execute("print(view.reply['state'], view.answer)") == "full True"
    assert notebook.part("generate-more").is_visible()
