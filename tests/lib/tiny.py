"""Tiny random models of each family, with no weight left at a trivial value, and a tokenizer."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from packaging.version import Version
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors

WORDS = [
    *["the", "a", "film", "is", "not", "bad", "good", "never", "boring", "deep", "and", "plot"],
    *["thin", "but", "acting", "it", "was", "we", "saw"],
]
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCAB = {word: i for i, word in enumerate([*SPECIALS, *WORDS, "##ly", "##s", ".", ","])}

SMALL = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
COMMON = {"vocab_size": len(VOCAB), "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}

GROUPED = {
    **SMALL,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
}

CONFIGS: dict[str, dict[str, Any]] = {
    "bert": {**SMALL, "intermediate_size": 48, "max_position_embeddings": 64},
    "roberta": {**SMALL, "intermediate_size": 48, "max_position_embeddings": 66},
    "electra": {
        **SMALL,
        "intermediate_size": 48,
        "embedding_size": 16,
        "max_position_embeddings": 64,
    },
    "distilbert": {
        "dim": 32,
        "n_layers": 3,
        "n_heads": 4,
        "hidden_dim": 48,
        "max_position_embeddings": 64,
    },
    "xlm-roberta": {**SMALL, "intermediate_size": 48, "max_position_embeddings": 66},
    "camembert": {**SMALL, "intermediate_size": 48, "max_position_embeddings": 66},
    "albert": {
        **SMALL,
        "intermediate_size": 48,
        "embedding_size": 16,
        "max_position_embeddings": 64,
        "num_hidden_groups": 2,
    },
    "modernbert": {
        **SMALL,
        "intermediate_size": 48,
        "max_position_embeddings": 64,
        "local_attention": 4,
        "cls_token_id": 2,
        "sep_token_id": 3,
    },
    "mpnet": {**SMALL, "intermediate_size": 48, "max_position_embeddings": 66},
    "deberta-v2": {
        **SMALL,
        "intermediate_size": 48,
        "max_position_embeddings": 64,
        "relative_attention": True,
        "pos_att_type": ["c2p", "p2c"],
        "position_buckets": 8,
    },
    "gpt_neo": {
        "hidden_size": 32,
        "num_layers": 3,
        "num_heads": 4,
        "attention_types": [[["global", "local", "global"], 1]],
        "window_size": 4,
        "max_position_embeddings": 64,
    },
    "bloom": {"hidden_size": 32, "n_layer": 3, "n_head": 4},
    "falcon": {**SMALL, "new_decoder_architecture": False, "multi_query": True},
    "gpt2": {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 64},
    "gpt_neox": {**SMALL, "intermediate_size": 48, "max_position_embeddings": 64},
    "opt": {**SMALL, "ffn_dim": 48, "max_position_embeddings": 64, "word_embed_proj_dim": 32},
    "phi": {**SMALL, "intermediate_size": 48, "max_position_embeddings": 64},
    "llama": GROUPED,
    "mistral": {**GROUPED, "sliding_window": 5},
    "qwen2": GROUPED,
    "qwen3": {**GROUPED, "head_dim": 8},
    "gemma": {**GROUPED, "head_dim": 8},
    "gemma2": {**GROUPED, "head_dim": 8, "sliding_window": 5, "query_pre_attn_scalar": 8},
    "phi3": GROUPED,
    "stablelm": GROUPED,
}

_BART = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
    "decoder_start_token_id": 2,
}

# Families without a table, for what holds of all of them.
OTHERS: dict[str, dict[str, Any]] = {
    "mixtral": {**GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2},
}

ENCODER_DECODERS: dict[str, dict[str, Any]] = {
    "bart": _BART,
    "marian": _BART,
    "t5": {
        "d_model": 32,
        "num_layers": 2,
        "num_decoder_layers": 2,
        "num_heads": 4,
        "d_kv": 8,
        "d_ff": 48,
        "decoder_start_token_id": 0,
    },
}


# Families that older versions of transformers, which we support, compute by hand.
SINCE = {"t5": "5.15"}


def tokenizer(pairs: bool = True) -> Any:
    """A word-piece tokenizer of a few words: [CLS] a [SEP] b [SEP]."""
    inner = Tokenizer(models.WordPiece(VOCAB, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    if pairs:
        inner.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[("[CLS]", VOCAB["[CLS]"]), ("[SEP]", VOCAB["[SEP]"])],
        )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=64,
    )


def letters() -> Any:
    """A tokenizer of single letters, for models with 60 tokens: [CLS] a [SEP]."""
    vocabulary = {text: i for i, text in enumerate([*SPECIALS, *"abcdefghijklmnopqrstuvwxyz.,"])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    split = pre_tokenizers.Split(Regex("."), "isolated")
    inner.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), split])
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")],
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner,
        **{f"{name}_token": f"[{name.upper()}]" for name in ("unk", "pad", "cls", "sep", "mask")},
        model_max_length=64,
    )


def model(
    family: str, head: str = "SequenceClassification", *, seed: int = 0, **config: Any
) -> Any:
    """A tiny model of a family: head is "" for the base model, or what follows AutoModel.For."""
    since = SINCE.get(family, "0")
    if Version(transformers.__version__) < Version(since):
        pytest.skip(f"{family} goes through AttentionInterface from transformers {since} on")
    if head == "SequenceClassification":
        config.setdefault("num_labels", 3)
    made = transformers.AutoConfig.for_model(
        family, **{**COMMON, **(CONFIGS | ENCODER_DECODERS | OTHERS)[family], **config}
    )
    auto = getattr(transformers, f"AutoModelFor{head}" if head else "AutoModel")
    torch.manual_seed(seed)
    built = auto.from_config(made)
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.15)
    return built.eval()
