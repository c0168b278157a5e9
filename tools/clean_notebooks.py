"""Keep notebooks free of run counts, widget state and outputs that are not static.

    python -m tools.clean_notebooks [--check] [FILE ...]    all of notebooks/ by default

Pictures, tables and text stay: `python -m tools.run_notebooks` makes them. With --check nothing is
written; files that are not clean, or too large, are named and the exit code is 1.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
KEPT_CELL_METADATA = {"tags", "slideshow", "jupyter"}
STATIC = {"image/png", "text/html", "text/plain"}
MOST = 280_000  # bytes of a notebook
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def cleaned(text: str) -> str:
    """The notebook with what a reader sees of a run, and nothing else that a run leaves."""
    notebook = json.loads(text)
    notebook["metadata"] = METADATA
    for cell in notebook["cells"]:
        kept = cell.get("metadata", {}).items()
        cell["metadata"] = {key: value for key, value in kept if key in KEPT_CELL_METADATA}
        if cell["cell_type"] == "code":
            cell["outputs"] = [made for one in cell["outputs"] if (made := static(one))]
            cell["execution_count"] = None
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def static(output: dict[str, Any]) -> dict[str, Any] | None:
    """An output as it is kept; None of a widget, of an error, and where nothing is left."""
    if output["output_type"] == "stream":
        return output
    data = output.get("data", {})
    if not data or any(kind.startswith("application/vnd.jupyter.widget") for kind in data):
        return None
    kept = {kind: value for kind, value in data.items() if kind in STATIC}
    if "image/png" in kept and isinstance(kept["image/png"], str):
        kept["image/png"] = kept["image/png"].strip()
    return {"data": kept, "metadata": {}, "output_type": "display_data"} if kept else None


def main(arguments: list[str]) -> int:
    check = "--check" in arguments
    files = [Path(a) for a in arguments if a != "--check"]
    wrong = 0
    for path in files or sorted((ROOT / "notebooks").rglob("*.ipynb")):
        if ".ipynb_checkpoints" in path.parts:
            continue
        text = path.read_text(encoding="utf-8")
        clean = cleaned(text)
        if len(clean.encode()) > MOST:
            print(f"{path}: {len(clean.encode())} bytes, the limit is {MOST}; show less")
            wrong += 1
        if clean == text:
            continue
        if check:
            print(f'{path}: not clean, run "make format"')
            wrong += 1
        else:
            path.write_text(clean, encoding="utf-8")
            print(f"{path}: cleaned")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
