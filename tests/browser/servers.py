"""Notebook servers for the browser tests, each in folders of its own and on its own port."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

ROOT = Path(__file__).parent.parent.parent

# Nothing may pop up or be fetched, and every cell is to be in the page.
_SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {
        "checkForUpdates": False,
        "fetchNews": "false",
        "doNotDisturbMode": True,
    },
    "@jupyterlab/docmanager-extension:plugin": {"autosave": False},
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
}


@dataclass(frozen=True)
class Server:
    url: str
    token: str
    folder: Path
    log: Path

    def call(self, path: str, method: str = "GET") -> Any:
        headers = {"Authorization": f"token {self.token}"}
        request = urllib.request.Request(self.url + path, method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=10) as reply:
            content = reply.read()
        return json.loads(content) if content else None

    def kernels(self) -> list[dict[str, Any]]:
        return list(self.call("/api/kernels"))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _process(command: list[str], folder: Path, log: Path, **env: str) -> Iterator[None]:
    """A server in a process group of its own, which ends with the block."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1", **env}
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
    try:
        yield
    finally:
        for ending, patience in ((signal.SIGTERM, 8), (signal.SIGKILL, 5)):
            with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(process.pid, ending)
                process.wait(patience)
                break


def _until_it_answers(url: str, log: Path, timeout: float = 90) -> None:
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(url, timeout=2).read()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise AssertionError(f"{url} did not answer:\n{log.read_text()[-2000:]}")


def _places(work: Path) -> dict[str, str]:
    """Nothing of the user's own settings is read or written."""
    folders = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    return {name: str(work / folder) for name, folder in folders.items()}


def write_notebook(path: Path, cells: list[str]) -> None:
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
    book.cells = [nbformat.v4.new_code_cell(source) for source in cells]
    nbformat.write(book, str(path))


@contextlib.contextmanager
def jupyter(work: Path) -> Iterator[Server]:
    """One server for both JupyterLab (/lab) and Notebook 7 (/notebooks)."""
    folder, config = work / "notebooks", work / "config"
    folder.mkdir(parents=True)
    (config / "labconfig").mkdir(parents=True)
    (config / "labconfig" / "default_setting_overrides.json").write_text(json.dumps(_SETTINGS))
    port, token = _free_port(), secrets.token_hex(12)
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={folder}",
        "--ServerApp.terminals_enabled=False",
        f"--IdentityProvider.token={token}",
        "--LabApp.news_url=",
        "--LabApp.extension_manager=readonly",
        "--LabApp.expose_app_in_browser=True",
        "--JupyterNotebookApp.expose_app_in_browser=True",
    ]
    server = Server(f"http://127.0.0.1:{port}", token, folder, work / "jupyter.log")
    with _process(command, folder, server.log, **_places(work)):
        _until_it_answers(f"{server.url}/api/status?token={token}", server.log)
        try:
            yield server
        finally:
            with contextlib.suppress(Exception):  # no kernel may outlive its server
                for kernel in server.kernels():
                    server.call(f"/api/kernels/{kernel['id']}", "DELETE")


@contextlib.contextmanager
def marimo(work: Path, notebook: str) -> Iterator[Server]:
    """A marimo notebook as an app."""
    work.mkdir(parents=True, exist_ok=True)
    (work / "notebook.py").write_text(notebook)
    port, token = _free_port(), secrets.token_hex(12)
    command = [
        *(sys.executable, "-m", "marimo", "-y", "run", "notebook.py", "--headless"),
        *("--host", "127.0.0.1", "--port", str(port), "--token-password", token),
    ]
    places = dict.fromkeys(("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"), str(work))
    server = Server(f"http://127.0.0.1:{port}", token, work, work / "marimo.log")
    with _process(command, work, server.log, MARIMO_SKIP_UPDATE_CHECK="1", **places):
        _until_it_answers(f"{server.url}/health", server.log)
        yield server


@contextlib.contextmanager
def voila(work: Path, cells: list[str]) -> Iterator[Server]:
    """A notebook as a Voila page: no code, a kernel for each visitor."""
    write_notebook(work / "notebook.ipynb", cells)
    port = _free_port()
    command = [
        *(sys.executable, "-m", "voila", "notebook.ipynb", "--no-browser"),
        *("--Voila.ip=127.0.0.1", f"--port={port}", "--show_tracebacks=True"),
    ]
    server = Server(f"http://127.0.0.1:{port}", "", work, work / "voila.log")
    with _process(command, work, server.log, **_places(work)):
        _until_it_answers(f"{server.url}/voila/templates/lab/static/voila.js", server.log)
        yield server
