"""CONTRIBUTING says where things live: its tree is the real one."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def drawn() -> set[str]:
    """Folders and files of the tree, as paths."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    block = text[text.index("## Where things live") : text.index("A room imports itself")]
    found, top = set(), ""
    for line in block.splitlines():
        shown = re.match(r"^(    |      )(\S+)  +\S", line)
        if shown is None:
            continue
        name = shown[2].rstrip("/")
        top = name if len(shown[1]) == 4 else top
        found.add(name if len(shown[1]) == 4 else f"{top}/{name}")
    return found


def tracked() -> set[str]:
    listed = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True)
    return set(listed.splitlines())


def test_the_tree_is_the_real_one() -> None:
    files = [Path(name) for name in tracked()]
    real = {path.parts[0] for path in files if len(path.parts) > 1}
    real = {name for name in real if not name.startswith(".")}
    for path in files:
        if len(path.parts) > 2 and path.parts[0] in ("mixwidget", "js", "tests"):
            real.add("/".join(path.parts[:2]))
        if len(path.parts) > 3 and path.parts[:2] == ("js", "src"):
            real.add("/".join(path.parts[:3]))
    real.discard("js/src")  # its folders are drawn
    lone = {"errors", "tokens", "protocol"}
    real |= {f"mixwidget/{name}.py" for name in lone}
    assert drawn() == real


def test_its_rooms_stand_in_the_order_of_imports() -> None:
    from tests.unit.test_imports import ROOMS

    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    places = [
        match.start()
        for room in ROOMS
        if room not in ("demo",)
        and (match := re.search(rf"^      {room}(/|\.py) ", text, re.MULTILINE)) is not None
    ]
    assert len(places) == len(ROOMS) - 1
    assert places == sorted(places)
