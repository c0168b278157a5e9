"""Models and tokenizers with something wrong are refused in words, never silently explained."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from mixwidget import explain
from mixwidget.errors import InputError, NumericsError, UnsupportedModelError
from tests.lib import tiny

TEXT = "the film is not bad ."


def test_a_tokenizer_with_more_tokens_than_the_model() -> None:
    model = tiny.model("bert")
    model.resize_token_embeddings(10)
    with pytest.raises(InputError, match=r"token id \d+.*knows only 10.*own tokenizer"):
        explain(model, TEXT, tokenizer=tiny.tokenizer())


def test_the_answer_so_far_of_an_encoder_decoder_too() -> None:
    model = tiny.model("bart", "Seq2SeqLM")
    model.resize_token_embeddings(20)
    with pytest.raises(InputError, match="knows only 20"):
        explain(model, "the film", text_pair="thin acting saw .", tokenizer=tiny.tokenizer())


def test_a_function_as_tokenizer() -> None:
    tokenizer = tiny.tokenizer()
    with pytest.raises(InputError, match=r"tokenizer is function.*AutoTokenizer"):
        explain(tiny.model("bert"), TEXT, tokenizer=lambda *a, **k: tokenizer(*a, **k))


def test_a_forward_without_return_dict() -> None:
    model = tiny.model("bert")

    class Mine(type(model)):  # type: ignore[misc]
        def forward(self, input_ids: Any = None, attention_mask: Any = None) -> Any:
            return super().forward(input_ids, attention_mask)

    model.__class__ = Mine
    with pytest.raises(UnsupportedModelError, match=r"no return_dict.*\*\*kwargs"):
        explain(model, TEXT, tokenizer=tiny.tokenizer())


@pytest.mark.parametrize("method", ["alti", "blank_out", "lrp", "gradient"])
@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
@pytest.mark.parametrize("head", ["SequenceClassification", "MaskedLM", "QuestionAnswering"])
def test_a_head_with_broken_numbers(method: str, broken: float, head: str) -> None:
    model = tiny.model("bert", head)
    last = [module for module in model.modules() if isinstance(module, torch.nn.Linear)][-1]
    with torch.no_grad():
        last.bias[1] = broken
    with pytest.raises(NumericsError, match="head"):
        explain(model, TEXT, method, tokenizer=tiny.tokenizer())


def test_a_head_that_breaks_on_an_edited_text_only() -> None:
    model = tiny.model("bert")

    def breaks(module: Any, args: Any, result: Any) -> Any:
        return result * float("nan") if bool((model.seen == 4).any()) else result

    def see(module: Any, args: Any, kwargs: Any) -> None:
        model.seen = kwargs["input_ids"]

    model.register_forward_pre_hook(see, with_kwargs=True)
    model.classifier.register_forward_hook(breaks)
    with pytest.raises(NumericsError, match="edited text"):
        explain(model, TEXT, "blank_out", tokenizer=tiny.tokenizer())
    assert not hasattr(model, "seen")


def test_token_types_that_gpt2_looks_up_among_its_words() -> None:
    """`lrp` reads the embeddings alone; what GPT-2 adds for token types is still added."""
    model, tokenizer = tiny.model("gpt2").double(), tiny.tokenizer()
    tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    found = explain(model, TEXT, "lrp", tokenizer=tokenizer, text_pair="a plot", target=1)
    assert np.allclose(found.info["conservation"], 1, atol=1e-6)
    half = explain(model.float(), TEXT, "lrp", tokenizer=tokenizer, text_pair="a plot", target=1)
    np.testing.assert_allclose(half.scores, found.scores, atol=1e-4 * np.abs(found.scores).max())
