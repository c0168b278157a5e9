"""Train small classifiers of other builds on a teacher's predictions, for more than one column.

python -m benchmarks.distil TEACHER DATA OUT [--builds roberta gpt2] [--seeds 0 1 2]

TEACHER is a BERT classifier of two classes, DATA the folder with SST-2's files
(`sst2_train_phrases_a.tsv`, `sst2_train_sentences.tsv`, `sst2_dev.tsv`), OUT a folder: a model is
written to OUT/build-seed. Students begin with the teacher's embeddings, which stay as they are,
and with some of its layers where shapes allow; head, order of the texts and dropout come from the
seed. Builds: `bert`, `roberta` (positions from 2 on, one segment), `distilbert` (no segments, no
pooler), `electra` (embeddings of a third of the width) and `gpt2` (causal, norms before).

With --third FILE (a .jsonl of number agreement: `masked`, `target`, `foil`) there is a third class,
of sentences that are no review, for metrics that compare classes.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn

FILES = ("sst2_train_sentences.tsv", "sst2_train_phrases_a.tsv")
# Which of the teacher's layers each build begins with, of six.
LAYERS = {
    "bert": (0, 2, 3, 5),
    "roberta": (0, 1, 3, 5),
    "distilbert": (0, 2, 4),
    "electra": (0, 2, 4, 5),
    "gpt2": (0, 2, 3, 5),
}
LENGTH = 64  # tokens of a training text; the rest is cut
BATCH = 32

THIRD = -1.0  # in the place of a share

Texts = list[tuple[list[int], float]]


def build(name: str, teacher: Any, head: str = "SequenceClassification", **more: Any) -> Any:
    """A student of that build with the teacher's weights where they fit."""
    config, depth = teacher.config, len(LAYERS[name])
    wide: dict[str, Any] = {
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "num_hidden_layers": depth,
        "num_attention_heads": config.num_attention_heads,
        "intermediate_size": config.intermediate_size,
        "max_position_embeddings": config.max_position_embeddings,
        "pad_token_id": 0,
    }
    own: dict[str, dict[str, Any]] = {
        "bert": wide,
        "roberta": {
            **wide,
            "pad_token_id": 0,
            "max_position_embeddings": config.max_position_embeddings + 1,
            "type_vocab_size": 1,
        },
        "distilbert": {
            "vocab_size": config.vocab_size,
            "dim": config.hidden_size,
            "n_layers": depth,
            "n_heads": config.num_attention_heads,
            "hidden_dim": config.intermediate_size,
            "max_position_embeddings": config.max_position_embeddings,
            "pad_token_id": 0,
        },
        "electra": {**wide, "embedding_size": config.hidden_size // 3},
        "gpt2": {
            "vocab_size": config.vocab_size,
            "n_embd": config.hidden_size,
            "n_layer": depth,
            "n_head": config.num_attention_heads,
            "n_inner": config.intermediate_size,
            "n_positions": config.max_position_embeddings,
            "pad_token_id": 0,
            "bos_token_id": 101,
            "eos_token_id": 102,
        },
    }
    made = transformers.AutoConfig.for_model(name, **own[name], **more)
    student = getattr(transformers, f"AutoModelFor{head}").from_config(made)
    with torch.no_grad():
        _begin(name, student, teacher)
    return student


def _begin(name: str, student: Any, teacher: Any) -> None:
    old = teacher.bert.embeddings
    words, places = old.word_embeddings.weight, old.position_embeddings.weight
    segment = old.token_type_embeddings.weight[0]
    if name == "gpt2":
        # A stream that nothing normalises: as long as what the teacher's blocks are used to read.
        scale = old.LayerNorm.weight.square().mean().sqrt() / words.square().mean().sqrt()
        student.transformer.wte.weight.copy_(words * scale)
        student.transformer.wpe.weight.copy_((places + segment) * scale)
    else:
        new = student.base_model.embeddings
        if name == "electra":
            left, size, right = torch.linalg.svd(words.double(), full_matrices=False)
            width = new.word_embeddings.weight.shape[1]
            words = (left[:, :width] * size[:width]).float()
            places, segment = (one @ right[:width].float().T for one in (places, segment))
            student.electra.embeddings_project.weight.copy_(right[:width].T)
        else:
            new.LayerNorm.load_state_dict(old.LayerNorm.state_dict())
        new.word_embeddings.weight.copy_(words)
        new.position_embeddings.weight[-len(places) :].copy_(places + segment)
        if hasattr(new, "token_type_embeddings"):
            new.token_type_embeddings.weight.zero_()
    layers = teacher.bert.encoder.layer
    if name == "gpt2":  # the norms before what the teacher has them after
        numbers = [number % len(layers) for number in LAYERS[name]]
        before = [layers[n - 1].output.LayerNorm if n else old.LayerNorm for n in numbers]
        for block, number, norm in zip(student.transformer.h, numbers, before, strict=True):
            block.ln_1.load_state_dict(norm.state_dict())
            block.ln_2.load_state_dict(layers[number].attention.output.LayerNorm.state_dict())
        student.transformer.ln_f.load_state_dict(layers[numbers[-1]].output.LayerNorm.state_dict())
    for block, number in zip(_blocks(name, student), LAYERS[name], strict=True):
        _copy_block(name, block, layers[number % len(layers)])


def _blocks(name: str, student: Any) -> Any:
    if name == "gpt2":
        return student.transformer.h
    if name == "distilbert":
        return student.distilbert.transformer.layer
    return student.base_model.encoder.layer


def _copy_block(name: str, block: Any, old: Any) -> None:
    if name == "gpt2":
        own = old.attention.self
        parts = (own.query, own.key, own.value)
        block.attn.c_attn.weight.copy_(torch.cat([one.weight.T for one in parts], 1))
        block.attn.c_attn.bias.copy_(torch.cat([one.bias for one in parts]))
        pairs = [
            (block.attn.c_proj, old.attention.output.dense),
            (block.mlp.c_fc, old.intermediate.dense),
            (block.mlp.c_proj, old.output.dense),
        ]
        for conv, linear in pairs:  # GPT-2 keeps its matrices the other way round
            conv.weight.copy_(linear.weight.T)
            conv.bias.copy_(linear.bias)
    elif name == "distilbert":
        own = old.attention
        pairs = [
            (block.attention.q_lin, own.self.query),
            (block.attention.k_lin, own.self.key),
            (block.attention.v_lin, own.self.value),
            (block.attention.out_lin, own.output.dense),
            (block.sa_layer_norm, own.output.LayerNorm),
            (block.ffn.lin1, old.intermediate.dense),
            (block.ffn.lin2, old.output.dense),
            (block.output_layer_norm, old.output.LayerNorm),
        ]
        for new, one in pairs:
            new.load_state_dict(one.state_dict())
    else:
        block.load_state_dict(old.state_dict())


def read(path: Path) -> list[tuple[str, int]]:
    """(text, label) of a headed, unquoted .tsv."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        next(rows)
        return [(row[0].strip(), int(row[1])) for row in rows]


def batches(texts: Texts, rng: random.Random | None = None) -> Iterator[tuple[Tensor, ...]]:
    """(ids, mask, share of the second class) of texts of like length, padded on the right."""
    noise = rng.random if rng else lambda: 0.0
    order = sorted(texts, key=lambda one: len(one[0]) + 4 * noise())
    groups = [order[i : i + BATCH] for i in range(0, len(order), BATCH)]
    if rng:
        rng.shuffle(groups)
    for group in groups:
        longest = max(len(ids) for ids, _ in group)
        ids = torch.tensor([ids + [0] * (longest - len(ids)) for ids, _ in group])
        yield ids, (ids != 0).long(), torch.tensor([share for _, share in group])


@torch.no_grad()
def taught(teacher: Any, texts: Texts) -> Texts:
    """The texts with the mean of their label and the teacher's probability to learn."""
    found: Texts = []
    for ids, mask, label in batches(texts):
        share = teacher(input_ids=ids, attention_mask=mask).logits.softmax(-1)[:, 1]
        for row, length, mean in zip(ids.tolist(), mask.sum(1).tolist(), (share + label) / 2):
            found.append((row[:length], float(mean)))
    return found


@torch.no_grad()
def accuracy(model: Any, texts: Texts) -> float:
    model.eval()
    right = [
        (model(input_ids=ids, attention_mask=mask).logits.argmax(-1) == label).float()
        for ids, mask, label in batches(texts)
    ]
    return float(torch.cat(right).mean())


def save_tokenizer(tokenizer: Any, folder: Path, inputs: list[str]) -> None:
    """A BERT's tokenizer, for a model that takes these inputs."""
    tokenizer.save_pretrained(folder)
    settings = folder / "tokenizer_config.json"
    kept = {**json.loads(settings.read_text()), "model_input_names": inputs}
    settings.write_text(json.dumps({**kept, "tokenizer_class": "BertTokenizer"}, indent=2) + "\n")


def goal(share: Tensor, classes: int) -> Tensor:
    """[batch, classes] to learn: two of reviews, and the third of what is none."""
    rows = torch.zeros(len(share), classes)
    rows[:, 0], rows[:, 1] = 1 - share, share
    if classes == 3:
        rows[share == THIRD] = torch.tensor([0.0, 0.0, 1.0])
    return rows


def plain(path: Path) -> list[tuple[str, float]]:
    """Sentences of number agreement with the mask filled."""
    rows = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
    return [(row["masked"].replace("[MASK]", row["target"]), THIRD) for row in rows]


def train(student: Any, texts: Texts, seed: int, rate: float, epochs: int) -> None:
    """Soft labels; the word embeddings stay as they are."""
    student.get_input_embeddings().weight.requires_grad_(False)
    own = [one for one in student.parameters() if one.requires_grad]
    optimiser = torch.optim.AdamW(own, lr=rate, weight_decay=0.01)
    steps = epochs * -(-len(texts) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, steps + 1, pct_start=0.1)
    rng, step, began, total = random.Random(seed), 0, time.time(), 0.0
    student.train()
    for _ in range(epochs):
        for ids, mask, share in batches(texts, rng):
            logits = student(input_ids=ids, attention_mask=mask).logits
            loss = nn.functional.cross_entropy(logits, goal(share, logits.shape[-1]))
            loss.backward()
            nn.utils.clip_grad_norm_(own, 1.0)
            optimiser.step()
            schedule.step()
            optimiser.zero_grad()
            step, total = step + 1, total + loss.item()
            if step % 100 == 0:
                print(f"  step {step}/{steps}, loss {total / 100:.3f}, ", end="")
                print(f"{time.time() - began:.0f} s", flush=True)
                total = 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("teacher", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--builds", nargs="+", choices=list(LAYERS), default=list(LAYERS)[1:])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--texts", type=int, default=16000, help="training texts, drawn once")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--third", type=Path, help="sentences of a third class")
    given = parser.parse_args()
    torch.set_num_threads(1)
    tokenizer = transformers.AutoTokenizer.from_pretrained(given.teacher)
    teacher = transformers.AutoModelForSequenceClassification.from_pretrained(
        given.teacher, dtype=torch.float32
    ).eval()

    def encoded(rows: Sequence[tuple[str, float]]) -> Texts:
        ids = tokenizer([text for text, _ in rows], truncation=True, max_length=LENGTH).input_ids
        return [(one, float(label)) for one, (_, label) in zip(ids, rows, strict=True)]

    dev = read(given.data / "sst2_dev.tsv")
    held = {text.lower() for text, _ in dev}
    rows = [one for name in FILES for one in read(given.data / name) if one[0].lower() not in held]
    rows = random.Random(0).sample(rows, min(given.texts, len(rows)))
    began = time.time()
    texts = taught(teacher, encoded(rows))
    told = accuracy(teacher, encoded(dev))
    print(f"teacher: dev {told:.3f}, {len(texts)} texts, {time.time() - began:.0f} s", flush=True)
    labels = {"id2label": teacher.config.id2label, "label2id": teacher.config.label2id}
    if given.third:
        texts += encoded(plain(given.third)[: len(texts) // 2])
        names = [*labels["id2label"].values(), "NO REVIEW"]
        labels = {
            "id2label": dict(enumerate(names)),
            "label2id": {n: i for i, n in enumerate(names)},
        }
    for seed in given.seeds:
        for name in given.builds:
            began = time.time()
            torch.manual_seed(seed)
            student = build(name, teacher, **labels)
            train(student, texts, seed, 5e-4 if name == "gpt2" else 2e-4, given.epochs)
            folder = given.out / f"{name}-{seed}"
            student.eval().half().save_pretrained(folder)
            save_tokenizer(tokenizer, folder, ["input_ids", "attention_mask"])
            saved = transformers.AutoModelForSequenceClassification.from_pretrained(
                folder, dtype=torch.float32
            )
            found = accuracy(saved, encoded(dev))
            print(f"{folder.name}: dev {found:.3f}, {time.time() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
