"""The rooms of the house import downward only; every import counts, lazy ones and those for types
too. The lists of faults below may only shrink."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parents[2] / "mixwidget"

# From low to high: a room imports itself and lower ones.
ROOMS = [
    "errors",
    "tokens",
    "protocol",
    "demo",
    "blocks",
    "explanation",
    "models",
    "methods",
    "engine",
    "metrics",
    "plots",
    "evaluation",
    "session",
    "saving",
    "widget",
    "cli",
]

# Upward by name: conveniences that draw what a value holds.
CONVENIENCES = {
    ("explanation", "plots", "Explanation.plot"),
    ("explanation", "plots", "Explanation._repr_html_"),
    ("methods", "plots", "HeadMasks.plot"),
}

# Modules that are not in their room yet, and the one they belong to.
ELSEWHERE = {}

UPWARD: set[tuple[str, str]] = {
    ("cli.arguments", ""),
    ("evaluation.evaluate", ""),
    ("session.session", "saving"),
}


class Import(NamedTuple):
    """One import of a module of ours: who, what, within which function or class, for types only."""

    module: str
    target: str
    inside: str
    lazy: bool
    typed: bool


def modules() -> dict[str, Path]:
    """Every module by its name within the package."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports(name: str) -> Iterator[Import]:
    """Every import of ours in a module."""
    path = MODULES[name]
    home = ["mixwidget", *(name.split(".") if name else [])]
    package = home if path.name == "__init__.py" else home[:-1]

    def walk(node: ast.AST, inside: tuple[str, ...], lazy: bool, typed: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ImportFrom):
                above = package[: len(package) - child.level + 1] if child.level else []
                full = ".".join([*above, *([child.module] if child.module else [])])
                for alias in child.names:
                    deep = f"{full}.{alias.name}".partition(".")[2]
                    target = deep if deep in MODULES else full.partition(".")[2]
                    if full.split(".")[0] == "mixwidget":
                        yield Import(name, target, ".".join(inside), lazy, typed)
            elif isinstance(child, ast.Import):
                for alias in child.names:
                    if alias.name.split(".")[0] == "mixwidget":
                        target = alias.name.partition(".")[2]
                        yield Import(name, target, ".".join(inside), lazy, typed)
            elif isinstance(child, ast.ClassDef):
                yield from walk(child, (*inside, child.name), lazy, typed)
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from walk(child, (*inside, child.name), True, typed)
            elif isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                yield from walk(child, inside, lazy, True)
            else:
                yield from walk(child, inside, lazy, typed)

    yield from walk(ast.parse(path.read_text("utf-8")), (), False, False)


def room(module: str) -> str:
    return ELSEWHERE.get(module, module.partition(".")[0])


def rank(module: str) -> int:
    """How high a module stands; the package's own names stand over all rooms."""
    return ROOMS.index(room(module)) if room(module) in ROOMS else len(ROOMS)


def upward() -> set[tuple[str, str]]:
    return {
        (one.module, one.target)
        for name in MODULES
        if name not in ("", "__main__")
        for one in imports(name)
        if rank(one.target) > rank(name)
        and (room(name), room(one.target), one.inside) not in CONVENIENCES
    }


def test_every_module_is_in_a_room() -> None:
    strange = [m for m in MODULES if m not in ("", "__main__") and room(m) not in ROOMS]
    assert not strange
    assert not set(ELSEWHERE) - set(MODULES), "these have moved: take them off the list"


def test_rooms_import_downward() -> None:
    found = upward()
    assert found <= UPWARD, f"new: {sorted(found - UPWARD)}"
    assert found >= UPWARD, f"gone, take them off the list: {sorted(UPWARD - found)}"
