"""Bad input gets a typed error that says what to do."""

from __future__ import annotations

import pytest
import torch
import transformers

from mixwidget import errors, explain, stream
from tests.lib import tiny

TEXT = "the film is not bad ."


@pytest.fixture(scope="module")
def bert():
    return tiny.model("bert")


@pytest.fixture(scope="module")
def tok():
    return tiny.tokenizer()


@pytest.mark.parametrize("text", ["", "   \n", None, 3, b"film", {"a": 1}])
def test_text(bert, tok, text):
    with pytest.raises(errors.InputError, match="text"):
        explain(bert, text, method="raw_attention", tokenizer=tok)


@pytest.mark.parametrize("pair", ["", 3])
def test_text_pair(bert, tok, pair):
    with pytest.raises(errors.InputError, match="text_pair"):
        explain(bert, TEXT, method="raw_attention", tokenizer=tok, text_pair=pair)


def test_lists_of_texts_and_pairs_must_match(bert, tok):
    with pytest.raises(errors.InputError, match="2 texts but 1"):
        explain(bert, [TEXT, TEXT], method="raw_attention", tokenizer=tok, text_pair=["a"])


def test_too_long_states_count_limit_and_way_out(bert, tok):
    text = "film " * 100
    with pytest.raises(errors.TextTooLongError, match=r"102 tokens.*at most 64.*truncate=True"):
        explain(bert, text, method="raw_attention", tokenizer=tok)
    cut = explain(bert, text, method="raw_attention", tokenizer=tok, truncate=True)
    assert len(cut.tokens) == 64
    assert cut.tokens[-1] == "[SEP]"


def test_roberta_counts_positions_after_its_padding(tok):
    model = tiny.model("roberta", max_position_embeddings=20)
    limit = 20 - model.config.pad_token_id - 1
    with pytest.raises(errors.TextTooLongError, match=f"at most {limit}"):
        explain(model, "film " * 30, method="raw_attention", tokenizer=tok)
    cut = explain(model, "film " * 30, method="raw_attention", tokenizer=tok, truncate=True)
    assert len(cut.tokens) == limit


@pytest.mark.parametrize("name", ["raw_atention", "", 3])
def test_unknown_method_lists_the_known(bert, tok, name):
    with pytest.raises(errors.UnknownMethodError, match="attention_rollout") as caught:
        explain(bert, TEXT, method=name, tokenizer=tok)
    if name == "raw_atention":
        assert "Did you mean 'raw_attention'?" in str(caught.value)


def test_unknown_option_lists_the_known(bert, tok):
    with pytest.raises(errors.InputError, match=r"no option 'p'"):
        explain(bert, TEXT, method="raw_attention", tokenizer=tok, p=2)


@pytest.mark.parametrize("focus", [8, -9, 1.5, "cheese", "", True])
def test_focus(bert, tok, focus):
    with pytest.raises(errors.InputError, match="focus"):
        explain(bert, TEXT, method="raw_attention", tokenizer=tok, focus=focus)


def test_focus_counts_from_the_end(bert, tok):
    assert explain(bert, TEXT, method="raw_attention", tokenizer=tok, focus=-1).focus == 7


@pytest.mark.parametrize("target", [3, -1, "positive", 1.5, (0, 1, 2), (0, 9), True])
def test_target(bert, tok, target):
    with pytest.raises(errors.InputError, match=r"target|contrast"):
        explain(bert, TEXT, method="raw_attention", tokenizer=tok, target=target)


def test_target_of_a_model_without_a_head(tok):
    with pytest.raises(errors.InputError, match="no head"):
        explain(tiny.model("bert", ""), TEXT, method="raw_attention", tokenizer=tok, target=0)


def test_target_that_is_no_single_token(tok):
    model = tiny.model("bert", "MaskedLM")
    with pytest.raises(errors.InputError, match="single token"):
        explain(model, "a [MASK] film", method="raw_attention", tokenizer=tok, target="filmsly")


@pytest.mark.parametrize("span", [(5, 2), (0, 99), 3])
def test_span(tok, span):
    model = tiny.model("bert", "QuestionAnswering")
    with pytest.raises(errors.InputError, match=r"start|token|pair"):
        explain(model, TEXT, method="raw_attention", tokenizer=tok, target=span)


@pytest.mark.parametrize("model", [None, 3, torch.nn.Linear(2, 2), object()])
def test_not_a_model(tok, model):
    with pytest.raises(errors.ModelInputError, match="model"):
        explain(model, TEXT, method="raw_attention", tokenizer=tok)


def test_name_that_does_not_exist():
    with pytest.raises(errors.ModelInputError, match="no/such-model"):
        explain("no/such-model", TEXT, method="raw_attention")


def test_missing_tokenizer_says_what_to_pass(bert):
    with pytest.raises(errors.TokenizerNotFoundError, match=r"tokenizer=\.\.\."):
        explain(bert, TEXT, method="raw_attention")


def test_something_else_as_tokenizer(bert):
    with pytest.raises(errors.InputError, match="not a transformers tokenizer"):
        explain(bert, TEXT, method="raw_attention", tokenizer=3)


def test_unsupported_architecture_says_what_is_and_how_to_add(tok):
    model = transformers.AutoModel.from_config(
        transformers.AutoConfig.for_model(
            "fnet", vocab_size=30, hidden_size=16, num_hidden_layers=1, intermediate_size=16
        )
    )
    with pytest.raises(errors.UnsupportedModelError, match=r"fnet.*bert.*register_family"):
        explain(model, TEXT, method="raw_attention", tokenizer=tok)


def test_head_that_cannot_be_explained(tok):
    with pytest.raises(errors.UnsupportedModelError, match=r"base_model"):
        explain(
            tiny.model("bert", "TokenClassification"), TEXT, method="raw_attention", tokenizer=tok
        )


def test_broken_weights_name_the_layer(tok):
    model = tiny.model("bert", "")
    with torch.no_grad():
        model.encoder.layer[1].output.dense.bias[3] = float("nan")
    with pytest.raises(errors.NumericsError, match="layer 1"):
        explain(model, TEXT, method="raw_attention", tokenizer=tok)


def test_lone_surrogate(bert, tok):
    with pytest.raises(errors.InputError, match="surrogate"):
        explain(bert, "the \ud800 film", method="raw_attention", tokenizer=tok)


def test_stream_refuses_at_the_call_not_at_the_first_part(bert, tok):
    with pytest.raises(errors.InputError):
        stream(bert, "", method="raw_attention", tokenizer=tok)
