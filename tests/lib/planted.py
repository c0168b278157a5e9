"""A classifier whose right answer is known: a bag of words dressed as a transformer."""

from __future__ import annotations

from typing import Any

import torch

from tests.lib import tiny

GOOD, BAD = ("good", "deep"), ("bad", "boring")
WIDTH = 8


def model() -> Any:
    """One layer of uniform attention that carries the words' own evidence to [CLS].

    "good" and "deep" are evidence for class 1, "bad" and "boring" for class 0, every other
    word is exactly nothing: its embedding is zero and stays zero through the norms.
    """
    made = tiny.model(
        "bert",
        num_labels=2,
        hidden_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=WIDTH,
        hidden_act="relu",
    )
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            is_norm_weight = "LayerNorm.weight" in name
            parameter.fill_(1.0 if is_norm_weight else 0.0)
        words = made.bert.embeddings.word_embeddings.weight
        for word in GOOD:
            words[tiny.VOCAB[word], 0] = 1.0
        for word in BAD:
            words[tiny.VOCAB[word], 1] = 1.0
        words[tiny.VOCAB["[CLS]"], 2] = 0.2
        block = made.bert.encoder.layer[0]
        block.attention.self.value.weight.copy_(torch.eye(WIDTH))
        block.attention.output.dense.weight.copy_(4 * torch.eye(WIDTH))
        made.bert.pooler.dense.weight.copy_(torch.eye(WIDTH))
        made.classifier.weight[0, 1] = 4.0
        made.classifier.weight[1, 0] = 4.0
    return made.eval()
