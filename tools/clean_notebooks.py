"""Keep notebooks free of outputs, run counts and saved widget state.

    python -m tools.clean_notebooks [--check] [FILE ...]    all of notebooks/ by default

With --check nothing is written; files that are not clean are named and the exit code is 1.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT_CELL_METADATA = {"tags", "slideshow", "jupyter"}
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def cleaned(text: str) -> str:
    """The notebook without anything that a run leaves behind."""
    notebook = json.loads(text)
    notebook["metadata"] = METADATA
    for cell in notebook["cells"]:
        kept = cell.get("metadata", {}).items()
        cell["metadata"] = {key: value for key, value in kept if key in KEPT_CELL_METADATA}
        if cell["cell_type"] == "code":
            cell["outputs"] = []
            cell["execution_count"] = None
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def main(arguments: list[str]) -> int:
    check = "--check" in arguments
    files = [Path(a) for a in arguments if a != "--check"]
    dirty = 0
    for path in files or sorted((ROOT / "notebooks").rglob("*.ipynb")):
        if ".ipynb_checkpoints" in path.parts:
            continue
        text = path.read_text(encoding="utf-8")
        clean = cleaned(text)
        if clean == text:
            continue
        dirty += 1
        if check:
            print(f'{path}: not clean, run "make format"')
        else:
            path.write_text(clean, encoding="utf-8")
            print(f"{path}: cleaned")
    return 1 if dirty and check else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
