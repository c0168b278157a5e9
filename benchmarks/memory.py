"""Extra peak memory of one method: run in a process of its own by `benchmarks.speed`."""

from __future__ import annotations

import json
import sys
from itertools import islice
from pathlib import Path

import torch

from benchmarks.cases import FULL_LAYERS, build, text
from mixwidget import explain, stream
from mixwidget.engine import prepare
from mixwidget.models import open_source

STATUS = Path("/proc/self/status")


def peak() -> int:
    """Highest resident size of this process since the last `forget`, kB (Linux)."""
    lines = STATUS.read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1])


def forget() -> None:
    """Let the peak start again from what is held now."""
    Path("/proc/self/clear_refs").write_text("5")


def main(family: str, tokens: int, layers: int, method: str) -> float:
    """MB on the full model; where fewer `layers` are asked for, the run ends after these."""
    source = open_source(*build(family))
    short, words = text(4), text(tokens)
    next(iter(stream(source, short, method)))  # imports are not the method's memory
    inputs = prepare(source, words).encoding.inputs
    forget()
    with torch.no_grad():
        source.model(**inputs, use_cache=False)
    before = peak()
    forget()
    if layers < FULL_LAYERS:
        list(islice(stream(source, words, method), layers))
    else:
        assert explain(source, words, method).scores is not None
    return (peak() - before) / 1024


if __name__ == "__main__":
    family, tokens, layers, method = sys.argv[1:]
    found = main(family, int(tokens), int(layers), method)
    print(json.dumps({"megabytes": max(0.0, found)}))
