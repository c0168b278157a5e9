"""Figures: every kind draws every method it can, says what it shows, and takes text as it is."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure

from mixwidget import HeadMasks, demo, explain, metrics
from mixwidget.errors import InputError, UnsupportedMethodError
from mixwidget.plots import KINDS, canvas, colours, graph_model, units
from tests.lib import tiny

TEXT = "the film is not bad , it was never boring"


@pytest.fixture(scope="module")
def loaded():
    return tiny.model("bert"), tiny.tokenizer()


@pytest.fixture(scope="module")
def explained(loaded):
    model, tokenizer = loaded
    ids = ["alti", "attention_rollout", "attention_flow", "globenc", "gae", "attcat", "gradient"]
    return {id: explain(model, TEXT, method=id, tokenizer=tokenizer) for id in ids}


def said(figure: Figure) -> str:
    """All text of a figure."""
    figure.draw_without_rendering()
    return "\n".join(text.get_text() for text in figure.findobj(match=_is_text))


def _is_text(artist: object) -> bool:
    return hasattr(artist, "get_text") and hasattr(artist, "get_parse_math")


@pytest.mark.parametrize("kind", [None, *KINDS])
@pytest.mark.parametrize("id", ["alti", "attention_flow", "globenc", "gae", "attcat", "gradient"])
def test_every_kind_of_every_kind_of_method(explained, kind, id, tmp_path):
    e = explained[id]
    options = {"others": [explained["attention_rollout"]]} if kind == "compare" else {}
    impossible = {"attcat": {"map", "graph", "multiples"}}
    impossible["gradient"] = {*impossible["attcat"], "layers"}
    if kind in impossible.get(id, ()):
        with pytest.raises(UnsupportedMethodError, match="kind="):
            e.plot(kind, **options)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = e.plot(kind, **options)
        figure.savefig(tmp_path / "figure.png")
        if id == "alti":
            figure.savefig(tmp_path / "figure.svg")
    assert isinstance(figure, Figure)
    assert (tmp_path / "figure.png").stat().st_size > 4000
    assert figure._repr_png_().startswith(b"\x89PNG")  # shown in notebooks without pyplot


def test_titles_are_words(explained):
    alti = explained["alti"]
    assert "what went into [CLS] at layer 2, from the input" in said(alti.plot())
    assert "at layer 1, from the input" in said(alti.plot("map", layer=1))
    alone = said(alti.plot("map", layer=0, how="layer"))
    assert "in layer 0 alone, from the input" in alone
    assert "what layer 0 put out" in said(alti.plot("text", layer=1, how="layer"))
    label = explained["attcat"].target.label
    assert f"speaks for or against “{label}”" in said(explained["attcat"].plot())
    assert "alone" not in said(explained["attcat"].plot(how="sum"))
    assert "at layer 1 alone" in said(explained["attcat"].plot(layer=1))
    other = alti.with_focus(2)
    assert "what went into “film”" in said(other.plot("layers"))
    assert "Mine" in said(alti.plot(title="Mine"))
    assert "what went into" not in said(alti.plot(title=""))


def test_text_of_users_is_never_a_formula(loaded, tmp_path):
    model, tokenizer = loaded
    text = r"the $\frac{1}{0}$ film $x^2$ is <b>not</b> bad & never_boring \alpha $"
    tokenizer = tiny.tokenizer()
    tokenizer.add_tokens([r"$\frac{1}{0}$", "$x^2$", r"\alpha"])
    model = tiny.model("bert", vocab_size=len(tokenizer))
    e = explain(model, text, method="alti", tokenizer=tokenizer)
    assert r"$\frac{1}{0}$" in e.tokens
    for kind in KINDS:
        figure = e.plot(kind, **({"others": [e]} if kind == "compare" else {}))
        figure.savefig(tmp_path / "figure.png")
        for text_artist in figure.findobj(match=_is_text):
            if "$" in text_artist.get_text():
                assert not text_artist.get_parse_math()


def test_characters_without_a_font_become_boxes_and_are_explained():
    private = "\U0010fffd"
    assert canvas.drawable(f"a{private}") == "a□"
    assert canvas.drawable("naïve ☺") == "naïve ☺"
    assert "no installed font" in said(canvas.Sheet(3, 1, [private]).figure)
    assert "no installed font" not in said(canvas.Sheet(3, 1, ["plain"]).figure)


def test_long_texts_and_pairs_are_drawn(loaded, tmp_path):
    model, tokenizer = loaded
    words = ["the", "film", "is", "not", "bad", "and", "never", "boring", "but", "deep"]
    long = explain(model, " ".join(words * 5), method="alti", tokenizer=tokenizer)
    pair = explain(model, TEXT, method="alti", tokenizer=tokenizer, text_pair="a thin plot")
    for e in (long, pair):
        for kind in ("text", "map", "layers", "graph", "multiples"):
            figure = e.plot(kind)
            figure.savefig(tmp_path / "figure.png")
            width, height = figure.get_size_inches()
            assert 4 < width < 13, (kind, width)
            assert 0.5 < height < 12, (kind, height)
    assert units.lay_out(pair).breaks == [12]


def test_200_tokens_fit_on_16_inches():
    tokenizer = tiny.tokenizer()
    tokenizer.model_max_length = 256
    model = tiny.model("bert", max_position_embeddings=256)
    for id, kinds in {
        "raw_attention": ("text", "map", "layers", "graph", "multiples", "heads"),
        "attcat": ("text", "layers"),
    }.items():
        e = explain(model, "the film " * 99, method=id, tokenizer=tokenizer)
        assert len(e.tokens) == 200
        for kind in kinds:
            assert max(e.plot(kind).get_size_inches()) <= 16, (id, kind)
        both = e.plot("compare", others=[e, e], **({"of": "map"} if "map" in kinds else {}))
        assert max(both.get_size_inches()) <= 16


@pytest.mark.parametrize("kind", ["map", "layers", "graph", "heads"])
def test_axes_of_ones_own(loaded, kind, tmp_path):
    model, tokenizer = loaded
    e = explain(model, TEXT, method="raw_attention", tokenizer=tokenizer)
    figure = Figure(figsize=(9, 4))
    left, right = figure.subplots(1, 2)
    assert e.plot(kind, ax=right) is figure
    figure.savefig(tmp_path / "figure.png")
    assert right.get_title(loc="left").startswith("Raw attention")
    assert right.has_data()
    assert not left.has_data()


def test_heads_are_those_of_the_model(loaded):
    model, tokenizer = loaded
    e = explain(model, TEXT, method="raw_attention", tokenizer=tokenizer)
    assert e.head_scores is not None
    np.testing.assert_allclose(e.head_scores.mean(1), e.maps.mean(1), atol=1e-6)
    image = e.plot("heads").axes[0].images[0].get_array()
    layers, heads, n = e.head_scores.shape
    assert image.shape == (layers * heads, n)
    np.testing.assert_allclose(image[-1], e.head_scores[0, 0], atol=1e-6)
    np.testing.assert_allclose(image[0], e.head_scores[-1, -1], atol=1e-6)
    wrote = explain(model, TEXT, method="logit", tokenizer=tokenizer)
    assert "for or against" in said(wrote.plot("heads", layer=1))
    with pytest.raises(UnsupportedMethodError, match="single heads"):
        explain(model, TEXT, method="alti", tokenizer=tokenizer).plot("heads")


def test_figures_keep_their_text_inside(explained):
    for kind in KINDS:
        options = {"others": [explained["attention_rollout"]]} if kind == "compare" else {}
        figure = explained["alti"].plot(kind, **options)
        renderer = canvas.FigureCanvasAgg(figure).get_renderer()
        box = figure.bbox
        for artist in figure.findobj(match=_is_text):
            if not artist.get_text() or not artist.get_visible():
                continue
            extent = artist.get_window_extent(renderer)
            assert extent.x0 >= box.x0 - 1, (kind, artist.get_text())
            assert extent.x1 <= box.x1 + 1, (kind, artist.get_text())
            assert extent.y0 >= box.y0 - 1, (kind, artist.get_text())
            assert extent.y1 <= box.y1 + 1, (kind, artist.get_text())


def test_special_tokens_can_be_hidden_and_words_merged(loaded):
    e = explain(loaded[0], "the films , badly", method="alti", tokenizer=loaded[1])
    plain = units.lay_out(e)
    assert plain.texts == ["[CLS]", "the", "film", "s", ",", "bad", "ly", "[SEP]"]
    np.testing.assert_allclose(plain.square(e.rollout(), False), e.rollout(), atol=1e-6)
    words = units.lay_out(e, "words", special=False)
    assert words.texts == ["the", "films", ",", "badly"]
    assert words.focus is None
    scores = words.columns(e.scores, signed=False)
    np.testing.assert_allclose(scores.sum(), e.scores.sum(), rtol=1e-5)
    raw = np.array([e.scores[1], e.scores[2:4].sum(), e.scores[4], e.scores[5:7].sum()])
    np.testing.assert_allclose(scores, raw / raw.sum() * e.scores.sum(), rtol=1e-5)
    np.testing.assert_allclose(words.columns(e.scores, signed=True), raw, rtol=1e-5)
    assert "[SEP]" not in said(e.plot("text", special=False, unit="words", title=""))


@pytest.mark.parametrize("id", ["alti", "globenc", "gae"])
def test_trace_ends_in_the_rollout(explained, id):
    e = explained[id]
    steps = graph_model.steps_of(e.maps, e.combine)
    for layer in range(len(steps)):
        traced = graph_model.trace_down(steps[: layer + 1], 3)
        np.testing.assert_allclose(traced.nodes[0], e.rollout(layer)[3], atol=1e-6)
        np.testing.assert_allclose(traced.nodes.sum(-1), 1)
        np.testing.assert_allclose(traced.edges.sum((1, 2)), 1)
        np.testing.assert_allclose(traced.edges.sum(2), traced.nodes[1:], atol=1e-12)
        np.testing.assert_allclose(traced.edges.sum(1), traced.nodes[:-1], atol=1e-12)


def test_edges_are_chosen_by_the_rule_of_the_widget():
    """Against the strongest between two tokens of the same layer: neither what tokens keep of
    themselves nor another layer hides an edge."""
    weights = np.array(
        [
            [[0.90, 0.10, 0.00], [0.02, 0.968, 0.012], [0.00, 0.009, 0.991]],
            [[0.50, 0.50, 0.00], [0.04, 0.90, 0.06], [0.00, 0.02, 0.98]],
        ]
    )
    own = {(layer, k, k) for layer in (0, 1) for k in range(3)}
    kept = graph_model.chosen_edges(weights, 0.1, 0)
    between = {(0, 0, 1), (0, 1, 0), (0, 1, 2), (1, 0, 1), (1, 1, 2)}
    assert {edge[:3] for edge in kept} == own | between
    assert [edge[3] for edge in kept] == sorted(edge[3] for edge in kept)  # the strongest on top
    one = [edge[:3] for edge in graph_model.chosen_edges(weights, 0.9, 1)]
    assert own < set(one)  # the strongest to another token, besides what a token keeps
    assert len(one) == 2 * len(own)
    assert len(graph_model.chosen_edges(weights, 0.0, 3)) == 14  # nothing is drawn for zero


def test_diffuse_maps_are_thinned() -> None:
    """Thousands of equal lines are a slab; the strongest of every layer stay."""
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 1.0, (2, 60, 60))
    weights[1] *= 0.01
    edges = graph_model.chosen_edges(weights, 0.1, 0)
    between = [edge for edge in edges if edge[1] != edge[2]]
    assert len(between) < 2 * 125 / 0.9
    assert {edge[0] for edge in between} == {0, 1}
    assert len(edges) - len(between) == 120
    assert len(graph_model.chosen_edges(weights, 0.01, 0)) > 2 * len(edges)


def lines_of(figure: Figure) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """(between tokens, kept by tokens): the lines of a graph, each as its two ends."""
    drawn = figure.findobj(match=lambda artist: artist.get_gid() == "edges")
    points = [patch.get_path().vertices.reshape(-1, 2, 2) for patch in drawn]
    kept = figure.findobj(match=lambda artist: artist.get_gid() == "kept")
    return list(np.concatenate(points)), [line for group in kept for line in group.get_segments()]


def test_graphs_are_drawn_as_in_the_widget():
    model, tokenizer = demo.load()
    e = explain(model, "not bad at all", method="alti", tokenizer=tokenizer)
    count = 0
    for map in graph_model.steps_of(e.maps, e.combine):
        peak = max(map[i, j] for i in range(6) for j in range(6) if i != j)
        count += sum(map[i, j] >= 0.1 * peak for i in range(6) for j in range(6) if i != j)
    assert count > 40
    between, kept = lines_of(e.plot("graph"))
    assert len(between) == count  # straight: two ends each
    assert all(a[0] != b[0] for a, b in between)
    assert len(kept) == 4 * 6
    assert all(a[0] == b[0] for a, b in kept)
    assert lines_of(e.plot("graph", top_k=None))[0]  # as the still picture asks
    traced, kept = lines_of(e.plot("graph", trace=True))
    assert not kept
    assert any(a[0] == b[0] for a, b in traced)


def test_folds_have_no_edges_and_hidden_tokens_leave_shares(loaded):
    model, tokenizer = loaded
    e = explain(
        model, " ".join(["the film is not bad and it was never"] * 5), "alti", tokenizer=tokenizer
    )
    layout = graph_model.folded(units.lay_out(e), e.maps.sum((0, 1)), 8, {0})
    weights = graph_model.without_folds(np.ones((2, *[len(layout.units)] * 2)), layout)
    single = [not unit.fold for unit in layout.units]
    assert sum(single) < len(single)
    np.testing.assert_array_equal(weights.any(0), np.outer(single, single))
    assert "folded (⋯), their edges left out" in said(e.plot("graph", fold=8))
    assert "[CLS]" in units.lay_out(e, special=False, keep=0).texts
    steps = graph_model.steps_of(e.maps, e.combine)
    word = graph_model.trace_down(steps, [2, 3])
    both = [graph_model.trace_down(steps, start).nodes for start in (2, 3)]
    np.testing.assert_allclose(word.nodes, np.mean(both, 0), atol=1e-12)


def test_folding_keeps_everything(explained):
    layout = units.lay_out(explained["alti"])
    weights = np.zeros(len(layout.units))
    weights[[0, 4]] = 1
    folded = graph_model.folded(layout, weights, 2, {0})
    assert folded.texts == ["[CLS]", "⋯3", "not", f"⋯{len(layout.units) - 5}"]
    assert sorted(t for unit in folded.units for t in unit.tokens) == list(range(layout.tokens))
    assert graph_model.folded(layout, weights, 99, {0}) is layout


def test_compare_states_spearman_and_difference(explained):
    first, second = explained["alti"], explained["attention_rollout"]
    figure = first.plot("compare", others=[second, explained["attcat"]])
    rho = metrics.agreement(first, second)["spearman"]
    without = metrics.agreement(first, second, special=False)["spearman"]
    words = said(figure)
    assert f"Spearman {rho:.2f}".replace("-", "−") in words
    assert f"{without:.2f} without special tokens".replace("-", "−") in words
    assert "ALTI minus each of the others" in words
    assert "minus" not in said(first.plot("compare", others=[second], difference=False))
    assert "minus" in said(first.plot("compare", others=[second], of="map"))


def test_names_of_the_callers_own(explained):
    first, second = explained["alti"], explained["globenc"]
    for kind in ("compare", "multiples"):
        words = said(first.plot(kind, others=[second], names=["one $1", "two $2"]))
        assert "one $1" in words
        assert "two $2" in words
        assert "GlobEnc" not in words


def test_head_masks_are_drawn(tmp_path):
    shape = (3, 4)
    rng = np.random.default_rng(0)
    masks = HeadMasks(
        syntactic=np.eye(*shape, dtype=np.int8),
        positional=np.eye(*shape, k=1, dtype=np.int8),
        syntactic_shares=rng.random((4, *shape)),
        offset_shares=rng.random(4),
        positional_shares=rng.random(shape),
        offsets=np.ones(shape, dtype=np.int64),
        words=np.ones(4, dtype=np.int64),
        tokens=9,
    )
    figure = masks.plot()
    figure.savefig(tmp_path / "figure.png")
    assert "3 positional (P), 3 syntactic (S), of 12" in said(figure)


def test_scales_are_those_of_the_widget():
    blues = colours.colour_map("blues")
    assert [round(255 * c) for c in blues(0)[:3]] == [255, 255, 255]
    assert [round(255 * c) for c in blues(255)[:3]] == [8, 47, 96]
    signed = colours.scale_for(np.array([-2.0, 1.0]), signed=True)
    assert (signed.norm.vmin, signed.norm.vmax) == (-2, 2)
    assert signed.colour(-2)[0] > signed.colour(-2)[2]  # orange below, blue above
    assert signed.colour(2)[2] > signed.colour(2)[0]
    assert (signed.ink(2), signed.ink(0)) == ("white", colours.TEXT)
    values = np.r_[np.full(999, 0.1), 5.0]
    assert colours.scale_for(np.zeros(3), signed=False).norm.vmax == 1
    assert colours.scale_for(values, signed=False, darkest=10).norm.vmax == 10


def test_one_strong_token_or_a_diagonal_does_not_set_the_scale():
    row = colours.row_scale(np.array([0.9, 0.1, -0.05]), signed=True)
    assert (row.norm.vmax, row.clipped) == (pytest.approx(0.16), True)
    assert not colours.row_scale(np.array([0.14, 0.1, 0.05]), signed=False).clipped
    rows = colours.row_scale(np.array([[0.9, 0.1], [0.8, 0.2]]), signed=False)
    assert rows.norm.vmax == pytest.approx(0.32)
    assert colours.row_scale(np.array([0.9]), signed=False).norm.vmax == 0.9
    maps = np.full((3, 20, 20), 0.01) + 0.8 * np.eye(20)
    scale = colours.map_scale(maps, signed=False)
    assert (scale.norm.vmax, scale.clipped) == (pytest.approx(0.016), True)
    assert colours.map_scale(maps, signed=False, darkest=0.5).norm.vmax == 0.5


def test_texts_are_shaded_by_ordinary_tokens():
    model, tokenizer = demo.load()
    e = explain(model, "not bad at all", method="alti", tokenizer=tokenizer)
    assert e.scores[0] > 0.5
    assert "≥ 0.327" in said(e.plot("text"))  # what the widget writes
    other = explain(model, "not bad at all", method="attcat", tokenizer=tokenizer)
    assert "0 to ≥ 0.327" in said(e.plot("compare", others=[other]))
    assert "≥" not in said(e.plot("text", darkest=1))


def test_small_maps_share_a_scale_that_the_diagonal_does_not_set(explained):
    from dataclasses import replace

    e = explained["alti"]
    n = len(e.tokens)
    faint = np.full((3, n, n), 0.01, dtype=np.float32) * np.arange(1, 4)[:, None, None]
    e = replace(e, maps=faint + 0.9 * np.eye(n, dtype=np.float32))
    figure = e.plot("multiples")
    tops = {image.norm.vmax for axes in figure.axes for image in axes.images}
    assert len(tops) == 1
    assert max(tops) < 0.06
    assert "≥" in said(figure)
    figure = e.plot("multiples", others=[explained["globenc"]])
    maps = [axes for axes in figure.axes if axes.images and len(axes.images[0].get_array()) == n]
    named = [axes for axes in maps if axes.get_yticks().size]
    assert (len(maps), len(named)) == (6, 2)  # tokens are named beside every row


def test_every_compared_method_has_its_meaning_and_every_kind_its_bar(explained):
    signed, unsigned = explained["attcat"], explained["attention_rollout"]
    figure = signed.plot("compare", others=[unsigned, explained["alti"]], difference=False)
    heading = said(figure)
    assert "AttCAT: how much each token speaks for or against" in heading
    assert "Attention rollout, ALTI: what went into [CLS]" in heading
    bars = [axes for axes in figure.axes if axes.axison]
    assert sorted(round(axes.get_xlim()[0]) for axes in bars) == [-1, 0]
    only = unsigned.plot("compare", others=[explained["alti"]], difference=False)
    assert "ALTI: what" not in said(only)
    assert "against" not in said(only)


def test_compared_methods_without_maps_follow_the_layer(explained):
    e, layered = explained["alti"], explained["attcat"]
    how = {"how": "rollout", "layer": 1, "others": [layered, explained["gradient"]]}
    words = said(e.plot("compare", **how)).replace("\n", " ")
    assert "layers 0 to 1 added up" in words
    assert "at layer 1, from the input" in words
    assert "added up" not in said(layered.plot("text", how="rollout", layer=2))
    with pytest.raises(InputError, match="layers 0 to 2"):
        layered.plot("text", how="rollout", layer=5)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("pie", {}, "kind is 'pie'; it can be text, map"),
        ("text", {"trace": True}, "no option 'trace'"),
        ("text", {"unit": "letters"}, "unit is"),
        ("text", {"colours": "jet"}, "colours is"),
        ("map", {"how": "product"}, "how is"),
        ("map", {"layer": 9}, "layers 0 to 2"),
        ("map", {"darkest": 0}, "darkest is"),
        ("graph", {"trace": (9, 0)}, "layers 0 to 2"),
        ("graph", {"trace": "CLS"}, "True or"),
        ("graph", {"threshold": 2}, "threshold is"),
        ("graph", {"top_k": -1}, "top_k is"),
        ("compare", {}, "others="),
        ("multiples", {"names": ["one", "two"]}, "names must be 1"),
    ],
)
def test_wrong_options_are_told(explained, kind, options, message):
    with pytest.raises(InputError, match=message):
        explained["alti"].plot(kind, **options)


def test_other_texts_are_refused(loaded, explained):
    other = explain(loaded[0], "a plot", method="alti", tokenizer=loaded[1])
    for kind in ("compare", "multiples"):
        with pytest.raises(InputError, match="same text"):
            explained["alti"].plot(kind, others=[other])


def test_a_method_that_is_no_longer_registered_is_drawn(explained):
    from dataclasses import replace

    for kind in ("text", "map", "graph"):
        assert "mine" in said(replace(explained["alti"], method="mine").plot(kind))


def test_a_row_with_next_to_nothing_beside_one_token_stays_pale() -> None:
    assert colours.row_scale(np.array([0.98, 0.005, 0.004]), False).norm.vmax == pytest.approx(
        0.098
    )
    assert colours.row_scale(np.array([0.8, 0.06, 0.04]), False).norm.vmax == pytest.approx(0.096)
    assert colours.row_scale(np.array([1.0, 0.0, 0.0]), False).norm.vmax == 1
