"""The rooms of the house: who imports whom, from where and when; and how large a file may be.

Every import counts, lazy ones and those for types too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

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

# What may be imported within a function: heavy, and not needed by whoever only imports us.
HEAVY = {
    *("torch", "transformers", "pandas", "matplotlib", "scipy", "sklearn", "captum", "spacy"),
    *("tqdm", "datasets", "safetensors", "latex2mathml"),
}
# Own rooms that need torch (`saving` numpy and pandas, too much for `mixwidget --help`), and who
# imports them only when they are needed.
WITH_TORCH = {"blocks", "models", "methods", "engine", "metrics", "plots", "evaluation", "saving"}
LIGHT = {"session", "saving", "widget", "cli"}

MOST_LINES, MOST_LINES_OF_ONE_IDEA = 350, 400
# The widget: its traits, what comes in and what goes out; a block: its pieces at every stage.
ONE_IDEA = {"widget.mixview", "blocks.algebra"}
MOST_MODULES, MOST_MODULES_OF_A_HUB = 10, 12
HUBS = {"session.work", "cli"}
MOST_LINES_OF_A_FUNCTION, MOST_PARAMETERS = 60, 9


class Import(NamedTuple):
    """One import: who, what, its names, within which function or class, for types only."""

    module: str
    target: str  # a module of ours without "mixwidget.", or a foreign one with a colon before it
    names: tuple[str, ...]
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


def tree(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text("utf-8"))


def passed_on(name: str) -> set[str]:
    """What a room's first file says others may use."""
    nodes = [node for node in tree(name).body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name for node in nodes for alias in node.names}


FACADES = {
    name: passed_on(name) for name, path in MODULES.items() if name and path.name == "__init__.py"
}
ROOMED = [name for name in MODULES if name not in ("", "__main__")]


def imports(name: str) -> list[Import]:
    """Every import in a module."""
    home = ["mixwidget", *(name.split(".") if name else [])]
    package = home if MODULES[name].name == "__init__.py" else home[:-1]
    found: list[Import] = []

    def note(full: str, names: tuple[str, ...], inside: str, lazy: bool, typed: bool) -> None:
        top, _, rest = full.partition(".")
        if top != "mixwidget":
            found.append(Import(name, f":{top}", names, inside, lazy, typed))
            return
        for one in names or ("",):
            deep = f"{rest}.{one}" if rest else one
            file = one and deep in MODULES and (rest not in FACADES or one not in FACADES[rest])
            target = deep if file else rest
            found.append(Import(name, target, (one,), inside, lazy, typed))

    def walk(node: ast.AST, inside: tuple[str, ...], lazy: bool, typed: bool) -> None:
        for child in ast.iter_child_nodes(node):
            here = ".".join(inside)
            if isinstance(child, ast.ImportFrom):
                above = package[: len(package) - child.level + 1] if child.level else []
                full = ".".join([*above, *([child.module] if child.module else [])])
                note(full, tuple(alias.name for alias in child.names), here, lazy, typed)
            elif isinstance(child, ast.Import):
                for alias in child.names:
                    note(alias.name, (), here, lazy, typed)
            elif isinstance(child, ast.ClassDef):
                walk(child, (*inside, child.name), lazy, typed)
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                walk(child, (*inside, child.name), True, typed)
            elif isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                walk(child, inside, lazy, True)
            else:
                walk(child, inside, lazy, typed)

    walk(tree(name), (), False, False)
    return found


ALL = [one for name in ROOMED for one in imports(name)]
OURS = [one for one in ALL if not one.target.startswith(":")]


def room(module: str) -> str:
    return module.partition(".")[0]


def rank(module: str) -> int:
    """How high a module stands; the package itself, which is all rooms, above them."""
    return ROOMS.index(room(module)) if room(module) in ROOMS else len(ROOMS)


def test_every_module_is_in_a_room() -> None:
    assert [name for name in ROOMED if room(name) not in ROOMS] == []


def test_rooms_import_downward() -> None:
    upward = {
        (one.module, one.target)
        for one in OURS
        if rank(one.target) > rank(one.module)
        and one.names != ("__version__",)  # the one thing that is the package's own
        and (room(one.module), room(one.target), one.inside) not in CONVENIENCES
    }
    assert not upward


def test_rooms_are_imported_by_their_own_names() -> None:
    """Not from a file in them: a room says in its first file what others may use."""
    files = {
        (one.module, one.target)
        for one in OURS
        if "." in one.target and room(one.target) != room(one.module)
    }
    assert not files


def test_lazy_imports_are_of_what_is_heavy() -> None:
    lazy = {
        (one.module, one.target)
        for one in ALL
        if one.lazy
        and not one.typed
        and one.target.removeprefix(":").partition(".")[0] not in HEAVY
        and not (room(one.module) in LIGHT and room(one.target) in WITH_TORCH)
        and (room(one.module), room(one.target), one.inside) not in CONVENIENCES
    }
    assert not lazy


def test_files_hold_one_idea() -> None:
    long = {
        name
        for name, path in MODULES.items()
        if len(path.read_text("utf-8").splitlines())
        > (MOST_LINES_OF_ONE_IDEA if name in ONE_IDEA else MOST_LINES)
    }
    assert not long


def test_files_know_few_others() -> None:
    """A room's first file, which only passes names on, and the table of methods aside."""
    crowded = set()
    for name in ROOMED:
        known = {one.target for one in OURS if one.module == name and one.target != room(name)}
        most = MOST_MODULES_OF_A_HUB if name in HUBS else MOST_MODULES
        facade = MODULES[name].name == "__init__.py" and name not in HUBS
        if len(known) > most and not facade:
            crowded.add(name)
    assert not crowded


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for name in MODULES:
        for node in ast.walk(tree(name)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{name}:{node.name}", node


def test_functions_are_short() -> None:
    """What they say of themselves aside."""
    long = set()
    for name, node in functions():
        first = node.body[0]
        said = ast.get_docstring(node) is not None
        inside = (first.end_lineno or 0) - first.lineno + 1 if said else 0
        if (node.end_lineno or 0) - node.lineno + 1 - inside > MOST_LINES_OF_A_FUNCTION:
            long.add(name)
    assert not long


# Public verbs, and `method`, whose arguments are the fields of a table row.
VERBS = {
    "explain",
    "stream",
    "faithfulness",
    "explain_frame",
    "benchmark",
    "study",
    "start",
    "prepare",
    "method",
}


def test_functions_take_few_parameters() -> None:
    """But for the public verbs, and constructors of what users make."""
    many = set()
    for name, node in functions():
        given = node.args
        count = len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs)
        own = name.rpartition(":")[2]
        public = own in VERBS or own.startswith("draw_")  # what `plot` takes for each kind
        if count > MOST_PARAMETERS + (own == "__init__") and not public:
            many.add(name)
    assert not many


@pytest.mark.parametrize("name", ["errors", "tokens", "protocol"])
def test_the_lowest_know_nobody(name: str) -> None:
    assert {one.target for one in OURS if one.module == name} <= {"errors"}
