"""Probes and anisotropy: data whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mixwidget import metrics
from mixwidget.engine import prepare
from mixwidget.errors import InputError
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
