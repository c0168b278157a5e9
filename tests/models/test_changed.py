"""A model that is changed after it has been explained, and texts of a few tokens."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks import shrunk
from mixwidget import explain

TEXT = "the film is not bad"
METHODS = ("alti", "gae")


def fewer_layers(model: Any) -> None:
    model.model.layers = model.model.layers[:2]
    model.config.num_hidden_layers = 2


def both_ways(model: Any) -> None:
    model.config.is_causal = False
    for module in model.modules():
        if hasattr(module, "is_causal"):
            module.is_causal = False


def adapters(model: Any) -> None:
    peft = pytest.importorskip("peft")
    torch.manual_seed(1)
    config = peft.LoraConfig(target_modules="all-linear", r=2, init_lora_weights=False)
    peft.inject_adapter_in_model(config, model)


@pytest.mark.parametrize(
    ("family", "change"),
    [("mixtral", fewer_layers), ("mixtral", both_ways), ("mixtral", adapters), ("llama", adapters)],
)
def test_what_was_found_out_does_not_outlive_a_change(
    family: str, change: Callable[[Any], None]
) -> None:
    model, tokenizer = shrunk.build(family, "causal"), shrunk.tokenizer()
    before = {m: explain(model, TEXT, m, tokenizer=tokenizer) for m in METHODS}
    change(model)
    fresh = copy.deepcopy(model)
    for method in METHODS:
        changed, anew = (explain(m, TEXT, method, tokenizer=tokenizer) for m in (model, fresh))
        assert changed.focus == anew.focus == len(anew.tokens) - 1
        np.testing.assert_allclose(changed.maps, anew.maps, atol=1e-5)
        assert not np.array_equal(changed.scores, before[method].scores)


@pytest.mark.parametrize("family", ["openai-gpt", "ibert"])
@pytest.mark.parametrize("text", ["good", "good film"])
def test_a_few_tokens_are_enough_where_a_norm_stands_behind(family: str, text: str) -> None:
    model, tokenizer = shrunk.build(family, "classifier"), shrunk.tokenizer()
    short = explain(model, text, "alti", tokenizer=tokenizer)
    assert max(short.info["adds_up"]) < 1e-4
    assert np.isfinite(short.maps).all()


def test_a_head_with_more_classes_than_the_config_names() -> None:
    model, tokenizer = shrunk.build("flaubert", "classifier"), shrunk.tokenizer()
    model.sequence_summary.summary = torch.nn.Identity()
    e = explain(model, TEXT, "gae", tokenizer=tokenizer, target=20)
    assert e.target.label == "LABEL_20"


def test_a_kernel_that_does_not_run_here_is_not_needed() -> None:
    model, tokenizer = shrunk.build("llama", "causal"), shrunk.tokenizer()
    plain = explain(model, TEXT, "alti", tokenizer=tokenizer)
    model.config._attn_implementation_internal = "flash_attention_2"
    with pytest.raises(ImportError):
        model(**tokenizer(TEXT, return_tensors="pt"))
    np.testing.assert_array_equal(
        explain(model, TEXT, "alti", tokenizer=tokenizer).maps, plain.maps
    )
