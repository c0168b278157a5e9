"""Find a Chromium for the browser tests, or install one.

    python -m tools.browser    print its path; install it first if there is none

MIXWIDGET_BROWSER names a browser to use instead of the one that is found.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.system import apt_install

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser() -> str | None:
    """The path of a Chromium: the named one, one on the path, or Playwright's own."""
    named = os.environ.get("MIXWIDGET_BROWSER")
    if named:
        return shutil.which(named)
    for name in NAMES:
        if path := shutil.which(name):
            return path
    return playwright_browser()


def playwright_browser() -> str | None:
    """The Chromium that "playwright install" downloads, if it has been."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = Path(playwright.chromium.executable_path)
    return str(path) if path.exists() else None


def install_browser() -> str:
    """Install a browser: Debian's, else Playwright's. Its path, or the end with a reason."""
    reason = apt_install("chromium")
    if path := find_browser():
        return path
    print("Downloading a Chromium with Playwright.", flush=True)
    subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)
    if path := find_browser():
        return path
    sys.exit(
        "The browser tests need Chromium, and none could be installed"
        f"{f' ({reason})' if reason else ''}.\n"
        "Install Chromium or Chrome by hand, or set MIXWIDGET_BROWSER to its path;\n"
        '"make fast" runs the tests that need no browser.'
    )


if __name__ == "__main__":
    print(f"browser: {find_browser() or install_browser()}")
