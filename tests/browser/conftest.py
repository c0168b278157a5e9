"""One server of each kind for all browser tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.servers import Server, jupyter


@pytest.fixture(scope="session")
def jupyter_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with jupyter(tmp_path_factory.mktemp("jupyter")) as server:
        yield server
