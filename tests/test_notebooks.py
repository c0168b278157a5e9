"""Every notebook runs to its end: offline, without a browser, in the project's kernel."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
PATHS = re.compile(r"/home/|/work/|/tmp/|/Users/|[A-Z]:\\\\")


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def test_there_are_notebooks():
    assert [path.name[:2] for path in NOTEBOOKS] == [f"{i:02}" for i in range(1, 9)]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, monkeypatch):
    for name, value in {
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONWARNINGS": "ignore::DeprecationWarning",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("MPLBACKEND", raising=False)  # the kernel has its own
    notebook = read(path)
    client = NotebookClient(
        notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(FOLDER)}}
    )
    client.execute()
    pictures = 0
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            pictures += "image/png" in data or "application/vnd.jupyter.widget-view+json" in data
            # A figure that is not shown as a picture is of no use to a reader.
            plain = data.get("text/plain", "")
            assert "image/png" in data or not re.match(r"<(Figure|Picture) ", plain), cell.source
    assert pictures >= 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_written_for_a_class(path):
    notebook = read(path)
    first = notebook.cells[0]
    assert first.cell_type == "markdown"
    assert first.source.startswith("# ")
    text = "\n".join(cell.source for cell in notebook.cells)
    assert "?" in text  # it asks its reader something
    assert re.search(r"hub", text)  # and shows the way to other models
    assert not PATHS.search(text)
    words = sum(len(cell.source.split()) for cell in notebook.cells if cell.cell_type == "markdown")
    assert words < 1200  # ten minutes
    for cell in notebook.cells:
        if "hub" in cell.metadata.get("tags", ()):
            assert "online = False" in cell.source
