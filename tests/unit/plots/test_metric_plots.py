"""Figures of metrics: they are Figures, they show the numbers, they refuse nothing to show."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from mixwidget import demo, metrics, plot_agreement, plot_curves, plot_layers
from mixwidget.engine import prepare
from mixwidget.errors import InputError


@pytest.fixture(scope="module")
def case():
    return prepare(demo.load()[0], demo.SENTENCE)


def shown(figure: Figure, path) -> Figure:
    figure.savefig(path / "figure.pdf")
    figure.savefig(path / "figure.png")
    assert (path / "figure.png").stat().st_size > 5000
    return figure


def test_curves_of_methods_with_a_random_band(case, tmp_path):
    made = {m: metrics.explain_case(case, m) for m in ("alti", "raw_attention")}
    curves = {name: metrics.curve(e, case) for name, e in made.items()}
    floor = [metrics.explain_case(case, "random", seed=seed) for seed in range(3)]
    curves["random"] = [metrics.curve(e, case) for e in floor]
    axes = shown(plot_curves(curves, title="$not a formula$ & more"), tmp_path).axes[0]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), curves["alti"].probabilities)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [*made, "random"]
    assert len(axes.collections) == 1


def test_curves_of_texts_of_different_lengths(case, tmp_path):
    other = prepare(case.source, "a boring film")
    curves = [metrics.curve(metrics.explain_case(c, "alti"), c) for c in (case, other)]
    axes = shown(plot_curves({"alti": curves}), tmp_path).axes[0]
    assert len(axes.lines[0].get_xdata()) == 21


def test_curves_of_a_report(case, tmp_path):
    report = metrics.faithfulness_report(case, ["alti", "no_such"], seeds=3)
    axes = shown(plot_curves(report), tmp_path).axes[0]
    assert len(axes.lines) == 2
    assert axes.get_ylabel() == "probability of positive"


@pytest.mark.parametrize("measure", ["spearman", "kendall", "jaccard"])
def test_agreement_is_written_into_its_cells(case, tmp_path, measure):
    made = [metrics.explain_case(case, m) for m in ("alti", "raw_attention", "globenc")]
    axes = shown(plot_agreement(made, measure), tmp_path).axes[0]
    expected = metrics.agreement(made[0], made[1], special=False)[measure]
    assert axes.texts[1].get_text() == f"{expected:.2f}"
    name = "blues" if measure == "jaccard" else "signed"
    assert axes.images[0].cmap.name == f"mixwidget_{name}"  # the hues of all other figures
    assert axes.images[0].norm.vmax == 1


def test_layers_of_values_and_of_a_benchmark(tmp_path):
    axes = shown(plot_layers({"a": [1, 2, 3], "random": [0, 0, 1]}, label="x"), tmp_path).axes[0]
    np.testing.assert_allclose(np.asarray(axes.lines[0].get_ydata(), float), [1, 2, 3])
    frame = pd.DataFrame(
        {
            "method": ["m", "m", "k", "k"],
            "metric": ["cue_dot(layer=10)", "cue_dot(layer=2)"] * 2,
            "mean": [1.0, 2.0, 3.0, 4.0],
            "stderr": [0.1] * 4,
        }
    )
    axes = shown(plot_layers(frame), tmp_path).axes[0]
    np.testing.assert_allclose(
        np.asarray(axes.lines[0].get_ydata(), float), [2, 1]
    )  # layer 2 before layer 10
    assert axes.get_ylabel() == r"cue_dot"


def test_nothing_to_draw_is_refused(case):
    with pytest.raises(InputError, match="no curve"):
        plot_curves({})
    with pytest.raises(InputError, match="no curve"):
        plot_curves({"random": []})
    with pytest.raises(InputError, match="two explanations"):
        plot_agreement([metrics.explain_case(case, "alti")])
    with pytest.raises(InputError, match="nothing"):
        plot_layers({})
    with pytest.raises(InputError, match="several layers"):
        plot_layers(pd.DataFrame({"method": ["a"], "metric": ["aopc"], "mean": [1.0]}))
