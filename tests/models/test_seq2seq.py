"""Encoder-decoders: source and prefix in one row, each block against a twin in float64."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
import torch
import transformers

from mixwidget import explain, metrics
from mixwidget.engine import prepare
from mixwidget.errors import InputError, UnsupportedMethodError
from mixwidget.metrics import explain_case
from tests.lib import tiny

TEXT, PREFIX = "the film is not bad .", "a good film"
S, T = 8, 4  # tokens of the source, and of the prefix with its first


def case_of(family, **config):
    model = tiny.model(family, "Seq2SeqLM", **config).double()
    return prepare(model, TEXT, tokenizer=tiny.tokenizer(), text_pair=PREFIX)


@pytest.mark.parametrize(
    ("family", "shape"),
    [("bart", {}), ("marian", {}), ("t5", {}), ("t5", {"feed_forward_proj": "gated-gelu"})],
)
def test_parts_add_up(family, shape):
    model = tiny.model(family, "Seq2SeqLM", **shape)
    case = prepare(model, TEXT, tokenizer=tiny.tokenizer(), text_pair=PREFIX)
    trace = case.trace()
    assert len(trace) == 2 + 2 * 2
    assert max(trace.adds_up(layer) for layer in range(6)) < 1e-4
    with torch.no_grad():
        alone = model(**case.encoding.inputs).logits
    assert torch.allclose(alone, trace.output.logits, atol=1e-5)


@pytest.mark.parametrize("family", tiny.ENCODER_DECODERS)
def test_blocks_lie_where_they_should(family):
    e = explain(
        tiny.model(family, "Seq2SeqLM"),
        TEXT,
        method="attn_norm_res",
        tokenizer=tiny.tokenizer(),
        text_pair=PREFIX,
    )
    assert e.maps.shape == (6, S + T, S + T)
    assert [token.segment for token in e.tokens] == [0] * S + [1] * T
    assert e.tokens[S:] == [e.tokens[S], "a", "good", "film"]
    assert e.tokens[S].special
    assert e.focus == S + T - 1
    assert e.info["layers"][2:4] == ["decoder 0, over the prefix", "decoder 0, over the source"]
    identity = np.eye(S + T)
    for number, name in enumerate(e.info["layers"]):
        rows = slice(0, S) if name.startswith("encoder") else slice(S, None)
        still = np.ones(S + T, dtype=bool)
        still[rows] = False
        np.testing.assert_array_equal(e.maps[number][still], identity[still])
        if name.endswith("source"):
            np.testing.assert_array_equal(e.maps[number][S:, S:] > 0, np.eye(T) > 0)
        if name.endswith("prefix"):
            assert not e.maps[number][S:, :S].any()
            assert not np.triu(e.maps[number][S:, S:], 1).any()
    assert (e.rollout()[-1] > 0).all()  # the last token has seen everything


def halves(layer, hidden, encoded, zeroed=None):
    """BART's decoder layer written out, one value of the source taken away if asked."""

    def attend(module, queries, states, causal):
        split = lambda x: x.view(len(x), 4, 8).transpose(0, 1)  # noqa: E731
        q, k, v = (split(f(x)) for f, x in zip(
            (module.q_proj, module.k_proj, module.v_proj), (queries, states, states), strict=True
        ))  # fmt: skip
        if zeroed is not None and not causal:
            v = v.clone()
            v[:, zeroed] = 0
        scores = q @ k.transpose(1, 2) / 8**0.5
        if causal:
            ones = torch.ones(scores.shape[1:], dtype=torch.bool)
            scores = scores.masked_fill(ones.triu(1), -torch.inf)
        weights = scores.softmax(-1)
        heads = (weights @ v).transpose(0, 1).reshape(len(queries), 32)
        return module.out_proj(heads), weights, v

    a, *_ = attend(layer.self_attn, hidden, hidden, True)
    middle = layer.self_attn_layer_norm(hidden + a)
    b, weights, values = attend(layer.encoder_attn, middle, encoded, False)
    y = layer.encoder_attn_layer_norm(middle + b)
    inner = layer.activation_fn(layer.fc1(y))
    return layer.final_layer_norm(y + layer.fc2(inner)), middle, y, weights, values


@pytest.fixture(scope="module")
def written_out():
    case = case_of("bart")
    trace = case.trace()
    layer = case.source.model.model.decoder.layers[0]
    hidden, encoded = trace.layers[2].input[S:], trace.layers[1].output[:S]
    return case, layer, hidden, encoded


