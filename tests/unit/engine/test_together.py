"""Texts that run together equal the same texts alone, in every family."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from mixwidget import Explanation, Failure, explain
from mixwidget.errors import NumericsError
from mixwidget.methods import all_methods
from mixwidget.models import batch_tokens, open_source
from tests.lib import tiny

TEXTS = [
    "the film is not bad",
    "good",
    "a deep plot and thin acting",
    "bad " * 11 + "film",
    "we saw it",
]
HEADS = {
    "SequenceClassification": ["bert", "roberta", "albert", "modernbert", "deberta-v2"],
    "CausalLM": ["gpt2", "llama", "bloom", "opt", "gpt_neo", "falcon", "gemma2", "mistral"],
    "MaskedLM": ["mpnet"],
    "QuestionAnswering": ["bert"],
    "": ["electra"],
}
FAMILIES = [(family, head) for head, families in HEADS.items() for family in families]


def both(model: Any, method: str, texts: list[str] = TEXTS, **options: Any) -> list[Any]:
    """Pairs of explanations of the same text, one from many and one alone."""
    tokenizer = tiny.tokenizer()
    alone = [explain(model, text, method, tokenizer=tokenizer, **options) for text in texts]
    many = explain(model, texts, method, tokenizer=tokenizer, **options)
    return list(zip(many, alone, strict=True))


def same(one: Explanation, other: Explanation) -> None:
    for name in ("scores", "maps", "layer_scores"):
        made, true = getattr(one, name), getattr(other, name)
        assert (made is None) == (true is None)
        if made is not None:
            np.testing.assert_allclose(made, true, atol=1e-5 * max(1.0, np.abs(true).max()))
    assert one.tokens == other.tokens
    assert one.target == other.target
    assert one.focus == other.focus


@pytest.mark.parametrize(("family", "head"), FAMILIES)
def test_together_equals_alone(family: str, head: str) -> None:
    model = tiny.model(family, head)
    pairs = both(model, "alti")
    for one, other in pairs:
        same(one, other)
    assert sum("batch_tokens" in one.info for one, _ in pairs) >= len(TEXTS) - 1


OF_TEXTS = [entry for entry in all_methods() if "answer" not in entry.needs]


@pytest.mark.parametrize("entry", OF_TEXTS, ids=lambda entry: entry.id)
def test_every_method_together_equals_alone(entry: Any) -> None:
    known = {param.name for param in entry.params}
    short = {"steps": 4, "samples": 3, "max_passes": 40}
    options = {name: value for name, value in short.items() if name in known}
    for one, other in both(tiny.model("bert"), entry.id, TEXTS[:3], **options):
        same(one, other)


def test_pairs_and_targets_together() -> None:
    model, tokenizer = tiny.model("bert"), tiny.tokenizer()
    options = {"text_pairs": ["good", None, "a film", None, "bad"], "targets": [0, 1, 2, 0, 1]}
    many = explain(model, TEXTS, "attcat", tokenizer=tokenizer, **options)
    for place, one in enumerate(many):
        pair, target = options["text_pairs"][place], options["targets"][place]
        alone = explain(
            model, TEXTS[place], "attcat", tokenizer=tokenizer, text_pair=pair, target=target
        )
        same(one, alone)


def test_a_broken_text_breaks_itself_alone() -> None:
    model = tiny.model("bert")
    with torch.no_grad():
        model.bert.embeddings.word_embeddings.weight[tiny.VOCAB["plot"]] = float("nan")
    found = explain(model, TEXTS, "alti", tokenizer=tiny.tokenizer(), errors="row", target=0)
    assert [type(one) for one in found] == [
        Explanation, Explanation, Failure, Explanation, Explanation,
    ]  # fmt: skip
    assert isinstance(found[2].error, NumericsError)


def test_how_many_tokens_run_together(monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_source(tiny.model("bert"), tiny.tokenizer())
    assert batch_tokens(source, 12) == 2048
    monkeypatch.setattr("mixwidget.models.together.available_bytes", lambda device: 400_000)
    few = batch_tokens(source, 12)
    assert 12 <= few < 200
    monkeypatch.setattr("mixwidget.models.together.available_bytes", lambda device: 10)
    assert batch_tokens(source, 12) == 1
    found = explain(source, TEXTS, "alti")
    assert all("batch_tokens" not in e.info or e.info["batch_tokens"] == 1 for e in found)


def test_the_models_hooks_are_left_alone() -> None:
    model, seen = tiny.model("bert"), []
    model.bert.register_forward_hook(lambda *_: seen.append(1))
    explain(model, TEXTS, "raw_attention", tokenizer=tiny.tokenizer())
    assert len(model.bert._forward_hooks) == 1
    assert all(len(layer._forward_hooks) == 0 for layer in model.bert.encoder.layer)
