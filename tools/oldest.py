"""Print constraints that make pip install the oldest versions the project says it supports.

    python -m tools.oldest > oldest.txt

">=2.1" becomes "==2.1.*": the oldest minor version with its last repairs.
"""

from __future__ import annotations

import re

from tools.project import read_project


def oldest(requirement: str) -> str:
    """One line of constraints for a requirement with a lower bound."""
    found = re.match(r"([\w.-]+)(?:\[[^]]*\])?\s*>=\s*(\d+)(?:\.(\d+))?", requirement)
    if found is None:
        raise SystemExit(f"{requirement!r} has no lower bound")
    name, major, minor = found.groups()
    return f"{name}=={major}.{minor or 0}.*"


def main() -> None:
    for requirement in read_project()["project"]["dependencies"]:
        print(oldest(requirement))


if __name__ == "__main__":
    main()
