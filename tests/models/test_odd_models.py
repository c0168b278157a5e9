"""Models as people have them: half precision, compiled, adapted, in training, padded left."""

from __future__ import annotations

import numpy as np
import peft
import pytest
import torch
import transformers

from mixwidget import explain
from mixwidget.engine import prepare
from mixwidget.errors import UnsupportedModelError
from tests.lib import tiny

TEXT = "the film is not bad ."
METHOD = "attn_norm_res"  # needs weights, values and projections


@pytest.fixture(scope="module")
def plain():
    return run(tiny.model("llama", "CausalLM"))


def run(model, text=TEXT, tokenizer=None, **options):
    return explain(model, text, method=METHOD, tokenizer=tokenizer or tiny.tokenizer(), **options)


def same(one, other, tolerance=1e-5):
    np.testing.assert_allclose(one.maps, other.maps, atol=tolerance * other.maps.max())


def test_half_precision(plain):
    e = run(tiny.model("llama", "CausalLM").half())
    same(e, plain, 5e-3)
    assert e.maps.dtype == np.float32
    assert max(e.info["adds_up"]) < 1e-2  # half floats carry three digits


def test_compiled(plain):
    same(run(torch.compile(tiny.model("llama", "CausalLM"))), plain)


def test_gradient_checkpointing_and_training(plain):
    model = tiny.model("llama", "CausalLM", attention_dropout=0.5)
    model.gradient_checkpointing_enable()
    model.train()
    same(run(model), plain)
    assert model.training
    assert model.is_gradient_checkpointing


def test_frozen(plain):
    model = tiny.model("llama", "CausalLM")
    model.requires_grad_(False)
    same(run(model), plain)


@pytest.mark.parametrize(
    ("family", "modules", "transposed"),
    [
        ("bert", ["query", "dense"], False),
        ("gpt2", ["c_attn", "c_proj"], True),
        ("llama", ["v_proj", "o_proj", "up_proj", "down_proj"], False),
    ],
)
def test_adapters_count_as_the_model(family, modules, transposed):
    config = peft.LoraConfig(
        target_modules=modules, r=2, init_lora_weights=False, fan_in_fan_out=transposed
    )
    adapted = peft.get_peft_model(tiny.model(family), config).eval()
    e = run(adapted)
    assert max(e.info["adds_up"]) < 1e-4
    same(e, run(adapted.merge_and_unload()), 1e-4)


def test_a_subclass_of_a_users_own():
    class Mine(transformers.BertForSequenceClassification):
        pass

    model = tiny.model("bert")
    model.__class__ = Mine
    assert run(model).target.kind == "class"


def test_pipeline_brings_its_tokenizer():
    pipe = transformers.pipeline(
        "text-classification", model=tiny.model("bert"), tokenizer=tiny.tokenizer()
    )
    e = explain(pipe, TEXT, method=METHOD)
    same(e, run(tiny.model("bert")))


def test_folder_is_loaded_in_float32_with_its_head(tmp_path):
    tiny.model("bert").half().save_pretrained(tmp_path)
    tiny.tokenizer().save_pretrained(tmp_path)
    e = explain(tmp_path, TEXT, method=METHOD)
    same(e, run(tiny.model("bert")), 5e-3)
    assert max(e.info["adds_up"]) < 1e-4


def test_padding_side_does_not_matter(plain):
    tokenizer = tiny.tokenizer()
    tokenizer.padding_side = "left"
    same(run(tiny.model("llama", "CausalLM"), tokenizer=tokenizer), plain)


def test_tokenizer_without_special_tokens():
    e = run(tiny.model("gpt2", "CausalLM"), tokenizer=tiny.tokenizer(pairs=False))
    assert e.tokens == ["the", "film", "is", "not", "bad", "."]
    assert not any(token.special for token in e.tokens)


def test_slow_tokenizer_still_finds_words(tmp_path):
    tokenizer = tiny.tokenizer()

    class Slow:  # what a tokenizer without offsets gives
        is_fast = False
        mask_token_id, unk_token_id, pad_token_id = 4, 1, 0
        cls_token_id, sep_token_id, bos_token_id, eos_token_id = 2, 3, None, None
        model_max_length = 64
        model_input_names = ("input_ids", "attention_mask")

        def __call__(self, text, pair=None, return_offsets_mapping=False, **options):
            assert not return_offsets_mapping
            return transformers.BatchEncoding(dict(tokenizer(text, pair, **options)))

        def convert_ids_to_tokens(self, ids):
            return tokenizer.convert_ids_to_tokens(ids)

    case = prepare(tiny.model("bert"), "the films , badly", tokenizer=Slow())
    assert [t.word for t in case.encoding.tokens] == [None, 0, 1, 1, 2, 3, 3, None]
    assert all(t.start is None for t in case.encoding.tokens)


def test_offloaded_weights_are_refused_in_words():
    model = tiny.model("bert")
    model.bert.encoder.layer[0].attention.output.dense.to("meta")
    with pytest.raises(UnsupportedModelError, match="not in memory"):
        prepare(model, TEXT, tokenizer=tiny.tokenizer())


def test_sharded_over_devices_needs_no_common_one():
    """Nothing assumes one device: results of every layer come back to the CPU."""
    from accelerate import dispatch_model

    model = tiny.model("llama", "CausalLM")
    places = {name: "cpu" for name, _ in model.named_children()}
    same(
        run(dispatch_model(model, places, main_device="cpu")), run(tiny.model("llama", "CausalLM"))
    )
