"""What a user gets when installing: the package, its bundle and its model, and nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import mixwidget
from tools.project import ROOT, read_project

pytest.importorskip("hatchling", reason="hatchling is not installed")


@pytest.fixture(scope="module")
def wheel_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def wheel(wheel_path: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(wheel_path)


def test_wheel_holds_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    info = f"mixwidget-{mixwidget.__version__}.dist-info"
    held = {name for name in wheel.namelist() if not name.startswith(f"{info}/")}
    files = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "mixwidget").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert held == files
    kinds = {Path(name).suffix or Path(name).name for name in held}
    assert kinds <= {".py", ".typed", ".js", ".css", ".json", ".safetensors", ".txt", ".md"}
    assert f"{info}/licenses/LICENSE" in wheel.namelist()


@pytest.mark.parametrize("name", ["py.typed", "static/widget.js", "static/widget.css"])
def test_wheel_holds_what_is_not_python(wheel: zipfile.ZipFile, name: str) -> None:
    assert wheel.read(f"mixwidget/{name}") == (ROOT / "mixwidget" / name).read_bytes()


def test_wheel_holds_the_embedded_model(wheel: zipfile.ZipFile) -> None:
    folder = ROOT / "mixwidget" / "demo"
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert {path.relative_to(ROOT).as_posix() for path in files} <= set(wheel.namelist())


def test_wheel_is_as_large_as_stated(wheel_path: Path) -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    stated = float(re.search(r"The wheel is ([\d.]+) MB", page).group(1))  # type: ignore[union-attr]
    assert wheel_path.stat().st_size / 1e6 == pytest.approx(stated, abs=0.2)


def test_metadata(wheel: zipfile.ZipFile) -> None:
    info = f"mixwidget-{mixwidget.__version__}.dist-info"
    metadata = wheel.read(f"{info}/METADATA").decode()
    for line in (
        "Classifier: Framework :: Jupyter",
        "Classifier: Typing :: Typed",
        "License-Expression: Apache-2.0",
        "Requires-Python: >=3.10",
    ):
        assert f"{line}\n" in metadata
    assert "mixwidget = mixwidget.cli:main" in wheel.read(f"{info}/entry_points.txt").decode()


def test_version_is_in_one_place() -> None:
    assert "version" not in (ROOT / "js" / "package.json").read_text()
    assert "version" not in read_project()["project"]


def test_every_pin_of_a_dependency_is_in_its_range() -> None:
    from packaging.requirements import Requirement

    pins = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if match := re.match(r"([a-z0-9-]+)==([^ ;]+)", line):
            pins[match.group(1)] = match.group(2)
    for line in read_project()["project"]["dependencies"]:
        wanted = Requirement(line)
        assert wanted.specifier.contains(pins[wanted.name]), line


@pytest.fixture(scope="module")
def installed(wheel_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty environment with the wheel and none of its dependencies; its `bin` folder."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    place = folder / "bin"
    pip = [sys.executable, "-m", "pip", "--python", str(place / "python"), "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel_path)], check=True)
    return place


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Away from the checkout, so that it is the wheel that is imported."""
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_installed_wheel_starts_without_anything_else(installed: Path, tmp_path: Path) -> None:
    done = run(installed / "mixwidget", "--version", cwd=tmp_path)
    assert done.stdout == f"mixwidget {mixwidget.__version__}\n", done.stderr
    code = "import mixwidget; print(mixwidget.__file__); print(sorted(mixwidget.__all__))"
    done = run(installed / "python", "-c", code, cwd=tmp_path)
    assert str(installed.parent) in done.stdout, done.stderr
    assert "MixView" in done.stdout


CONSUMER = """\
from mixwidget import Explanation, MixView, Part, benchmark, demo, explain, methods, stream
from mixwidget.errors import MixwidgetError

model, tokenizer = demo.load()
one = explain(model, "not bad", "alti", tokenizer=tokenizer)
many = explain(model, ["not bad", "good"])
reveal_type(one)
reveal_type(many)
reveal_type(one.method)
reveal_type(one.to_json())
reveal_type(Explanation.from_json("e.json"))
reveal_type(next(stream(model, "not bad")).layer)
reveal_type(MixView(model, "not bad").wait())
part: Part = Part(0)
explain(model, 3)
one.focus = 2
one.no_such_name
"""


@pytest.mark.slow
def test_types_reach_who_uses_it(installed: Path, tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    (tmp_path / "consumer.py").write_text(CONSUMER)
    options = ["--strict", "--ignore-missing-imports", "--no-error-summary", "--follow-imports"]
    done = run(
        *(sys.executable, "-m", "mypy", "--python-executable", installed / "python"),
        *(*options, "silent", "--cache-dir", tmp_path / "cache", "consumer.py"),
        cwd=tmp_path,
    )
    said = re.findall(r'Revealed type is "([^"]+)"', done.stdout)
    assert said == [
        "mixwidget.explanation.record.Explanation",
        "list[mixwidget.explanation.record.Explanation]",
        "str",
        "str",
        "mixwidget.explanation.record.Explanation",
        "int | None",
        "mixwidget.widget.mixview.MixView",
    ], done.stdout
    errors = re.findall(r"consumer\.py:(\d+): error: .*\[([a-z-]+)\]", done.stdout)
    lines = CONSUMER.splitlines()
    assert {(lines[int(number) - 1], kind) for number, kind in errors} == {
        ("explain(model, 3)", "call-overload"),
        ("one.focus = 2", "misc"),
        ("one.no_such_name", "attr-defined"),
    }, done.stdout
