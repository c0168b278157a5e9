"""What the shadow costs: milliseconds for a model's tree, and a whole explanation against before.

python -m benchmarks.shadow                    the shadow alone
python -m benchmarks.shadow --base CHECKOUT    and `explain` against that of another checkout
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
ROUNDS = 5


def best(work: Callable[[], Any], repeats: int = 60) -> float:
    """The fastest of some repeats, in milliseconds: what else runs on the machine only adds."""
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return 1000 * min(seconds)


def made() -> None:
    """Shadows of a model of about 230 modules."""
    import transformers

    from mixwidget.models import shadow

    sizes = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 32}
    config = transformers.BertConfig(num_hidden_layers=12, **sizes)
    model = transformers.BertForSequenceClassification(config)
    count = sum(1 for _ in model.modules())
    print(f"a shadow of {count} modules: {best(lambda: shadow(model)):.1f} ms")


def explained() -> None:
    """One explanation of a tiny model, as this checkout makes it."""
    from mixwidget import explain

    try:
        from tests.lib import tiny
    except ImportError:  # an older checkout
        from tests import tiny  # type: ignore[attr-defined, no-redef]

    model, tokenizer = tiny.model("bert"), tiny.tokenizer()
    text = "the film is not bad ."
    for method in ("raw_attention", "alti", "gradient", "lrp", "deeplift", "blank_out"):
        taken = best(lambda name=method: explain(model, text, name, tokenizer=tokenizer))  # type: ignore[misc]
        print(method, taken)


def _measured(checkout: Path) -> dict[str, float]:
    code = Path(__file__).read_text() + "\nexplained()\n"
    done = subprocess.run(
        [sys.executable, "-c", code.replace('if __name__ == "__main__":', "if False:")
         .replace("Path(__file__)", "Path('.')")],
        cwd=checkout, env={**os.environ, "PYTHONPATH": str(checkout)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {name: float(value) for name, value in map(str.split, done.stdout.splitlines())}


def compared(base: Path) -> None:
    """The fastest of several rounds in turn, so that a busy minute meets both."""
    ours: dict[str, float] = {}
    theirs: dict[str, float] = {}
    for _ in range(ROUNDS):
        for checkout, kept in ((base, theirs), (HERE, ours)):
            for name, value in _measured(checkout).items():
                kept[name] = min(value, kept.get(name, value))
    for name, value in ours.items():
        print(f"{name}: {theirs[name]:.2f} -> {value:.2f} ms, {value / theirs[name]:.2f} of before")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", type=Path)
    options = parser.parse_args()
    made()
    if options.base:
        compared(options.base.resolve())