@torch.no_grad()
def test_value_zeroing_over_the_source_by_really_zeroing(written_out):
    case, layer, hidden, encoded = written_out
    whole = halves(layer, hidden, encoded)[0]
    assert torch.allclose(whole, case.trace().layers[3].output[S:], atol=1e-10)
    moved = np.zeros((T, S))
    for k in range(S):
        other = halves(layer, hidden, encoded, zeroed=k)[0]
        moved[:, k] = 1 - torch.cosine_similarity(other, whole, dim=-1).numpy()
    e = explain(
        case.source.model,
        TEXT,
        method="value_zeroing",
        tokenizer=tiny.tokenizer(),
        text_pair=PREFIX,
    )
    expected = moved / moved.sum(-1, keepdims=True)
    np.testing.assert_allclose(e.maps[3][S:, :S], expected, atol=1e-5)


@torch.no_grad()
def test_alti_over_the_source_by_explicit_vectors(written_out):
    case, layer, hidden, encoded = written_out
    _, middle, y, weights, values = halves(layer, hidden, encoded)
    norm = layer.encoder_attn_layer_norm
    project = layer.encoder_attn.out_proj
    by_head = project.weight.T.reshape(4, 8, 32)
    expected = np.zeros((T, S + T))
    for i in range(T):
        brought = [
            sum(weights[h, i, k] * values[h, k] @ by_head[h] for h in range(4)) for k in range(S)
        ]
        p = middle[i] + sum(brought) + project.bias
        scale = (p.var(correction=0) + norm.eps).sqrt()
        size = y[i].abs().sum()
        for column, vector in [*enumerate(brought), (S + i, middle[i])]:
            part = norm.weight * (vector - vector.mean()) / scale
            expected[i, column] = max(0, float(size - (y[i] - part).abs().sum()))
    expected /= expected.sum(-1, keepdims=True)
    e = explain(
        case.source.model, TEXT, method="alti", tokenizer=tiny.tokenizer(), text_pair=PREFIX
    )
    np.testing.assert_allclose(e.maps[3][S:], expected, atol=1e-5)


def test_without_a_prefix_the_first_token_is_explained():
    model = tiny.model("t5", "Seq2SeqLM")
    e = explain(model, TEXT, method="alti", tokenizer=tiny.tokenizer())
    assert len(e.tokens) == S + 1
    with torch.no_grad():
        inputs = tiny.tokenizer()(TEXT, return_tensors="pt", return_token_type_ids=False)
        logits = model(**inputs, decoder_input_ids=torch.tensor([[0]])).logits[0, 0]
    assert e.target == int(logits.argmax())


def test_the_encoder_alone_is_a_model_without_a_head():
    model = tiny.model("t5", "Seq2SeqLM")
    config = transformers.T5Config(**{**model.config.to_dict(), "is_encoder_decoder": False})
    encoder = transformers.T5EncoderModel(config).eval()
    e = explain(encoder, TEXT, method="alti", tokenizer=tiny.tokenizer())
    assert e.maps.shape == (2, S, S)
    assert max(e.info["adds_up"]) < 1e-4


# Marian scales what it looks up; T5 without a kink, which numerical methods would stumble on.
FAMILIES = [
    ("bart", {}),
    ("marian", {"scale_embedding": True}),
    ("t5", {"feed_forward_proj": "gelu"}),
]


@torch.no_grad()
def asked(case, ids, prefix, row=-1):
    """The model's own probabilities after a prefix, one text in a pass. [vocabulary]"""
    inputs = {"input_ids": torch.tensor([ids]), "decoder_input_ids": torch.tensor([prefix])}
    return case.source.model(**inputs).logits[0, row].softmax(-1)


@pytest.mark.parametrize(("family", "shape"), FAMILIES)
def test_blank_out_by_asking_one_text_at_a_time(family, shape):
    case = case_of(family, **shape)
    mask = tiny.tokenizer().mask_token_id
    ids = [token.id for token in case.encoding.tokens]
    for by in ("mask", "delete"):
        e = explain_case(case, "blank_out", by=by)
        before = asked(case, ids[:S], ids[S:])[e.target.index]
        for j in range(S + T):
            edited = [i for k, i in enumerate(ids) if k != j]
            if by == "mask":
                edited = [*ids[:j], mask, *ids[j + 1 :]]
            cut = S - 1 if by == "delete" and j < S else S
            after = asked(case, edited[:cut], edited[cut:])[e.target.index]
            assert e.scores[j] == pytest.approx(float(before - after), abs=1e-9)


