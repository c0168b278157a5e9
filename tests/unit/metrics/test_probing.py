"""Probes and anisotropy: data whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mixwidget import metrics
from mixwidget.engine import prepare
from mixwidget.errors import InputError, UnsupportedMethodError
from mixwidget.metrics.probing import _transformed
from tests.lib import tiny

TEXT = "the film is not bad ."


def test_a_layer_that_knows_compresses_and_noise_does_not():
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, 400)
    knows = generator.normal(size=(400, 4)) + 4 * labels[:, None]
    noise = generator.normal(size=(400, 4))
    assert metrics.compression(knows, labels) > 4
    assert metrics.compression(noise, labels) < 1.05
    assert metrics.compression(knows, labels) == metrics.compression(knows, labels)
    half = knows * [0.5, 0, 0, 0] + noise
    assert 1 < metrics.compression(half, labels) < metrics.compression(knows, labels)


def test_compression_by_hand():
    # Constant features: the probe learns the classes' shares and nothing else. Blocks of 4
    # and 4: the first costs 4 bits, the second what the probe's probabilities say.
    labels = np.array([0, 1, 0, 1, 0, 1, 0, 1])
    order = np.random.default_rng(0).permutation(8)
    seen = labels[order][:4].mean()
    rest = labels[order][4:]
    share = 0.999 * np.array([1 - seen, seen]) + 0.0005
    bits = 4 - np.log2(share[rest]).sum()
    found = metrics.compression(np.zeros((8, 2)), labels, blocks=(50, 100))
    assert found == pytest.approx(8 / bits, rel=1e-3)


def test_compression_refuses_what_it_cannot_probe():
    with pytest.raises(InputError, match="two classes"):
        metrics.compression(np.zeros((4, 2)), [1, 1, 1, 1])
    with pytest.raises(InputError, match="features must be"):
        metrics.compression(np.zeros((4, 2)), [1, 0])


def test_layer_features_are_the_models_hidden_states():
    model, tokenizer = tiny.model("bert"), tiny.tokenizer()
    case = prepare(model, TEXT, tokenizer=tokenizer)
    with torch.no_grad():
        states = model(**case.encoding.inputs, output_hidden_states=True).hidden_states
    expected = torch.stack([state[0, 2] for state in states]).numpy()
    np.testing.assert_allclose(metrics.layer_features(case, 2), expected, atol=1e-5)


def test_mean_cosine_by_hand():
    assert metrics.mean_cosine(np.array([[1.0, 0], [2, 0], [5, 0]])) == pytest.approx(1)
    assert metrics.mean_cosine(np.array([[1.0, 0], [0, 3]])) == pytest.approx(0)
    assert metrics.mean_cosine(np.array([[1.0, 1], [-1, -1]])) == pytest.approx(-1)
    x = np.random.default_rng(1).normal(size=(2000, 64))
    assert abs(metrics.mean_cosine(x)) < 0.02
    with pytest.raises(InputError, match="two vectors"):
        metrics.mean_cosine(np.ones((1, 3)))


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_transformed_vectors_add_up_and_have_an_anisotropy(family):
    model, tokenizer = tiny.model(family), tiny.tokenizer()
    cases = [prepare(model, text, tokenizer=tokenizer) for text in (TEXT, "we saw a deep plot")]
    block = cases[0].trace().block(1)
    stage, n = block.stage("res_ln"), block.tokens
    rows, columns = torch.arange(n).repeat_interleave(n), torch.arange(n).repeat(n)
    vectors = _transformed(block, stage, rows, columns).reshape(n, n, -1)
    torch.testing.assert_close(vectors.sum(1), block.sum_vectors(stage), atol=1e-4, rtol=1e-4)
    found = metrics.anisotropy(cases, pairs=200)
    assert set(found) == {"outputs", "transformed"}
    for values in found.values():
        assert values.shape == (3,)
        assert bool((np.abs(values) <= 1).all())
    with pytest.raises(InputError, match="at least one"):
        metrics.anisotropy([])


def test_anisotropy_takes_texts_and_looks_at_the_attention_blocks():
    model, tokenizer = tiny.model("bert"), tiny.tokenizer()
    texts = [TEXT, "we saw a deep plot"]
    found = metrics.anisotropy(model, texts, tokenizer=tokenizer, pairs=300)
    cases = [prepare(model, text, tokenizer=tokenizer) for text in texts]
    for layer, value in enumerate(found["outputs"]):
        outputs = [case.trace().block(layer).block_output.double().numpy() for case in cases]
        expected = metrics.mean_cosine(np.concatenate(outputs), pairs=300)
        assert value == pytest.approx(expected, abs=1e-6)
    same = metrics.anisotropy(cases, pairs=300)
    np.testing.assert_array_equal(same["transformed"], found["transformed"])
    with pytest.raises(InputError, match="at least one text"):
        metrics.anisotropy(model, [], tokenizer=tokenizer)


def test_outlying_weights_of_two_norms():
    model, tokenizer = tiny.model("bert"), tiny.tokenizer()
    with torch.no_grad():
        for k, layer in enumerate(model.bert.encoder.layer):
            for norm in (layer.attention.output.LayerNorm, layer.output.LayerNorm):
                norm.weight.normal_(1, 0.01)
            layer.attention.output.LayerNorm.weight[[3, 7, 9]] = torch.tensor([3.0, 2.6, 2.8])
            layer.output.LayerNorm.weight[[3, 7, 9]] = torch.tensor([-1.0, -0.6, -0.8 + k])
    found = metrics.outlier_weights(model, tokenizer=tokenizer, sigmas=2.0)
    assert list(found.layer) == [0, 1, 2]
    assert found.outliers[0] >= 3
    assert found.pearson[0] < -0.9  # where one is far up, the other is far down
    layer = model.bert.encoder.layer[1]
    pair = [
        n.weight.detach().double().numpy()
        for n in (layer.attention.output.LayerNorm, layer.output.LayerNorm)
    ]
    assert found.pearson_all[1] == pytest.approx(np.corrcoef(*pair)[0, 1])
    with pytest.raises(UnsupportedMethodError, match="two norms"):
        metrics.outlier_weights(tiny.model("gpt2"), tokenizer=tokenizer)


def test_compression_by_layer_is_that_of_the_features():
    model, tokenizer = tiny.model("bert"), tiny.tokenizer()
    texts = [
        "the film is bad",
        "a good plot",
        "we saw it",
        "a deep film",
        "never boring",
        "bad",
    ] * 3
    labels = [0, 1, 0, 1, 1, 0] * 3
    found = metrics.compression_by_layer(model, texts, labels, tokenizer=tokenizer)
    features = [
        metrics.layer_features(prepare(model, text, tokenizer=tokenizer))[2] for text in texts
    ]
    assert found[2] == pytest.approx(metrics.compression(np.stack(features), labels))
    assert len(found) == 4
    with pytest.raises(InputError, match="labels for"):
        metrics.compression_by_layer(model, texts, labels[1:], tokenizer=tokenizer)
