"""Run notebooks and keep what they put out, as small static pictures, tables and text.

    python -m tools.run_notebooks [FILE ...]    all of notebooks/ by default

The committed outputs are what a code host shows; tests/test_notebooks.py compares them with a
fresh run. Widgets are kept as their still picture, never as state.
"""

from __future__ import annotations

import base64
import io
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from tools.clean_notebooks import ROOT, cleaned

FOLDER = ROOT / "notebooks"
DPI = 72  # drawn small: a picture that is made smaller afterwards has twice the bytes
COLOURS = 48
WIDGET = "application/vnd.jupyter.widget-view+json"
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONWARNINGS": "ignore::DeprecationWarning",
}
SETUP = f"""
import matplotlib as _matplotlib
import mixwidget.plots.canvas as _canvas
import mixwidget.widget.still as _still
_canvas._DPI = _still._DPI = _matplotlib.rcParams["figure.dpi"] = {DPI}
"""
# Views are drawn when their work is done, which may be after the last cell.
SETTLE = """
from ipywidgets.widgets.widget import _instances
from mixwidget import MixView as _View
for _view in [one for one in _instances.values() if isinstance(one, _View)]:
    _view.wait(120)
    _view._picture.refresh()
    _view._picture._publish(update=True)  # also what a timer has drawn and not yet shown
"""


def run(path: Path, more: Sequence[str] = ()) -> nbformat.NotebookNode:
    """The notebook after a fresh run, with static outputs, and `more` cells run behind its last,
    of which nothing is kept. What a cell raises is raised."""
    notebook = nbformat.read(path, as_version=4)
    count = len(notebook.cells)
    before, *after = (nbformat.v4.new_code_cell(code) for code in (SETUP, SETTLE, *more))
    notebook.cells = [before, *notebook.cells, *after]
    client = NotebookClient(
        notebook, timeout=900, kernel_name="python3", resources={"metadata": {"path": str(FOLDER)}}
    )
    client.execute()
    notebook.cells = notebook.cells[1 : 1 + count]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = static(cell.outputs)
    return notebook


def static(outputs: list[Any]) -> list[Any]:
    """Outputs without widgets, run counts and places on this machine; streams put together."""
    kept: list[Any] = []
    for output in outputs:
        if output.output_type == "stream":
            text = without_places(output.text)
            if kept and kept[-1].output_type == "stream" and kept[-1].name == output.name:
                kept[-1].text += text
            elif text:
                kept.append(nbformat.v4.new_output("stream", name=output.name, text=text))
        elif output.output_type in ("display_data", "execute_result") and WIDGET not in output.data:
            data = dict(output.data)
            if "image/png" in data:
                picture = smaller(base64.b64decode(data["image/png"]))
                if not picture:
                    continue
                data = {"image/png": base64.b64encode(picture).decode("ascii")}
            elif "text/html" in data:
                data = {"text/html": without_style(data["text/html"])}
            kept.append(nbformat.v4.new_output("display_data", data=data))
    return kept


def without_places(text: str) -> str:
    """Where a warning was raised is a place on this machine; what it says is kept."""
    return re.sub(r"^\S+\.py:\d+: (\w+: .*\n)(  .*\n)?", r"\1", text, flags=re.MULTILINE)


def without_style(html: str) -> str:
    """Code hosts drop the style of a table, and every table brings it."""
    return re.sub(r"<style scoped>.*?</style>\s*", "", html, flags=re.DOTALL)


def smaller(png: bytes) -> bytes:
    """The picture in few colours; empty for a mere place holder."""
    from PIL import Image

    with Image.open(io.BytesIO(png)) as opened:
        if opened.width < 8:
            return b""
        picture = opened.convert("RGBA")
    white = Image.new("RGBA", picture.size, "white")
    flat = Image.alpha_composite(white, picture).convert("RGB")
    few = flat.quantize(COLOURS, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    few.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def main(arguments: list[str]) -> int:
    os.environ.update(ENVIRONMENT)
    os.environ.pop("MPLBACKEND", None)  # the kernel has its own
    for path in [Path(a) for a in arguments] or sorted(FOLDER.glob("*.ipynb")):
        path.write_text(cleaned(nbformat.writes(run(path))), encoding="utf-8")
        print(f"{path.name}: {path.stat().st_size // 1000} kB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
