"""Packages of the operating system, for the few things that pip cannot bring."""

from __future__ import annotations

import os
import shutil
import subprocess


def apt_install(package: str) -> str | None:
    """Install a Debian package; None when done, else the reason it could not be."""
    apt = shutil.which("apt-get")
    if apt is None:
        return "this machine has no apt-get"
    prefix: list[str] = []
    if os.geteuid() != 0:
        sudo = shutil.which("sudo")
        if sudo is None:
            return "that needs root, and there is no sudo"
        prefix = [sudo]
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    install = [*prefix, apt, "install", "-y", "--no-install-recommends", package]
    print(f"Installing {package} with apt-get.", flush=True)
    if subprocess.run(install, env=environment, check=False).returncode == 0:
        return None
    # The list of packages may be old or empty, as it is in a fresh container.
    subprocess.run([*prefix, apt, "update"], env=environment, check=False)
    if subprocess.run(install, env=environment, check=False).returncode == 0:
        return None
    return "apt-get failed, see above"
