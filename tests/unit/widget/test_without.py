"""Without the widget's packages: everything else works, and MixView says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import sys
sys.modules[{missing!r}] = None
import mixwidget
model, tokenizer = mixwidget.demo.load()
assert mixwidget.explain(model, "not bad").scores.shape == (4,)
try:
    mixwidget.MixView
except ImportError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("missing", ["anywidget", "ipywidgets"])
def test_mixview_says_what_to_install(missing: str) -> None:
    command = [sys.executable, "-c", CODE.format(missing=missing)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"MissingExtraError MixView needs {missing}")
    assert "pip install anywidget ipywidgets" in done.stdout