@pytest.mark.parametrize(("family", "shape"), FAMILIES)
def test_metrics_take_tokens_of_both_texts_away(family, shape):
    case = case_of(family, **shape)
    e = explain_case(case, "alti")
    ids = [token.id for token in case.encoding.tokens]
    places = metrics.evidence(e, case).removable
    assert places == (*range(1, S - 1), *range(S + 1, S + T))  # neither ends nor the first
    order = sorted(places, key=lambda i: -e.scores[i])
    whole = asked(case, ids[:S], ids[S:])[e.target.index]
    drops = []
    for share in (0.01, 0.05, 0.1, 0.2, 0.5):
        gone = order[: int(np.ceil(share * len(order)))]
        kept = [i for i in range(S + T) if i not in gone]
        left = asked(case, [ids[i] for i in kept if i < S], [ids[i] for i in kept if i >= S])
        drops.append(float(whole - left[e.target.index]))
    expected = pytest.approx(np.mean(drops), abs=1e-9)
    assert metrics.comprehensiveness(e, case) == expected
    model = case.source.model  # the text is rebuilt from the explanation
    assert metrics.comprehensiveness(e, model, tokenizer=tiny.tokenizer()) == expected
    assert -1 <= metrics.saliency_rho(e, case) <= 1
    assert -1 <= metrics.blank_out_rho(e, case) <= 1


def test_a_target_within_the_prefix_is_read_where_it_moves():
    case = case_of("bart")
    e = explain_case(case, "alti", focus=S + 1)  # what follows "a", in the midst of the prefix
    ids = [token.id for token in case.encoding.tokens]
    at = metrics.evidence(e, case)
    source_gone, first_gone = at.probabilities([({1, 2}, "delete"), ({S + 1}, "delete")])
    left = asked(case, [ids[0], *ids[3:S]], ids[S:], row=1)
    assert source_gone == pytest.approx(float(left[e.target.index]), abs=1e-9)
    assert first_gone == 0  # the token that it is read from is gone


@pytest.mark.parametrize(("family", "shape"), FAMILIES)
def test_gradients_by_finite_differences(family, shape):
    case = case_of(family, **shape)
    model, step = case.source.model, 1e-3  # T5's norms compute in float32, come what may
    tables = {id(w): w for n, w in model.named_parameters() if "shared" in n or "embed_tokens" in n}
    ids = [token.id for token in case.encoding.tokens]
    places = [1, 3, S + 2]  # "the", "is", "good": each stands once in both texts
    target = next(i for i in range(5, 50) if i not in ids)

    def logit():
        with torch.no_grad():
            return float(model(**case.encoding.inputs).logits[0, -1, target])

    slopes = []
    for place in places:
        rows = [table.data[ids[place]] for table in tables.values()]
        slope = np.zeros(len(rows[0]))
        for d in range(len(slope)):
            values = []
            for change in (step, -2 * step, step):
                for row in rows:
                    row[d] += change
                values.append(logit())
            slope[d] = (values[0] - values[1]) / (2 * step)
        slopes.append(slope)
    found = explain_case(case, "gradient", target=target, of="logit").scores[places]
    expected = np.linalg.norm(slopes, axis=1)
    np.testing.assert_allclose(found / found[0], expected / expected[0], rtol=1e-3)


@pytest.mark.parametrize(("family", "shape"), FAMILIES)
def test_integrated_gradients_add_up(family, shape):
    case = case_of(family, **shape)
    e = explain_case(case, "integrated_gradients", of="logit")
    assert len(e.scores) == S + T
    assert abs(e.info["convergence_delta"]) < 1e-5
    modules = case.source.model.modules()
    assert not any(module._forward_hooks for module in modules)


def test_hooks_are_gone_after_an_error(monkeypatch):
    case = case_of("t5")
    monkeypatch.setattr(import_module("mixwidget.models.gradients"), "read", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        explain_case(case, "gradient")
    assert not any(module._forward_hooks for module in case.source.model.modules())


def test_what_is_not_defined_is_refused_in_words():
    model, options = tiny.model("bart", "Seq2SeqLM"), {"tokenizer": tiny.tokenizer()}
    with pytest.raises(UnsupportedMethodError, match="encoder-decoder"):
        explain(model, TEXT, method="hta", text_pair=PREFIX, **options)
    model.config.decoder_start_token_id = model.config.bos_token_id = None
    with pytest.raises(InputError, match="decoder_start_token_id"):
        explain(model, TEXT, method="alti", **options)
