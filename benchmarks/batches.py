"""Many texts: time of `explain` over that of a batched forward pass, in one run.

python -m benchmarks.batches                    print the table
python -m benchmarks.batches --methods alti     of some methods

48 sentences of 8 to 40 tokens, a classifier of BERT-base size with random weights. The forward pass
runs them sorted by length, in padded batches of the same number of tokens as `explain` takes. Runs
are interleaved; the table gives the median of the ratios. What is explained is the whole: tokens,
recorded pass, the proof that the parts add up, the method, its rollout.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.cases import WORDS, build
from mixwidget import explain
from mixwidget.methods import get_method
from mixwidget.models import Together, batch_tokens, batches, encode, open_source

SENTENCES = 48
# What each may take, in forward passes.
AT_MOST = {
    "raw_attention": 1.7,
    "globenc": 2.2,
    "alti": 2.5,
    "gradient_x_input": 3.5,
    "attcat": 3.8,
    "attn_lrp": 4.2,
}


def sentences(count: int) -> list[str]:
    """Of unlike lengths, in no order."""
    chance = random.Random(0)
    lengths = [8 + 32 * i // count for i in range(count)]
    chance.shuffle(lengths)
    return [" ".join(f"w{chance.randrange(WORDS)}" for _ in range(n)) for n in lengths]


def forward(source: Any, texts: list[str]) -> Callable[[], None]:
    """The model over all texts, batched, without anything of ours."""
    encodings = [encode(source, text) for text in texts]
    tokens = batch_tokens(source, max(len(one.tokens) for one in encodings))
    held = [
        Together(source, [encodings[row] for row in rows]).inputs()
        for rows in batches(encodings, tokens)
    ]

    def run() -> None:
        with torch.no_grad():
            for inputs in held:
                source.model(**inputs, return_dict=True)

    return run


def timed(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="*", default=list(AT_MOST))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--layers", type=int, default=12)
    options = parser.parse_args(arguments)
    source, texts = open_source(*build("bert", options.layers)), sentences(SENTENCES)
    plain = forward(source, texts)
    print("| method | time / forward | at most |\n|---|---:|---:|", flush=True)
    for id in options.methods:
        get_method(id)
        explain(source, texts[:4], id)  # the model is proved and folded once
        ratios = []
        before = timed(plain)
        for _ in range(options.repeats):
            taken = timed(lambda id=id: [e.scores for e in explain(source, texts, id)])
            after = timed(plain)
            ratios.append(2 * taken / (before + after))
            before = after
        print(f"| `{id}` | {statistics.median(ratios):.2f} | {AT_MOST.get(id, '')} |", flush=True)


if __name__ == "__main__":
    main()
