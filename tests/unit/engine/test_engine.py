"""The contract of `explain`, `stream`, `methods` and `Explanation`."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

import mixwidget
from mixwidget import demo, explain, methods, stream
from mixwidget.errors import InputError, UnsupportedMethodError
from mixwidget.methods.registry import all_methods, get_method
from tests.lib import tiny

TEXT = "the film is not bad ."


@pytest.fixture(scope="module")
def loaded():
    return demo.load()


def test_explain_gives_the_contracts_shapes(loaded):
    model, tokenizer = loaded
    e = explain(model, demo.SENTENCE, method="raw_attention", tokenizer=tokenizer)
    layers, n = model.config.num_hidden_layers, len(e.tokens)
    assert e.method == "raw_attention"
    assert e.tokens == tokenizer.convert_ids_to_tokens(tokenizer(demo.SENTENCE)["input_ids"])
    assert e.focus == 0
    assert e.target == "positive"
    assert e.target == 1
    assert e.maps.shape == (layers, n, n)
    assert e.maps.dtype == e.scores.dtype == e.rollout().dtype == np.float32
    assert e.scores.shape == (n,)
    assert e.rollout().shape == (n, n)
    assert e.layer_scores is None
    assert max(e.info["adds_up"]) < 1e-4
    np.testing.assert_allclose(e.rollout(1).sum(-1), 1, atol=1e-5)
    np.testing.assert_array_equal(e.scores, e.maps[-1][e.focus])


def test_demo_model_needs_no_tokenizer_argument(loaded):
    assert explain(loaded[0], TEXT, method="raw_attention").tokens[0] == "[CLS]"


def test_stream_is_explain_in_parts(loaded):
    model, tokenizer = loaded
    parts = list(stream(model, TEXT, method="attention_rollout", tokenizer=tokenizer))
    e = explain(model, TEXT, method="attention_rollout", tokenizer=tokenizer)
    assert [part.layer for part in parts] == list(range(len(e.maps)))
    np.testing.assert_array_equal(np.stack([part.map for part in parts]), e.maps)


def test_rollout_is_the_product(loaded):
    e = explain(*loaded[:1], TEXT, method="attention_rollout", tokenizer=loaded[1])
    product = np.eye(len(e.tokens))
    for layer, step in enumerate(e.maps):
        product = step.astype(np.float64) @ product
        np.testing.assert_allclose(e.rollout(layer), product, atol=1e-6)
    np.testing.assert_allclose(e.scores, product[e.focus], atol=1e-6)
    np.testing.assert_allclose(e.aggregate("sum", 1), e.maps[0] + e.maps[1], atol=1e-6)
    np.testing.assert_array_equal(e.aggregate("layer", 1), e.maps[1])


def test_many_texts_equal_one_by_one(loaded):
    model, tokenizer = loaded
    texts = [TEXT, "we saw a deep and good film", "boring"]
    many = explain(model, texts, method="attention_rollout", tokenizer=tokenizer)
    for text, e in zip(texts, many, strict=True):
        one = explain(model, text, method="attention_rollout", tokenizer=tokenizer)
        np.testing.assert_allclose(e.maps, one.maps, atol=1e-5)


def test_frame_is_long_and_complete(loaded):
    e = explain(*loaded[:1], TEXT, method="raw_attention", tokenizer=loaded[1])
    frame = e.to_frame()
    n = len(e.tokens)
    assert len(frame) == e.maps.size + n
    cell = frame[(frame.kind == "map") & (frame.layer == 1) & (frame.row == 2)]
    np.testing.assert_array_equal(cell.value.to_numpy(), e.maps[1, 2])
    assert list(frame[frame.kind == "score"].column_token) == e.tokens


@pytest.mark.parametrize("kind", [None, "text", "map", "layers"])
def test_plots_are_figures(loaded, kind, tmp_path):
    text = "the $film$ is <b>not</b> bad & never_boring $"  # matplotlib reads $..$ as formulas
    e = explain(loaded[0], text, method="attention_rollout", tokenizer=loaded[1])
    e.plot(kind).savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 5000


def test_methods_is_a_table():
    table = methods()
    assert {"id", "title", "family", "paper", "needs", "signed"} <= set(table.columns)
    assert table.id.is_unique
    assert {"raw_attention", "attention_rollout"} <= set(table.id)
    assert not table[["title", "paper", "measures", "formula", "ignores"]].eq("").any().any()


def test_words_segments_and_spans():
    case = mixwidget.engine.prepare(
        tiny.model("bert"), "the films , badly", tokenizer=tiny.tokenizer(), text_pair="a plot"
    )
    tokens = case.encoding.tokens
    assert tokens == [
        *["[CLS]", "the", "film", "##s", ",", "bad", "##ly", "[SEP]"],
        *["a", "plot", "[SEP]"],
    ]
    assert [t.word for t in tokens] == [None, 0, 1, 1, 2, 3, 3, None, 4, 5, None]
    assert [t.segment for t in tokens] == [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1]
    assert [t.special for t in tokens] == [t in ("[CLS]", "[SEP]") for t in tokens]
    assert (tokens[3].start, tokens[3].end, tokens[3].text) == (8, 9, "s")
    assert tokens[0].start is None
    assert case.encoding.ordinary() == [1, 2, 3, 4, 5, 6, 8, 9]


def test_mask_and_unknown_words_are_not_special():
    case = mixwidget.engine.prepare(
        tiny.model("bert", "MaskedLM"), "the [MASK] is xyzzy", tokenizer=tiny.tokenizer()
    )
    tokens = case.encoding.tokens
    assert tokens == ["[CLS]", "the", "[MASK]", "is", "[UNK]", "[SEP]"]
    assert [t.special for t in tokens] == [True, False, False, False, False, True]


@pytest.mark.parametrize(
    ("family", "head", "text", "focus"),
    [
        ("bert", "SequenceClassification", TEXT, 0),
        ("bert", "MaskedLM", "the [MASK] is bad", 2),
        ("gpt2", "CausalLM", TEXT, 7),
        ("gpt2", "SequenceClassification", TEXT, 7),
        ("llama", "CausalLM", TEXT, 7),
        ("bert", "", TEXT, 0),
        ("bert", "QuestionAnswering", TEXT, None),
    ],
)
def test_default_focus_and_target(family, head, text, focus):
    model = tiny.model(family, head)
    e = explain(model, text, method="raw_attention", tokenizer=tiny.tokenizer())
    if focus is not None:
        assert e.focus == focus
    with torch.no_grad():
        output = model(**tiny.tokenizer()(text, return_tensors="pt", return_token_type_ids=False))
    if head == "SequenceClassification":
        assert e.target == int(output.logits[0].argmax())
    elif head in ("MaskedLM", "CausalLM"):
        assert e.target == int(output.logits[0, focus].argmax())
        assert e.target.probability == pytest.approx(
            float(output.logits[0, focus].softmax(-1).max()), rel=1e-4
        )
    elif head == "":
        assert e.target.kind == "none"
    else:
        start, end = e.target.index
        assert 0 <= start <= end < 8
        assert e.focus == start


@pytest.mark.parametrize("method", ["alti", "attention_flow", "attcat", "gae", "random", "shapley"])
def test_an_answer_is_read_at_its_first_token(method):
    model, tokenizer = tiny.model("bert", "QuestionAnswering"), tiny.tokenizer()
    asked = {"tokenizer": tokenizer, "text_pair": "the film is bad and the plot is thin"}
    e = explain(model, "is the plot good", method, **asked)
    start, end = e.target.index
    assert e.focus == start
    assert not any(token.special or token.segment == 0 for token in e.tokens[start : end + 1])
    chosen = explain(model, "is the plot good", method, target=(9, 10), **asked)
    assert chosen.focus == 9
    same = explain(model, "is the plot good", method, target=(9, 10), focus=9, **asked)
    assert chosen.scores.tolist() == same.scores.tolist()
    assert explain(model, "is the plot good", method, focus=0, **asked).focus == 0


def test_scores_only_methods_have_no_rollout(loaded):
    e = explain(loaded[0], TEXT, method="raw_attention", tokenizer=loaded[1])
    without = mixwidget.Explanation(
        e.method, e.tokens, e.focus, e.target, None, None, own_scores=e.scores
    )
    with pytest.raises(UnsupportedMethodError, match="no maps"):
        without.rollout()


def test_import_is_light():
    code = (
        "import sys, time; t = time.perf_counter(); import mixwidget; "
        "assert mixwidget.__all__ and mixwidget.__version__; "
        "heavy = {'torch', 'transformers', 'pandas', 'matplotlib'} & set(sys.modules); "
        "assert not heavy, heavy; assert time.perf_counter() - t < 1.5"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_is_there():
    for name in mixwidget.__all__:
        assert getattr(mixwidget, name) is not None
    assert set(mixwidget.__all__) <= set(dir(mixwidget))
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = mixwidget.no_such_name


@pytest.mark.parametrize(
    "id", [one.id for one in all_methods() if one.id != "hta" and "answer" not in one.needs]
)
def test_only_what_is_bound_to_a_focus_changes_with_it(id):
    """Otherwise the widget would show the numbers of another token, or compute for nothing."""
    given = {"tokenizer": tiny.tokenizer(), "target": 1}
    model = tiny.model("bert").double()
    options = {"steps": 5} if id == "integrated_gradients" else {}
    first, second = (explain(model, TEXT, id, focus=f, **given, **options) for f in (0, 3))
    if get_method(id).bound_to_focus(first.params):
        assert np.abs(first.scores - second.scores).max() > 1e-6
    else:
        np.testing.assert_allclose(first.with_focus(3).scores, second.scores, atol=1e-6)
    if "zero_focus" in first.params:
        assert get_method(id).bound_to_focus({**first.params, "zero_focus": True})


def test_options_that_are_called_as_arguments_are(loaded):
    model, tokenizer = loaded
    e = explain(model, "not bad", "integrated_gradients", tokenizer=tokenizer, steps=3)
    assert e.params["steps"] == 3
    (e,) = explain(model, ["not bad"], "integrated_gradients", tokenizer=tokenizer, steps=3)
    assert e.params["steps"] == 3
    llama = tiny.model("llama", "CausalLM")
    asked = {"tokenizer": tiny.tokenizer(pairs=False), "answer": "it is", "samples": 4}
    e = explain(llama, "the film is. it was.", "context_cite", keep=0.25, **asked)
    assert e.params["keep"] == 0.25
    with pytest.raises(InputError, match="steps is 3; it can be 'asked' or 'all'"):
        explain(model, "not bad", "alti", tokenizer=tokenizer, steps=3)
