"""`benchmark` of several models: who agrees with whom, wherever it is computed."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
import torch

from mixwidget import benchmark, demo, explain, metrics, plot_agreement
from mixwidget.errors import InputError
from mixwidget.evaluation import WorkerLostError
from mixwidget.methods.registry import forget, method
from tests.lib import pools, tiny

TEXTS = ["the film is not bad .", "a good plot", "never boring", "bad , bad film", "a deep film"]
METHODS = ["alti", "attcat"]
MEASURES = ["agreement_spearman", "agreement_kendall", "agreement_jaccard"]


def changed(seed: int) -> torch.nn.Module:
    """The demo model with noise on its weights: another seed of it."""
    model = copy.deepcopy(demo.load()[0])
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.3 * weight.std() * torch.randn(weight.shape, generator=generator)
    return model


@pytest.fixture(scope="module")
def models() -> list[torch.nn.Module]:
    return [demo.load()[0], changed(1), changed(2)]


def run(models, dataset=TEXTS, **options) -> pd.DataFrame:
    given = {"methods": METHODS, "metrics": ["aopc", "agreement"], "chunk_size": 2}
    given |= {"names": ["a", "b", "c"], "progress": False, **options}
    return benchmark(models, dataset, **given)


@pytest.fixture(scope="module")
def here(models) -> pd.DataFrame:
    return run(models)


def numbers(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[["model", "method", "metric", "mean", "stderr", "n"]]


def test_a_column_says_which_model_or_pair(models, here):
    pairs = ["a ~ b", "a ~ c", "b ~ c"]
    assert list(zip(here.model, here.method, here.metric, strict=True)) == [
        *((name, id, "aopc") for name in "abc" for id in METHODS),
        *((pair, id, measure) for id in METHODS for pair in pairs for measure in MEASURES),
    ]
    alone = benchmark(models[1], TEXTS, METHODS, ["aopc"], progress=False)
    assert "model" not in alone
    np.testing.assert_array_equal(here[here.model == "b"]["mean"], alone["mean"])


def test_agreement_is_that_of_each_text(models, here):
    own = [[explain(model, text, "attcat") for model in models] for text in TEXTS]
    for i, j, pair in ((0, 1, "a ~ b"), (0, 2, "a ~ c"), (1, 2, "b ~ c")):
        rows = here[(here.model == pair) & (here.method == "attcat")].set_index("metric")
        for measure in MEASURES:
            of = measure.removeprefix("agreement_")
            values = [metrics.agreement(row[i], row[j])[of] for row in own]
            assert rows.loc[measure, "mean"] == pytest.approx(np.nanmean(values))
            assert rows.loc[measure, "n"] == np.isfinite(values).sum()


def test_only_where_predictions_agree(models):
    flipped = copy.deepcopy(models[0])
    with torch.no_grad():
        flipped.classifier.bias += torch.tensor([2.0, -2.0])
    asked = ("agreement", {"same_prediction": True})
    found = run([models[0], flipped], methods=["alti"], metrics=[asked], names=["a", "b"])
    same = [
        explain(models[0], t, "gradient").target.index
        == explain(flipped, t, "gradient").target.index
        for t in TEXTS
    ]
    assert 0 < sum(same) < len(TEXTS)
    assert list(found.n) == [sum(same)] * 3
    assert list(found["mean"]) == pytest.approx([1.0] * 3)  # alti does not look at the head
    assert list(found.metric) == [f"{name}(same_prediction=True)" for name in MEASURES]


def test_of_one_model_its_methods_agree_or_not(models, here):
    found = benchmark(models[0], TEXTS, METHODS, ["agreement"], progress=False)
    assert list(found.method) == ["alti ~ attcat"] * 3
    pairs = [[explain(models[0], text, id) for id in METHODS] for text in TEXTS]
    values = [metrics.agreement(*pair)["spearman"] for pair in pairs]
    assert found["mean"][0] == pytest.approx(np.nanmean(values))
    one = benchmark(
        models[0], TEXTS, ["alti"], [("agreement", {"other": "attcat"})], progress=False
    )
    assert one["mean"][0] == pytest.approx(found["mean"][0])


def test_models_of_other_tokens_are_compared_by_words(models):
    other = tiny.model("bert", "SequenceClassification")
    asked = {
        "tokens": "agreement",
        "words": ("agreement", {"unit": "words", "special": False}),
    }
    found = benchmark(
        [models[0], other],
        ["a film that bored nobody", "bad film"],
        ["alti"],
        asked,
        tokenizer=[None, tiny.tokenizer()],
        progress=False,
    )
    means = found[found.example.isna()].set_index("metric")
    assert means.loc["tokens_spearman", "errors"] >= 1
    assert "different tokens" in found[found.example.notna()].error.iloc[0]
    assert means.loc["words_jaccard", "n"] >= 1


def test_models_are_named_by_their_folders(models, tmp_path):
    for name in ("x/same", "y/same", "other"):
        models[0].save_pretrained(tmp_path / name)
        demo.load()[1].save_pretrained(tmp_path / name)
    paths = [str(tmp_path / name) for name in ("x/same", "y/same", "other")]
    found = benchmark(paths, TEXTS[:1], ["alti"], ["aopc"], progress=False)
    assert list(found.model) == ["same 1", "same 2", "other"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": ["a", "a", "b"]}, "different names"),
        ({"names": ["a"]}, "different names"),
        ({"tokenizer": [None]}, "1 tokenizers for 3 models"),
        ({"metrics": [("agreement", {"no": 1})]}, "no option 'no'"),
        ({"metrics": [("agreement", {"unit": "letters"})]}, '"tokens" or "words"'),
    ],
)
def test_wrong_questions_are_refused_before_any_work(models, options, message):
    with pytest.raises(InputError, match=message):
        run(models, **options)


def test_agreement_needs_two(models):
    with pytest.raises(InputError, match="two methods"):
        benchmark(models[0], TEXTS, ["alti"], ["agreement"], progress=False)
    with pytest.raises(InputError, match="two of them"):
        benchmark(models[:1], TEXTS, ["alti"], ["agreement"], progress=False)
    with pytest.raises(InputError, match="at least one model"):
        benchmark([], TEXTS, ["alti"], ["aopc"], progress=False)


def test_neither_chunks_nor_order_nor_the_cache_matter(models, here, tmp_path):
    pd.testing.assert_frame_equal(numbers(run(models, TEXTS[::-1], chunk_size=3)), numbers(here))
    run(models, TEXTS[:2], cache=tmp_path)
    pd.testing.assert_frame_equal(numbers(run(models, cache=tmp_path)), numbers(here))
    cached = sorted(tmp_path.rglob("*.json"))
    pd.testing.assert_frame_equal(numbers(run(models, cache=tmp_path)), numbers(here))
    assert sorted(tmp_path.rglob("*.json")) == cached


def test_plots_of_models_and_their_names(models, here):
    figure = plot_agreement(here, method="attcat")
    assert [t.get_text() for t in figure.axes[0].get_xticklabels()] == ["a", "b", "c"]
    row = here[(here.metric == MEASURES[0]) & (here.method == "attcat") & (here.model == "a ~ b")]
    shown = {text.get_position(): text.get_text() for text in figure.axes[0].texts}
    assert shown[1, 0] == shown[0, 1] == f"{row['mean'].iloc[0]:.2f}"
    with pytest.raises(InputError, match="alti, attcat"):
        plot_agreement(here)
    own = [explain(model, TEXTS[0], "alti") for model in models]
    named = plot_agreement(own, names=["one", "two", "three"])
    assert [t.get_text() for t in named.axes[0].get_yticklabels()] == ["one", "two", "three"]
    with pytest.raises(InputError, match="3 names"):
        plot_agreement(own, names=["one"])
    with pytest.raises(InputError, match="agreement_spearman"):
        plot_agreement(here[here.metric == "aopc"])


def test_a_method_of_ones_own_is_known_to_workers_or_refused(models):
    @method("of_this_test", needs=("attention",))
    def of_this_test(run):
        for layer in run.layers():
            yield run.part(layer, map=run.trace.weights(layer).mean(0))

    of_this_test.__module__ = "__main__"  # as in a notebook
    try:
        found = benchmark(models[0], TEXTS[:1], ["of_this_test"], ["aopc"], progress=False)
        assert found.n[0] == 1
        with pools.spawned(1) as pool:
            with pytest.raises(InputError, match="do not know the method 'of_this_test'"):
                benchmark(models[0], TEXTS[:1], ["of_this_test"], executor=pool, progress=False)
            import tests.lib.own_method  # registers from_a_module

            named = benchmark(
                [demo.FOLDER, demo.FOLDER],
                TEXTS[:2],
                ["from_a_module"],
                ["aopc", "agreement"],
                executor=pool,
                progress=False,
            )
    finally:
        forget("of_this_test")
        forget("from_a_module")
    assert tests.lib.own_method
    assert list(named.n) == [2] * 5
    assert list(named.method) == ["from_a_module"] * 5


@pytest.mark.slow
def test_a_killed_worker_and_another_pool(models, here, tmp_path):
    notes = [tmp_path / name for name in ("before", "after")]
    for folder in notes:
        folder.mkdir()
    cache = tmp_path / "cache"
    with pools.spawned(1) as pool:
        dying = pools.Noting(pool, notes[0], killer=TEXTS[4])
        with pytest.raises(WorkerLostError, match="goes on where this one stopped"):
            run(models, executor=dying, cache=cache)
    assert dying.finished() == sorted(TEXTS[:4])  # of the first model
    with pools.spawned(2) as pool:
        second = pools.Noting(pool, notes[1])
        frame = run(models, executor=second, cache=cache)
    assert second.finished() == sorted([TEXTS[4], *TEXTS, *TEXTS])
    pd.testing.assert_frame_equal(numbers(frame), numbers(here), rtol=1e-5)


@pytest.mark.slow
def test_a_dask_cluster_of_several_models(models, here):
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        frame = run(models, executor=client.get_executor())
    pd.testing.assert_frame_equal(numbers(frame), numbers(here), rtol=1e-5)
