"""Questions with known answers, and small models that learn to answer them: both made here.

python -m benchmarks.questions TEACHER OUT [--builds bert roberta gpt2] [--seed 0]

A context says of some people where they live, what they do, like and own; a question asks one of
these things of one of them. Written are OUT/questions.jsonl (held out: other draws than those that
were learnt from) and OUT/build, a model that begins with embeddings and layers of TEACHER, a BERT
(`benchmarks.distil`). `benchmarks.tables.answers` measures where the answer's tokens are ranked.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from benchmarks.distil import build, save_tokenizer

NAMES = [
    "anna",
    "ben",
    "clara",
    "david",
    "emma",
    "frank",
    "grace",
    "henry",
    "iris",
    "jack",
    "kate",
    "leo",
    "maria",
    "nora",
    "oscar",
    "paula",
    "quinn",
    "rosa",
    "sam",
    "tina",
]
PLACES = [
    "paris",
    "london",
    "rome",
    "madrid",
    "vienna",
    "prague",
    "lisbon",
    "dublin",
    "oslo",
    "athens",
    "cairo",
    "tokyo",
]
JOBS = [
    "baker",
    "doctor",
    "teacher",
    "farmer",
    "painter",
    "singer",
    "driver",
    "nurse",
    "judge",
    "sailor",
    "pilot",
    "tailor",
]
KINDS = ["red", "green", "sweet", "fresh", "cold", "hot", "sour", "dried"]
FOODS = ["apples", "pears", "grapes", "plums", "beans", "soup", "bread", "cheese", "rice", "tea"]
LOOKS = ["old", "small", "big", "young", "lazy", "quick"]
COLOURS = ["black", "white", "grey", "brown"]
PETS = ["cat", "dog", "horse", "goat", "parrot", "rabbit"]
# What a sentence says and which question asks for what stands in [ ].
FACTS = (
    ("{name} lives in [{place}] .", "where does {name} live ?"),
    ("{name} works as a [{job}] .", "what is the job of {name} ?"),
    ("{name} likes to eat [{kind} {food}] .", "what does {name} like ?"),
    ("{name} has [a {look} {colour} {pet}] at home .", "which animal does {name} have ?"),
)
BATCH = 16
RATE = 3e-4


def question(rng: random.Random, facts: int) -> dict[str, Any]:
    """A question with its context, and where in that the answer begins."""
    pairs = [(name, kind) for name in NAMES for kind in range(len(FACTS))]
    people = rng.sample(NAMES, max(2, facts // 2))  # several things about each of some
    drawn = rng.sample([one for one in pairs if one[0] in people], facts)
    asked, context, answer, start = rng.randrange(facts), "", "", 0
    for number, (name, kind) in enumerate(drawn):
        filled = FACTS[kind][0].format(
            name=name,
            place=rng.choice(PLACES),
            job=rng.choice(JOBS),
            kind=rng.choice(KINDS),
            food=rng.choice(FOODS),
            look=rng.choice(LOOKS),
            colour=rng.choice(COLOURS),
            pet=rng.choice(PETS),
        )
        before, rest = filled.split("[")
        said, after = rest.split("]")
        context += " " * bool(context)
        if number == asked:
            start, answer = len(context) + len(before), said
        context += before + said + after
    name, kind = drawn[asked]
    return {
        "question": FACTS[kind][1].format(name=name),
        "context": context,
        "answers": {"text": [answer], "answer_start": [start]},
    }


def batch(rng: random.Random, tokenizer: Any, facts: int) -> tuple[dict[str, Tensor], Tensor]:
    """Inputs, and first and last token of the answers, [batch, 2]."""
    rows = [question(rng, facts) for _ in range(BATCH)]
    made = tokenizer(
        [row["question"] for row in rows],
        [row["context"] for row in rows],
        padding=True,
        return_tensors="pt",
    )
    spans = []
    for number, row in enumerate(rows):
        start = row["answers"]["answer_start"][0]
        end = start + len(row["answers"]["text"][0])
        spans.append([made.char_to_token(number, at, sequence_index=1) for at in (start, end - 1)])
    kept = ("input_ids", "attention_mask", "token_type_ids")
    return {name: made[name] for name in kept if name in made}, torch.tensor(spans)


def train(model: Any, tokenizer: Any, seed: int, steps: int, facts: int) -> None:
    """Few facts first, then more; the word embeddings stay as they are."""
    rng, began, total = random.Random(seed), time.time(), 0.0
    model.get_input_embeddings().weight.requires_grad_(False)
    own = [one for one in model.parameters() if one.requires_grad]
    optimiser = torch.optim.AdamW(own, lr=RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, steps + 1, pct_start=0.1)
    names = set(tokenizer.model_input_names)
    model.train()
    for step in range(1, steps + 1):
        some = 3 + round((facts - 3) * min(1.0, step / steps * 1.3))
        inputs, spans = batch(rng, tokenizer, some)
        out = model(**{name: one for name, one in inputs.items() if name in names})
        ends = (out.start_logits, spans[:, 0]), (out.end_logits, spans[:, 1])
        loss = sum(nn.functional.cross_entropy(logits, place) for logits, place in ends)
        loss.backward()
        nn.utils.clip_grad_norm_(own, 1.0)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad()
        total += loss.item()
        if step % 25 == 0:
            print(f"  step {step}/{steps}, loss {total / 25:.3f}, ", end="")
            print(f"{time.time() - began:.0f} s", flush=True)
            total = 0.0
    model.eval()


@torch.no_grad()
def exact(model: Any, tokenizer: Any, rng: random.Random, facts: int, batches: int = 6) -> float:
    """Share of questions whose answer's first and last token are found."""
    names, right = set(tokenizer.model_input_names), []
    for _ in range(batches):
        inputs, spans = batch(rng, tokenizer, facts)
        out = model(**{name: one for name, one in inputs.items() if name in names})
        found = torch.stack([out.start_logits.argmax(-1), out.end_logits.argmax(-1)], 1)
        right.append((found == spans).all(1).float())
    return float(torch.cat(right).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("teacher", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument(
        "--builds", nargs="+", choices=("bert", "roberta", "distilbert", "gpt2"), default=["bert"]
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--facts", type=int, default=9, help="sentences of a context")
    parser.add_argument("--questions", type=int, default=300)
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.out.mkdir(parents=True, exist_ok=True)
    held = random.Random(f"held out {given.seed}")
    rows = [json.dumps(question(held, given.facts)) for _ in range(given.questions)]
    (given.out / "questions.jsonl").write_text("\n".join(rows) + "\n")
    teacher = transformers.AutoModelForMaskedLM.from_pretrained(given.teacher, dtype=torch.float32)
    for name in given.builds:
        began = time.time()
        torch.manual_seed(given.seed)
        tokenizer = transformers.AutoTokenizer.from_pretrained(given.teacher)
        segments = ["token_type_ids"] if name == "bert" else []
        tokenizer.model_input_names = ["input_ids", "attention_mask", *segments]
        model = build(name, teacher, "QuestionAnswering")
        train(model, tokenizer, given.seed, given.steps, given.facts)
        found = exact(model, tokenizer, random.Random(f"checked {given.seed}"), given.facts)
        model.half().save_pretrained(given.out / name)
        save_tokenizer(tokenizer, given.out / name, tokenizer.model_input_names)
        print(f"{name}: {found:.3f} answered exactly, {time.time() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
