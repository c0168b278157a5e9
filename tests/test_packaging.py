"""What a user gets when installing: the package, its bundle and its model, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import mixwidget

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def test_wheel_holds_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    info = f"mixwidget-{mixwidget.__version__}.dist-info"
    assert {name.split("/")[0] for name in wheel.namelist()} == {"mixwidget", info}
    assert f"{info}/licenses/LICENSE" in wheel.namelist()


@pytest.mark.parametrize("name", ["py.typed", "static/widget.js", "static/widget.css"])
def test_wheel_holds_what_is_not_python(wheel: zipfile.ZipFile, name: str) -> None:
    assert wheel.read(f"mixwidget/{name}") == (ROOT / "mixwidget" / name).read_bytes()


def test_wheel_holds_the_embedded_model(wheel: zipfile.ZipFile) -> None:
    folder = ROOT / "mixwidget" / "demo"
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert {path.relative_to(ROOT).as_posix() for path in files} <= set(wheel.namelist())


def test_version_is_in_one_place() -> None:
    assert "version" not in (ROOT / "js" / "package.json").read_text()
    assert f'"{mixwidget.__version__}"' not in (ROOT / "pyproject.toml").read_text()
