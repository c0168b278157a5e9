"""Create the project's virtual environment.

    python3 -m tools.make_venv .venv

Runs on whatever Python the machine has, and says so when that one is too old.
"""

import subprocess
import sys

OLDEST = (3, 10)


def create(folder):
    return subprocess.call([sys.executable, "-m", "venv", folder]) == 0


def main(folder):
    if sys.version_info < OLDEST:
        sys.exit(
            f"mixwidget needs Python 3.10 or newer, this is {sys.version.split()[0]}.\n"
            "Another one can be named: make PYTHON=python3.12 ..."
        )
    if create(folder):
        return
    # Debian and Ubuntu ship Python without the part that creates environments.
    from tools.system import apt_install

    reason = apt_install(f"python3.{sys.version_info[1]}-venv")
    if reason or not create(folder):
        sys.exit(
            f"Python's venv module does not work here ({reason or 'see above'}).\n"
            "On Debian or Ubuntu, install the package python3-venv."
        )


if __name__ == "__main__":
    main(sys.argv[1])
