"""Refuse large files, other than the embedded model.

python -m tools.check_sizes [FILE ...]    everything that git tracks by default
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LIMIT = 500_000
EXEMPT = {"mixwidget/demo": 6_000_000}  # folders with a limit of their own


def limit_for(path: Path) -> int:
    return next((n for folder, n in EXEMPT.items() if path.as_posix().startswith(folder)), LIMIT)


def main(arguments: list[str]) -> int:
    tracked = ["git", "ls-files", "-z"]
    names = arguments or subprocess.check_output(tracked, text=True).split("\0")
    paths = [Path(name) for name in names if name]
    too_large = [p for p in paths if p.is_file() and p.stat().st_size > limit_for(p)]
    for path in too_large:
        print(f"{path}: {path.stat().st_size} bytes, the limit is {limit_for(path)}")
    return 1 if too_large else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
