"""What is measured: models of the usual sizes with random weights, and texts of a given length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

WORDS = 97
FULL_LAYERS = 12


@dataclass(frozen=True)
class Size:
    """A model size with the text lengths it is measured at."""

    name: str
    family: str
    tokens: tuple[int, ...]


SIZES = [Size("BERT-base", "bert", (32, 128, 512)), Size("GPT-2", "gpt2", (128, 512))]


def build(family: str, layers: int = FULL_LAYERS) -> tuple[Any, Any]:
    """(classifier, tokenizer) of BERT-base or GPT-2 size, random weights, eager attention."""
    torch.manual_seed(0)
    count = {"gpt2": "n_layer", "bert": "num_hidden_layers"}[family]
    config = transformers.AutoConfig.for_model(
        family,
        num_labels=2,
        pad_token_id=0,
        attn_implementation="eager",
        **{count: layers},
    )
    model = transformers.AutoModelForSequenceClassification.from_config(
        config, attn_implementation="eager"
    )
    return model.eval(), _tokenizer()


def _tokenizer() -> Any:
    """One token per word and nothing added, so that a text has as many tokens as words."""
    vocab = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, **{f"w{i}": i + 3 for i in range(WORDS)}}
    inner = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="[UNK]", pad_token="[PAD]", mask_token="[MASK]"
    )


def text(tokens: int) -> str:
    return " ".join(f"w{i * 31 % WORDS}" for i in range(tokens))
