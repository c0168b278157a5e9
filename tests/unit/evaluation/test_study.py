"""`study`: every number again by hand, from explanations one by one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mixwidget import demo, explain, metrics, study
from mixwidget.engine import prepare
from mixwidget.errors import InputError
from mixwidget.metrics import explain_case
from tests.lib import pools, tiny

TEXTS = ["the film is not bad .", "a good plot and a good cast", "bad , bad film"]
STAGES = ["attn_norm", "attn_norm_res"]


@pytest.fixture(scope="module")
def model():
    return demo.load()[0]


@pytest.fixture(scope="module")
def found(model):
    asked = ["layers", "curves", "words"]
    return study(model, TEXTS, [*STAGES, "attcat"], "saliency_rho", asked, progress=False)


@pytest.fixture(scope="module")
def truth(model):
    """[method][how] -> [texts, layers]"""
    values: dict = {}
    for text in TEXTS:
        case = prepare(model, text)
        for id in STAGES:
            made = explain_case(case, id)
            for how in ("layer", "rollout"):
                row = [metrics.saliency_rho(made, case, how=how, layer=k) for k in range(4)]
                values.setdefault((id, how), []).append(row)
    return {key: np.array(rows) for key, rows in values.items()}


def test_every_layer_alone_and_rolled_out(found, truth):
    for (id, how), values in truth.items():
        mine = found.layers[(found.layers.method == id) & (found.layers.how == how)]
        np.testing.assert_allclose(mine["mean"], values.mean(0), atol=1e-9)
        spread = values.std(0, ddof=1) / np.sqrt(len(TEXTS))
        np.testing.assert_allclose(mine["stderr"], spread, atol=1e-9)
        assert list(mine.layer) == [0, 1, 2, 3]
        assert set(mine.n) == {3}
    attcat = found.layers[found.layers.method == "attcat"]
    assert set(attcat.how) == {"layer"}  # scores by layer are never rolled out


def test_which_layer(found, truth):
    row = found.best[(found.best.method == "attn_norm") & (found.best.how == "rollout")].iloc[0]
    means = truth["attn_norm", "rollout"].mean(0)
    assert row["layer"] == means.argmax()
    assert row["mean"] == pytest.approx(means.max())
    assert row["last"] == pytest.approx(means[-1])


def test_what_rolling_out_and_parts_add(found, truth):
    mine = found.rollout[found.rollout.method == "attn_norm_res"]
    gains = truth["attn_norm_res", "rollout"] - truth["attn_norm_res", "layer"]
    np.testing.assert_allclose(mine["mean"], gains.mean(0), atol=1e-9)
    added = found.added[found.added.how == "rollout"]
    assert set(zip(added.to, added.method, added.added, strict=True)) == {
        ("attn_norm", "attn_norm_res", "the residual")
    }
    gains = truth["attn_norm_res", "rollout"] - truth["attn_norm", "rollout"]
    np.testing.assert_allclose(added["mean"], gains.mean(0), atol=1e-9)
    spread = gains.std(0, ddof=1) / np.sqrt(len(TEXTS))
    np.testing.assert_allclose(added["stderr"], spread, atol=1e-9)


def test_mean_curves_with_bands(found, model):
    grid, rows = np.linspace(0, 1, 21), []
    for text in TEXTS:
        case = prepare(model, text)
        one = metrics.curve(explain_case(case, "attcat"), case)
        rows.append(np.interp(grid, one.shares, one.probabilities))
    mine = found.curves[found.curves.method == "attcat"]
    np.testing.assert_allclose(mine["mean"], np.mean(rows, 0), atol=1e-6)
    np.testing.assert_allclose(mine["low"], np.quantile(rows, 0.1, axis=0), atol=1e-6)
    np.testing.assert_allclose(mine["sd"], np.std(rows, 0, ddof=1), atol=1e-6)


def test_the_words_that_count(found, model):
    mine = found.words[found.words.method == "attcat"]
    own = [explain(model, text, "attcat") for text in TEXTS]
    bad = [
        (text, score)
        for text, e in zip(TEXTS, own, strict=True)
        for word, score in e.word_scores
        if word == "bad" and e.target.label == own[2].target.label
    ]
    row = mine[(mine.word == "bad") & (mine.target == own[2].target.label)].iloc[0]
    assert row["count"] == len(bad)
    assert row["texts"] == len({text for text, _ in bad})
    assert row["total"] == pytest.approx(sum(score for _, score in bad), rel=1e-5)
    assert row["example"] == max(bad, key=lambda one: one[1])[0]
    assert not set(mine.word) & {"[CLS]", "[SEP]"}
    for _, group in mine.groupby("target"):
        assert group.total.is_monotonic_decreasing


def test_maps_beside_those_of_hta():
    model, tokenizer = tiny.model("bert", "SequenceClassification"), tiny.tokenizer()
    text = "the film is not bad"
    found = study(model, [text], ["globenc"], ask="hta", tokenizer=tokenizer, progress=False).layers
    maps = [explain(model, text, id, tokenizer=tokenizer).maps for id in ("globenc", "hta")]
    for layer, (one, other) in enumerate(zip(*maps, strict=True)):
        flat = [(m / m.sum(1, keepdims=True)).ravel() for m in (one, other)]
        raw = stats.pearsonr(one.ravel(), other.ravel()).statistic
        rows = found[found.layer == layer].set_index("metric")["mean"]
        assert rows["hta"] == pytest.approx(stats.pearsonr(*flat).statistic, abs=1e-5)
        assert rows["hta_raw"] == pytest.approx(raw, abs=1e-5)
    assert set(found.metric) == {"hta", "hta_raw"}


def test_cues_by_layer_of_gradients_too():
    model, tokenizer = tiny.model("bert", "MaskedLM"), tiny.tokenizer()
    row = {"masked": "the films is [MASK] bad", "target": "is", "foil": "was", "cues": ["films"]}
    methods = ["value_zeroing", ("gradient_x_input", {"at": "layers"})]
    found = study(model, [row], methods, ["cue_dot"], tokenizer=tokenizer, progress=False)
    e = explain(
        model,
        row["masked"],
        "gradient_x_input",
        tokenizer=tokenizer,
        target=("is", "was"),
        at="layers",
    )
    mine = found.layers[found.layers.method == "gradient_x_input(at=layers)"]
    expected = [metrics.cue_dot(e, [2, 3], layer=k) for k in range(3)]
    np.testing.assert_allclose(mine["mean"], expected, atol=1e-6)


def test_of_several_models_and_plots(model):
    models = [model, tiny.model("bert", "SequenceClassification")]
    found = study(
        models,
        TEXTS,
        ["alti"],
        "saliency_rho",
        ["layers", "curves"],
        names=["a", "b"],
        tokenizer=[None, tiny.tokenizer()],
        progress=False,
    )
    assert list(dict.fromkeys(found.layers.model)) == ["a", "b"]
    legend = [t.get_text() for t in found.plot("layers").axes[0].get_legend().get_texts()]
    assert legend == ["a: alti", "b: alti"]
    grid = found.plot("grid", how="rollout").axes[0]
    assert len(grid.texts) == 4 + 3
    means = found.curves.groupby(["share", "model"])["mean"].first().unstack().to_numpy()
    line = found.plot("curves").axes[0].lines[0].get_ydata()
    np.testing.assert_allclose(line, means.mean(1), atol=1e-9)  # the band: between the models
    with pytest.raises(InputError, match="metric is 'no'"):
        found.plot(metric="no")
    with pytest.raises(InputError, match="kind is"):
        found.plot("pie")


def test_what_fails_is_told(model):
    found = study(model, ["", TEXTS[0]], ["alti", "random"], progress=False)
    told = found.failures
    assert set(told[told.method == "alti"].example) == {0}
    assert "text is empty" in told.error.iloc[0]
    assert "no layers" in told[(told.method == "random") & (told.example == 1)].error.iloc[0]
    assert set(found.layers.n) == {1}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ask": "colours"}, "ask is 'colours'"),
        ({"metrics": "kendall"}, "does not look at layers"),
        ({"metrics": ("cue_dot", {"layer": 1})}, "not a metric"),
        ({"metrics": [("cue_dot", {"layer": 1})]}, "leave out how, layer"),
        ({"methods": ["altti"]}, "Did you mean"),
        ({"target": "best"}, "target is"),
    ],
)
def test_wrong_questions_are_refused(model, options, message):
    with pytest.raises(InputError, match=message):
        study(model, TEXTS, progress=False, **options)


@pytest.mark.slow
def test_in_worker_processes_and_from_the_cache(model, found, tmp_path):
    asked = ["layers", "curves", "words"]
    with pools.spawned(2) as pool:
        there = study(
            model,
            TEXTS,
            [*STAGES, "attcat"],
            "saliency_rho",
            asked,
            pool,
            chunk_size=1,
            cache=tmp_path,
            progress=False,
        )
    for name in ("layers", "best", "rollout", "added", "curves", "words"):
        pd.testing.assert_frame_equal(getattr(there, name), getattr(found, name), rtol=1e-4)
