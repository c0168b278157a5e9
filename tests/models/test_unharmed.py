"""Interrupts, forks and training beside an explanation change nothing: a short run of
`benchmarks/safety.py`, whose long one is the proof."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

UNIX = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers or forks")


def measured(what: str, count: int) -> Any:
    """In a process of its own: pytest's timeout needs the timer, and a fork needs torch to have
    used one thread only."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.safety", f"{what}={count}"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])[what]


@UNIX
def test_interrupts_change_neither_model_nor_thread() -> None:
    counts = measured("interrupts", 150)
    assert counts["landed"] == 150
    assert set(counts) == {"landed", "runs"}


@UNIX
def test_children_forked_meanwhile_neither_hang_nor_differ() -> None:
    assert measured("forks", 4) == {"unchanged": 4}


def test_training_meanwhile_loses_nothing_and_disturbs_nothing() -> None:
    counts = measured("training", 40)
    assert counts.pop("explanations") == 40
    assert counts.pop("passes of the user") > 10
    assert set(counts.values()) == {0}
