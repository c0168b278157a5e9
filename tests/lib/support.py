"""Which method runs on which family: tried on tiny models, and written down as a table.

python -m tests.lib.support          print the table as Markdown
python -m tests.lib.support --write  put it into docs/support.md
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.breadth import section
from mixwidget.engine import assemble, parts, prepare, start
from mixwidget.errors import UnsupportedMethodError
from mixwidget.methods.registry import all_methods
from tests.lib import tiny, wrapped
from tests.models.test_tape import UNKNOWN

PAGE = Path(__file__).parents[2] / "docs" / "support.md"
TEXT = "the film is not bad ."
NAMES = {
    "albert": "ALBERT",
    "bart": "BART",
    "bert": "BERT",
    "bloom": "BLOOM",
    "camembert": "CamemBERT",
    "deberta-v2": "DeBERTa-v2, v3",
    "distilbert": "DistilBERT",
    "electra": "ELECTRA",
    "falcon": "Falcon",
    "gemma": "Gemma",
    "gemma2": "Gemma 2",
    "gpt2": "GPT-2",
    "gpt_neo": "GPT-Neo",
    "gpt_neox": "GPT-NeoX, Pythia",
    "llama": "Llama",
    "marian": "Marian",
    "mistral": "Mistral",
    "modernbert": "ModernBERT",
    "mpnet": "MPNet",
    "opt": "OPT",
    "phi": "Phi",
    "phi3": "Phi-3",
    "qwen2": "Qwen2",
    "qwen3": "Qwen3",
    "roberta": "RoBERTa",
    "stablelm": "StableLM",
    "t5": "T5",
    "xlm-roberta": "XLM-R",
}


@cache
def tiny_case(family: str) -> Any:
    head, prefix = "SequenceClassification", None
    if family in CAUSAL:
        head = "CausalLM"
    elif family in tiny.ENCODER_DECODERS:
        head, prefix = "Seq2SeqLM", "a good film"
    model = tiny.model(family, head)
    return prepare(model, TEXT, tokenizer=tiny.tokenizer(), text_pair=prefix)


CAUSAL = {
    *["bloom", "falcon", "gemma", "gemma2", "gpt2", "gpt_neo", "gpt_neox", "llama", "mistral"],
    *["opt", "phi", "phi3", "qwen2", "qwen3", "stablelm"],
}


@cache
def attempt(method: str, family: str) -> Any:
    """The explanation, or the reason why the method refuses this family."""
    case = tiny_case(family)
    try:
        run = start(case, method)
        return assemble(run, list(parts(run)))
    except UnsupportedMethodError as refusal:
        # One note for many families, and for many methods.
        return str(refusal).replace(repr(family), "these").replace(method, "it", 1)


def table() -> str:
    """Markdown: a row for each family, a column for each method, notes for refusals."""
    methods = [entry.id for entry in all_methods()]
    notes: list[str] = []
    lines = []
    for family in sorted(NAMES, key=lambda name: NAMES[name].lower()):
        case = tiny_case(family)
        errors = [case.adds_up(layer) for layer in range(len(case.trace()))]
        row = [NAMES[family], "below 1e-6" if max(errors) < 1e-6 else f"{max(errors):.0e}"]
        refused: dict[str, list[str]] = {}
        for method in methods:
            outcome = attempt(method, family)
            if isinstance(outcome, str):
                refused.setdefault(outcome, []).append(method)
        without = []
        for reason, which in refused.items():
            if reason not in notes:
                notes.append(reason)
            number = notes.index(reason) + 1
            without.append(f"{', '.join(f'`{name}`' for name in which)} ({number})")
        row.append(f"all but {', '.join(without)}" if without else "all")
        lines.append("| " + " | ".join(row) + " |")
    head = [
        "# Supported models",
        "",
        "Made by `python -m tests.lib.support --write`: every method is run on a tiny random model",
        "of every family, with no bias or norm weight left at a trivial value. *Adds up* is the",
        "largest relative distance between the sum of the parts and what the model itself",
        "computed, in float32.",
        "",
        f"There are {len(methods)} methods: {', '.join(f'`{name}`' for name in methods)}.",
        "",
        "| family | adds up | methods |",
        "|---|---|---|",
    ]
    others = [
        "",
        "Models of other families are taken apart without a table: one pass is followed from each",
        "layer's input and attention to its output, and what is found must add up (see",
        "[Architecture](architecture.md)). Tried in the tests: "
        + ", ".join(f"`{name}`" for name in sorted(UNKNOWN))
        + ".",
    ]
    foot = ["", *[f"{i}. {reason}" for i, reason in enumerate(notes, 1)]] if notes else []
    odd = [
        "",
        "## Wrapped and odd models",
        "",
        "Every pass is made through a shadow of the model (see [Architecture](architecture.md)),",
        "so a model is explained as it is, however it is wrapped. Each of these is compared with",
        "the plain model that computes the same, by "
        + ", ".join(f"`{name}`" for name in wrapped.METHODS)
        + ", relative to",
        "the largest number; and is afterwards what it was before.",
        "",
        *wrapped.table(),
    ]
    return "\n".join([*head, *lines, *foot, *others, "", *section(), *odd]) + "\n"


if __name__ == "__main__":
    text = table()
    if "--write" in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
