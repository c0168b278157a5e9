"""The embedded demo model: offline, small, and right about plain negation."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"  # before transformers is imported

import torch
from safetensors.torch import load_file
from transformers import AutoTokenizer, BertForSequenceClassification

from mixwidget import demo

ROOT = Path(__file__).resolve().parents[3]
SHARED = Path(os.environ.get("MIXWIDGET_SHARED") or ROOT.parent / "shared")
DEV = SHARED / "data" / "sst2_dev.tsv"


def read(path: Path) -> tuple[list[str], list[int]]:
    with path.open(encoding="utf-8", newline="") as f:
        rows = list(csv.reader(f, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    return [row[0] for row in rows], [int(row[1]) for row in rows]


@pytest.fixture(scope="module")
def loaded():
    return demo.load()


def predict(loaded, texts: list[str]) -> list[int]:
    model, tokenizer = loaded
    out: list[int] = []
    with torch.no_grad():
        for i in range(0, len(texts), 64):
            batch = tokenizer(texts[i : i + 64], padding=True, truncation=True, return_tensors="pt")
            out += model(**batch).logits.argmax(-1).tolist()
    return out


def test_is_bert_in_float32_and_eval_mode(loaded):
    model, tokenizer = loaded
    assert isinstance(model, BertForSequenceClassification)
    assert model.config.model_type == "bert"
    assert model.config.dtype == torch.float32
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert {p.device.type for p in model.parameters()} == {"cpu"}
    assert not model.training
    assert all(torch.isfinite(p).all() for p in model.parameters())
    assert tokenizer.is_fast
    assert len(tokenizer) == model.config.vocab_size
    assert tokenizer.model_max_length == model.config.max_position_embeddings


def test_labels(loaded):
    assert loaded[0].config.id2label == {0: "negative", 1: "positive"}
    assert loaded[0].config.label2id == {"negative": 0, "positive": 1}


def test_weights_on_disk_are_fp16_and_all_is_small():
    weights = load_file(demo.FOLDER / "model.safetensors")
    assert {w.dtype for w in weights.values()} == {torch.float16}
    folder = demo.FOLDER.parent
    files = [f for f in folder.rglob("*") if f.is_file() and "__pycache__" not in f.parts]
    assert sum(f.stat().st_size for f in files) <= 6_000_000


def test_loads_quickly(loaded):
    began = time.perf_counter()
    demo.load()
    assert time.perf_counter() - began < 1


def test_load_leaves_random_numbers_alone(loaded):
    state = torch.get_rng_state()
    demo.load()
    assert torch.equal(state, torch.get_rng_state())


def test_models_are_independent(loaded):
    other, _ = demo.load()
    with torch.no_grad():
        other.classifier.bias.add_(1)
    assert not torch.equal(other.classifier.bias, loaded[0].classifier.bias)


def test_tokenizer_is_found_by_the_models_name(loaded):
    model, tokenizer = loaded
    found = AutoTokenizer.from_pretrained(model.name_or_path)
    text = "It isn't dull, or predictable: naïve & zzyzx!"
    assert found(text, "and a pair").data == tokenizer(text, "and a pair").data
    assert set(tokenizer(text)) == {"input_ids", "token_type_ids", "attention_mask"}


def test_tokenizer_pairs_and_words(loaded):
    _, tokenizer = loaded
    pair = tokenizer("good", "bad")
    assert tokenizer.convert_ids_to_tokens(pair.input_ids) == [
        "[CLS]", "good", "[SEP]", "bad", "[SEP]",
    ]  # fmt: skip
    assert pair.token_type_ids == [0, 0, 0, 1, 1]
    # Any ASCII word is spelled out rather than lost.
    assert tokenizer.unk_token_id not in tokenizer("Zzyzxq, 42%!").input_ids


def test_right_about_the_sentence_and_negations(loaded):
    texts, labels = read(ROOT / "tools" / "negations.tsv")
    assert len(texts) == 10
    right = [a == b for a, b in zip(predict(loaded, texts), labels, strict=True)]
    assert sum(right) >= 8, [t for t, ok in zip(texts, right, strict=True) if not ok]
    assert predict(loaded, [demo.SENTENCE]) == [1]


@pytest.mark.skipif(
    not DEV.is_file(), reason="no SST-2: set MIXWIDGET_SHARED to a folder with data/sst2_dev.tsv"
)
def test_sst2_dev_accuracy(loaded):
    texts, labels = read(DEV)
    right = sum(a == b for a, b in zip(predict(loaded, texts), labels, strict=True))
    assert right / len(texts) >= 0.84


@pytest.mark.parametrize("module", ["torch", "transformers"])
def test_import_is_light(module):
    code = f"import sys, mixwidget.demo as d; d.SENTENCE; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_loads_without_any_network():
    code = (
        "import socket\n"
        "def no(*a, **k): raise OSError('network used')\n"
        "socket.socket.connect = socket.create_connection = socket.getaddrinfo = no\n"
        "from mixwidget import demo\n"
        "model, tokenizer = demo.load()\n"
        "model(**tokenizer(demo.SENTENCE, return_tensors='pt'))\n"
    )
    env = {k: v for k, v in os.environ.items() if k != "HF_HUB_OFFLINE"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
