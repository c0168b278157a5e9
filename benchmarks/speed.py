"""Time and memory of every method, as a ratio to one eager forward pass in the same run.

python -m benchmarks.speed            print the table
python -m benchmarks.speed --write    also put it into docs/benchmarks.md

A method's time is that of `explain(...).scores`: tokenizing, the recorded forward pass, the
proof that the parts add up, the method, and its rollout. Runs of the plain forward pass are
interleaved with it; the table gives the median of the ratios. Methods that would take
hundreds of forward passes run on a model cut to a few layers, which changes no ratio.
Memory is the growth of the process's peak over its peak in a forward pass, measured in a
process of its own, always on the full model (only a few layers of the method are run where
all would take minutes).
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.cases import FULL_LAYERS, SIZES, Size, build, text
from benchmarks.direct import ALONE, DIRECT, too_large
from mixwidget import explain
from mixwidget.engine import prepare
from mixwidget.errors import MixwidgetError
from mixwidget.methods.registry import Method, all_methods
from mixwidget.models import open_source

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
MARK = "<!-- the table below is written by `python -m benchmarks.speed --write` -->"


@dataclass
class Row:
    """One method at one size."""

    method: str
    size: str
    tokens: int
    layers: int
    ratio: float | None = None  # to one forward pass
    direct: float | None = None  # likewise, of the direct implementation
    megabytes: float | None = None
    note: str = ""


class Bench:
    """One model with one text, timed against its own forward pass."""

    def __init__(self, family: str, tokens: int, layers: int, clock: Callable[[], float]) -> None:
        model, tokenizer = build(family, layers)
        self.source, self.text, self.clock = open_source(model, tokenizer), text(tokens), clock
        self.inputs = prepare(self.source, self.text).encoding.inputs

    def forward(self) -> None:
        with torch.no_grad():
            self.source.model(**self.inputs, return_dict=True, use_cache=False)

    def timed(self, work: Callable[[], Any]) -> float:
        begin = self.clock()
        work()
        return self.clock() - begin

    def ratio(self, work: Callable[[], Any], repeats: int, once_above: float = 20.0) -> float:
        """Median of (time of work / time of the forward passes around it)."""
        self.forward()
        ratios = []
        before = self.timed(self.forward)
        for _ in range(repeats):
            taken = self.timed(work)
            after = self.timed(self.forward)
            ratios.append(2 * taken / (before + after))
            before = after
            if taken > once_above:
                break
        return statistics.median(ratios)

    def explain(self, method: str) -> None:
        assert explain(self.source, self.text, method).scores is not None

    def direct(self, method: str) -> float | None:
        """All layers of the direct implementation, the forward pass included."""
        work, builds_all = DIRECT[method]
        trace = prepare(self.source, self.text).trace()
        block = trace.block(0)
        if builds_all and too_large(trace.tokens, trace.heads, block.input.shape[-1]):
            return None

        def layers() -> None:
            with torch.no_grad():
                self.forward()
                for layer in range(len(trace)):
                    work(trace.block(layer))

        return self.ratio(layers, 3)


def layers_for(method: Method, size: Size, tokens: int) -> int:
    """All layers, or fewer where one run would take minutes."""
    from mixwidget.models.case import Size as Shape

    cost = method.cost(Shape(tokens, FULL_LAYERS, 12, 768, 3072))
    if method.combine == "flow" or cost < 30:
        return FULL_LAYERS
    return 2 if cost < 500 else 1


def measure(method: Method, size: Size, tokens: int, repeats: int, memory: bool, clock: str) -> Row:
    layers = layers_for(method, size, tokens)
    row = Row(method.id, size.name, tokens, layers)
    bench = Bench(size.family, tokens, layers, CLOCKS[clock])
    try:
        row.ratio = bench.ratio(lambda: bench.explain(method.id), repeats)
    except MixwidgetError as error:
        return replace(row, note=f"refused: {type(error).__name__}")
    if method.id in ALONE:
        row.direct = bench.ratio(lambda: ALONE[method.id](bench.source, bench.inputs), 3)
        row.note = "direct: captum alone"
    if method.id in DIRECT:
        row.direct = bench.direct(method.id)
        row.note = "" if row.direct is not None else "direct does not fit in memory"
    if memory:
        row.megabytes = extra_memory(size.family, tokens, layers, method.id)
    return row


CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}


def extra_memory(family: str, tokens: int, layers: int, method: str) -> float:
    """Growth of the peak over that of a forward pass, MB, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.memory", family, str(tokens), str(layers), method]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout.splitlines()[-1])["megabytes"])


def run(options: argparse.Namespace) -> Iterator[Row]:
    for method in all_methods():
        if options.methods and method.id not in options.methods:
            continue
        for size in SIZES:
            for tokens in size.tokens:
                if options.tokens and tokens not in options.tokens:
                    continue
                if options.models and size.family not in options.models:
                    continue
                yield measure(method, size, tokens, options.repeats, options.memory, options.clock)


HEAD = (
    "| method | model | tokens | time / forward | direct / forward | extra memory | |",
    "|---|---|---:|---:|---:|---:|---|",
)


def line(row: Row) -> str:
    def number(value: float | None, unit: str) -> str:
        return (
            "" if value is None else f"{value:.3g}{unit}" if value < 100 else f"{value:.0f}{unit}"
        )

    note = (
        row.note if row.layers == FULL_LAYERS else f"{row.layers} layers; {row.note}".rstrip("; ")
    )
    cells = [
        f"`{row.method}`",
        row.size,
        str(row.tokens),
        number(row.ratio, "x"),
        number(row.direct, "x"),
        number(row.megabytes, " MB"),
        note,
    ]
    return "| " + " | ".join(cells) + " |"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="*", default=[], help="method ids; all, if not given")
    parser.add_argument("--models", nargs="*", default=[], choices=["bert", "gpt2"])
    parser.add_argument("--tokens", nargs="*", type=int, default=[])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument(
        "--clock",
        choices=sorted(CLOCKS),
        default="wall",
        help="cpu: for a busy machine, with --threads 1",
    )
    parser.add_argument("--no-memory", dest="memory", action="store_false")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    options = parser.parse_args(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    lines = [*HEAD]
    print(*HEAD, sep="\n", flush=True)
    for row in run(options):
        lines.append(line(row))
        print(lines[-1], flush=True)
    if options.write:
        where = (
            f"{platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}"
        )
        before, _, rest = PAGE.read_text().partition(MARK)
        _, heading, after = rest.partition("\n## ")
        table = "\n".join(lines)
        PAGE.write_text(f"{before}{MARK}\n\nMeasured on {where}.\n\n{table}\n{heading}{after}")


if __name__ == "__main__":
    main()
