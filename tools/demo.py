"""Open the quickstart notebook in JupyterLab, with no network.

    python -m tools.demo            serve until Ctrl-C
    python -m tools.demo --check    start, see that it answers, print the address, end
    python -m tools.demo --watch    for development: rebuild the bundle and reload the widget

Set CI or MIXWIDGET_DEMO_CHECK=1 for --check. Without a display no browser is opened and the
printed address is all there is to use.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import webbrowser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = "notebooks/01_quickstart.ipynb"
START_LIMIT = 120  # seconds
SETTINGS = {  # no questions about news or updates: there may be no network
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def has_display() -> bool:
    if sys.platform in ("darwin", "win32"):
        return "SSH_CONNECTION" not in os.environ
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def environment(config: Path) -> dict[str, str]:
    """What the server and its kernels see: offline, this environment first, our settings."""
    folder = config / "labconfig"
    folder.mkdir()
    (folder / "default_setting_overrides.json").write_text(json.dumps(SETTINGS))
    extra = {
        "HF_HUB_OFFLINE": "1",
        "JUPYTER_PREFER_ENV_PATH": "1",
        "JUPYTER_CONFIG_PATH": os.pathsep.join(
            filter(None, [str(config), os.environ.get("JUPYTER_CONFIG_PATH")])
        ),
    }
    return os.environ | extra


def command(port: int, token: str) -> list[str]:
    root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return [
        *[sys.executable, "-m", "jupyterlab", "--no-browser", "--log-level=WARN", *root],
        f"--ServerApp.root_dir={ROOT}",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={token}",
        "--LabApp.news_url=",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
    ]


def wait_until_it_answers(server: subprocess.Popen[bytes], address: str) -> None:
    """Return once the server gives out the address; end if it stops or takes too long."""
    # A proxy of the machine is not asked for its own address.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + START_LIMIT
    while time.monotonic() < deadline:
        if server.poll() is not None:
            sys.exit(f"JupyterLab ended with exit code {server.returncode}.")
        try:
            with opener.open(address, timeout=5):
                return
        except urllib.error.HTTPError as error:
            sys.exit(f"JupyterLab answers {error.code} for {address}")
        except OSError:
            time.sleep(0.2)
    sys.exit(f"JupyterLab did not answer within {START_LIMIT} seconds.")


def stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def serve(check: bool, watch: bool) -> None:
    if not (ROOT / NOTEBOOK).exists():
        sys.exit(f"{NOTEBOOK} is missing from this checkout.")
    port, token = free_port(), secrets.token_hex(16)
    address = f"http://127.0.0.1:{port}/lab/tree/{NOTEBOOK}?token={token}"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory(prefix="mixwidget-demo-") as config:
        env = environment(Path(config))
        running: list[subprocess.Popen[bytes]] = []
        try:
            if watch:
                env["ANYWIDGET_HMR"] = "1"
                watcher = [sys.executable, "-m", "tools.js", "run", "watch"]
                running.append(subprocess.Popen(watcher, cwd=ROOT))
            # In a session of its own: Ctrl-C reaches this program only, which stops the server.
            server = subprocess.Popen(command(port, token), env=env, start_new_session=True)
            running.append(server)
            wait_until_it_answers(server, address)
            print(f"\nThe quickstart notebook is open at\n\n    {address}\n", flush=True)
            if check:
                return
            if has_display():
                webbrowser.open(address)
            print("Press Ctrl-C to stop.", flush=True)
            server.wait()
        except KeyboardInterrupt:
            print("\nStopping.")
        finally:
            for process in reversed(running):
                stop(process)


if __name__ == "__main__":
    asked = "--check" in sys.argv or os.environ.get("MIXWIDGET_DEMO_CHECK") == "1"
    watching = "--watch" in sys.argv
    serve(check=asked or ("CI" in os.environ and not watching), watch=watching)
