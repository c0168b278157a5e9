"""What the notebooks of the browser tests run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from mixwidget import MixView
from mixwidget.explanation import Part
from mixwidget.methods.registry import forget, method
from tests.lib import tiny

HOSTILE = (
    '<img/src="x"/onerror="window.broken=1">',
    "</script><script>window.broken=2</script>",
    "&lt;b&gt;",
    "<!--",
    "${window.broken=3}",
)


def slow_method(name: str = "slow", seconds: float = 60.0) -> str:
    """Register a method that takes long, with many places to stop it."""

    def run(run: Any) -> Iterator[Part]:
        steps = 500
        for layer in run.layers():
            for step in range(steps):
                time.sleep(seconds / len(run.trace) / steps)
                run.tick(step / steps)
            yield run.part(layer, torch.eye(run.trace.tokens))

    forget(name)
    card = dict.fromkeys(("paper", "link", "measures", "formula", "ignores"), "")
    method(
        name,
        title="Slow",
        family="baseline",
        yields="maps",
        year=2024,
        needs=("attention",),
        cost=lambda size: 100.0,
        **card,  # type: ignore[arg-type]
    )(run)
    return name


def chat_view(**given: Any) -> MixView:
    """A chat with a tiny decoder, whose words are plain but for one that looks like markup."""
    tokenizer = tiny.tokenizer(pairs=False)
    tokenizer.chat_template = (
        "{% for m in messages %}[CLS] {{ m['role'] }} {{ m['content'] }} [SEP] {% endfor %}"
        "{% if add_generation_prompt %}[CLS] assistant {% endif %}"
    )
    model = tiny.model("llama", "CausalLM")
    model.config.eos_token_id = model.generation_config.eos_token_id = None
    tokenizer.eos_token = None
    chat = [
        {"role": "system", "content": "the film"},
        {"role": "user", "content": "was it good or bad , <b>deep</b> or thin"},
    ]
    return MixView(model, chat, tokenizer, **given)


def hostile_view() -> MixView:
    """Tokens and labels that would run as code if they were ever taken for HTML."""
    words = ["[UNK]", "[CLS]", "[SEP]", *HOSTILE]
    inner = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        id2label={0: HOSTILE[0], 1: HOSTILE[1]},
    )
    model = transformers.BertForSequenceClassification(config).eval()
    return MixView(model, " ".join(HOSTILE), tokenizer, method="raw_attention")
