"""What every test stands on: no network, no display, and one browser for those that need it."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

os.environ.update(HF_HUB_OFFLINE="1", MPLBACKEND="Agg", TOKENIZERS_PARALLELISM="false")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # tiny models: threads only wait for each other

if importlib.util.find_spec("playwright") is None:  # as in `make test-oldest`
    collect_ignore = ["browser"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium. Tests that use it are marked `browser`."""
    from playwright.sync_api import sync_playwright

    from tools.browser import find_browser

    path = find_browser()
    if path is None:
        pytest.fail('no browser found: "make setup" installs one')
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()
