"""Pieces as a reader would write them, and strings as they would follow a text."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from mixwidget import explain
from mixwidget.models.readable import readable, readable_piece
from mixwidget.models.spelling import following, spellings
from tests.lib import tiny


def byte_tokenizer(*words: str) -> Any:
    """A byte-level vocabulary: every byte, and some words with the space before them."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {sign: i for i, sign in enumerate(["<|end|>", *alphabet])}
    merges = []
    for word in words:
        piece = word.replace(" ", "Ġ")
        for size in range(2, len(piece) + 1):
            if piece[:size] not in vocab:
                vocab[piece[:size]] = len(vocab)
                merges.append((piece[: size - 1], piece[size - 1]))
    inner = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token="<|end|>", pad_token="<|end|>"
    )


def read(tokenizer: Any, text: str) -> list[str]:
    pieces = tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"])
    return readable(tokenizer, pieces, [piece == "<|end|>" for piece in pieces])


def test_bytes_are_put_together_to_characters() -> None:
    tokenizer = byte_tokenizer(" the")
    assert read(tokenizer, "é 日\nx the") == ["é", "…", " ", "日", "…", "…", "⏎", "x", "the"]
    assert read(tokenizer, "é<|end|>é") == ["é", "…", "<|end|>", "é", "…"]


def test_byte_fallback_of_sentencepiece() -> None:
    pieces = ["▁a", "<0xE6>", "<0x97>", "<0xA5>", "▁▁b", "<0x0A>"]
    assert readable(None, pieces, [False] * 6) == ["a", "日", "…", "…", " b", "⏎"]


def test_one_piece_alone() -> None:
    tokenizer = byte_tokenizer(" the")
    ids = tokenizer.convert_tokens_to_ids
    assert readable_piece(tokenizer, ids("Ġthe")) == "the"
    assert readable_piece(tokenizer, ids("Ċ")) == "⏎"
    assert readable_piece(tokenizer, ids("Ã")) == "<0xC3>"


def test_a_string_may_follow_with_a_space_and_without() -> None:
    tokenizer = byte_tokenizer(" the", "the")
    assert [way.text for way in spellings(tokenizer, "the")] == [" the", "the"]
    for literal in (" the", "\n", "Ġthe", "<|end|>"):
        ways = spellings(tokenizer, literal)
        assert [way.text for way in ways] == [literal]
        assert len(ways[0].ids) == 1
    assert following(tokenizer, "\n") == tuple(tokenizer("\n")["input_ids"])


@pytest.fixture(scope="module")
def asked() -> Any:
    """A model of a byte vocabulary, and how likely it finds " the" and "the"."""
    tokenizer = byte_tokenizer(" the", "the")
    model = tiny.model("gpt2", "CausalLM", vocab_size=len(tokenizer))
    return model, tokenizer


def test_the_likelier_spelling_is_explained(asked: Any) -> None:
    model, tokenizer = asked
    ids = tokenizer("so")
    logits = model(**tokenizer("so", return_tensors="pt")).logits[0, -1].detach()
    assert ids["input_ids"]
    spaced, joined = (tokenizer.convert_tokens_to_ids(piece) for piece in ("Ġthe", "the"))
    for raised, text in ((spaced, " the"), (joined, "the")):
        bias = 10.0 - float(logits[raised])

        def lean(module: Any, args: Any, made: Any, raised: int = raised, by: float = bias) -> Any:
            made = made.clone()
            made[..., raised] += by
            return made

        handle = model.lm_head.register_forward_hook(lean)
        try:
            with pytest.warns(UserWarning, match="can follow here") as seen:
                e = explain(model, "so", "gradient", tokenizer=tokenizer, target="the")
        finally:
            handle.remove()
        assert e.target.index == raised
        assert e.target.label == "the"
        assert e.info["target_spelling"] == text
        assert seen[0].filename == __file__


def test_literal_targets_warn_of_nothing(asked: Any) -> None:
    model, tokenizer = asked
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        e = explain(model, "so", "gradient", tokenizer=tokenizer, target=" the")
    assert e.target.index == tokenizer.convert_tokens_to_ids("Ġthe")
