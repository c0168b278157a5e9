"""Time of the methods that run backward, in one run: beside captum's, and in forward passes.

    python -m benchmarks.backward            print the table
    python -m benchmarks.backward --write    also put it into docs/benchmarks.md

A classifier of BERT-base's size, one text. Ours is the whole of `explain(...).scores`, tokenizing
included; captum's is its call on the embeddings, with steps, baseline, batches and convergence
delta as ours. What is compared runs in turn, and the table gives the median of the ratios.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.cases import build, text
from benchmarks.direct import captum_alone
from mixwidget import explain
from mixwidget.models import encode, open_source
from mixwidget.models.source import Source

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
BEGIN, END = "<!-- backward: by python -m benchmarks.backward --write -->", "<!-- backward end -->"
# What it is to be at most: of captum's time, or forward passes.
BESIDE = {"gradient_x_input": 1.1, "integrated_gradients": 1.1}
PASSES = {"attn_lrp": 3.0, "cp_lrp": 3.0, "lrp": 8.0, "transatt": 10.0}


def gradient_alone(source: Source, inputs: dict[str, Tensor]) -> None:
    """Gradient x input as one would call captum by hand."""
    from captum.attr import InputXGradient

    model = source.model
    embeddings = model.get_input_embeddings()(inputs["input_ids"]).detach().requires_grad_()
    held = {name: tensor for name, tensor in inputs.items() if name != "input_ids"}

    def probability(vectors: Tensor) -> Tensor:
        logits = model(inputs_embeds=vectors, use_cache=False, **held).logits
        return logits.softmax(-1)[:, 0]  # type: ignore[no-any-return]

    InputXGradient(probability).attribute(embeddings)


ALONE: dict[str, Callable[[Source, dict[str, Tensor]], None]] = {
    "gradient_x_input": gradient_alone,
    "integrated_gradients": captum_alone,
}


def seconds(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def in_turn(ours: Callable[[], Any], theirs: Callable[[], Any], repeats: int) -> float:
    """Median of (time of ours / mean time of theirs before and after it)."""
    seconds(ours)
    ratios, before = [], seconds(theirs)
    for _ in range(repeats):
        taken, after = seconds(ours), seconds(theirs)
        ratios.append(2 * taken / (before + after))
        before = after
    return statistics.median(ratios)


def rows(tokens: int, repeats: int, slow_repeats: int, methods: list[str]) -> list[str]:
    source = open_source(*build("bert"))
    words = text(tokens)
    inputs = encode(source, words).inputs

    def forward() -> None:
        with torch.no_grad():
            source.model(**inputs, return_dict=True)

    found = []
    for method in methods:
        many = slow_repeats if method == "integrated_gradients" else repeats

        def ours(method: str = method) -> None:
            assert explain(source, words, method).scores is not None

        beside = method in BESIDE
        theirs = (lambda m=method: ALONE[m](source, inputs)) if beside else forward
        ratio = in_turn(ours, theirs, many)
        most = BESIDE[method] if beside else PASSES[method]
        unit = "captum" if beside else "a forward pass"
        found.append(f"| `{method}` | {unit} | {ratio:.2f} | {most:g} |")
        print(found[-1], flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--slow-repeats", type=int, default=2, help="of integrated gradients")
    parser.add_argument("--methods", nargs="*", default=[*BESIDE, *PASSES])
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    options = parser.parse_args()
    found = rows(options.tokens, options.repeats, options.slow_repeats, options.methods)
    if not options.write:
        return
    told = f"{options.tokens} tokens, {torch.get_num_threads()} threads, torch {torch.__version__}"
    head = "| method | time, relative to | measured | to be at most |\n|---|---|---:|---:|\n"
    table = f"{BEGIN}\n\nBERT-base, {told}.\n\n{head}" + "\n".join(found) + f"\n\n{END}"
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + table + rest.partition(END)[2])


if __name__ == "__main__":
    main()
