"""Syntactic and positional heads, found on models whose heads are known."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mixwidget import HeadMasks, demo, explain, head_masks
from mixwidget.errors import InputError, MissingExtraError
from mixwidget.methods.head_masks import FILE, random_mask, tokens_of_words
from mixwidget.methods.masks import corrupted_mask
from mixwidget.models import encode, open_source
from tests.lib import tiny


@dataclass
class Word:
    """What a parser says about a word, as spaCy spells it."""

    text: str
    i: int
    idx: int
    dep_: str = "dep"
    head: Any = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.text)


def parser(relations: dict[int, tuple[str, int]]) -> Any:
    """A parser that gives word i the relation and head it is told."""

    def parse(text: str) -> list[Word]:
        words, at = [], 0
        for i, piece in enumerate(text.split()):
            at = text.index(piece, at)
            words.append(Word(piece, i, at))
            at += len(piece)
        for word in words:
            relation, head = relations.get(word.i, ("dep", word.i))
            word.dep_, word.head = relation, words[head]
        return words

    return parse


TEXTS = ["the film is not bad", "the plot was never boring", "a film is thin and deep"]


def constructed() -> Any:
    """One layer: head 0 looks at the token before, head 1 at its own place, head 2 at the word
    "film" or "plot" wherever it is, head 3 at no place in particular."""
    model = tiny.model("bert", num_hidden_layers=1, hidden_size=64, num_attention_heads=4).double()
    with torch.no_grad():
        words, places = (
            model.bert.embeddings.word_embeddings.weight,
            model.bert.embeddings.position_embeddings.weight,
        )
        for tensor in (words, places, model.bert.embeddings.token_type_embeddings.weight):
            tensor.zero_()
        for p in range(16):
            places[p, p] = 1.0
        for word in ("film", "plot"):
            words[tiny.VOCAB[word], 40] = 3.0
        norm = model.bert.embeddings.LayerNorm
        norm.weight.fill_(1.0)
        norm.bias.zero_()
        attention = model.bert.encoder.layer[0].attention.self
        for linear in (attention.query, attention.key):
            linear.weight.zero_()
            linear.bias.zero_()
        for p in range(16):
            attention.query.weight[p, p] = 10.0  # head 0: features 0 to 15
            if p + 1 < 16:
                attention.key.weight[p + 1, p] = 10.0  # the key of place p answers place p + 1
            attention.query.weight[16 + p, p] = 10.0
            attention.key.weight[16 + p, p] = 10.0
        attention.query.bias[32] = 10.0
        attention.key.weight[32, 40] = 10.0
        attention.query.bias[48:] = torch.randn(16).double()
        attention.key.weight[48:] = torch.randn(16, 64).double() * 2
    return model


def test_known_heads_are_found() -> None:
    relations = {4: ("nsubj", 1), 2: ("dobj", 1), 0: ("det", 1)}
    found = head_masks(
        constructed(), TEXTS, parser(relations), tokenizer=tiny.tokenizer(), progress=False
    )
    assert found.positional[0, :2].tolist() == [1, 1]
    assert found.offsets[0, :2].tolist() == [-1, 0]
    assert found.positional_shares[0, 0] == 1
    assert found.relations == ("nsubj", "obj", "amod", "advmod")
    assert found.words.tolist() == [3, 3, 0, 0]
    assert found.offset_shares.tolist() == [1, 1, 0, 0]
    # Head 2 follows both relations, but their heads lie at one distance: no syntax in that.
    assert found.syntactic_shares[:2, 0, 2].tolist() == [1, 1]
    assert found.syntactic[0, 2] == 0
    assert found.tokens == sum(len(text.split()) for text in TEXTS)


def test_syntax_beyond_a_fixed_offset() -> None:
    texts = ["film is not bad", "is film not bad", "not bad is film", "bad film is not"]

    def parse(text: str) -> list[Word]:
        noun = text.split().index("film")
        subject = text.split().index("bad")
        return parser({subject: ("nsubj", noun)})(text)

    found = head_masks(constructed(), texts, parse, tokenizer=tiny.tokenizer(), progress=False)
    assert found.syntactic_shares[0, 0, 2] == 1
    assert found.offset_shares[0] == 0.25  # three and two before, two and one after
    assert found.syntactic[0].tolist()[2] == 1
    assert found.mask[0, 2] == 1
    np.testing.assert_array_equal(found.mask, np.maximum(found.syntactic, found.positional))


def test_words_and_tokens_align_by_characters() -> None:
    source = open_source(tiny.model("bert"), tiny.tokenizer())
    text = "never  thins, bad"
    tokens = encode(source, text).tokens
    words = parser({})("never  thins, bad")
    places = tokens_of_words(tokens, words)
    assert [[tokens[t] for t in places[w.i]] for w in words] == [
        ["never"],
        ["thin", "##s", ","],
        ["bad"],
    ]


def test_random_masks_of_equal_size() -> None:
    mask = np.array([[1, 0, 0, 1], [0, 1, 0, 0]])
    drawn = random_mask(mask, 3)
    assert drawn.shape == mask.shape
    assert drawn.sum() == 3
    np.testing.assert_array_equal(drawn, random_mask(mask, 3))
    assert any((random_mask(mask, seed) != drawn).any() for seed in range(5))


def test_thresholds_and_relations_are_yours() -> None:
    relations = {4: ("nsubj", 1), 2: ("dobj", 1), 0: ("det", 1)}
    given: dict[str, Any] = {"tokenizer": tiny.tokenizer(), "progress": False}
    parse = parser(relations)
    found = head_masks(constructed(), TEXTS, parse, relations=["det", "dobj"], **given)
    assert found.relations == ("det", "obj")
    assert found.words.tolist() == [3, 3]
    assert found.distances == {"det": {1: 3}, "obj": {-1: 3}}
    strict = head_masks(constructed(), TEXTS, parse, share=1.0, **given)
    assert strict.positional.sum() == 0  # more than all of them never
    loose = head_masks(constructed(), TEXTS, parse, margin=0.0, share=0.0, **given)
    assert loose.positional.all()
    assert (loose.margin, loose.share) == (0.0, 0.0)
    for wrong in ({"relations": "det"}, {"relations": []}, {"margin": 2}, {"share": -1}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            head_masks(constructed(), TEXTS, parse, **wrong, **given)


def test_how_far_on_words_depend() -> None:
    relations = {4: ("nsubj", 1), 2: ("dobj", 1)}
    found = head_masks(
        constructed(), TEXTS, parser(relations), tokenizer=tiny.tokenizer(), progress=False
    )
    table = found.distance_shares()
    assert list(zip(table.relation, table.distance, table["count"], table.share, strict=True)) == [
        ("nsubj", -3, 3, 1.0),
        ("obj", -1, 3, 1.0),
    ]


def test_a_corrupted_mask_lets_other_heads_in() -> None:
    mask = np.array([[1, 0, 0, 1], [0, 1, 0, 0]])
    for rate, more in ((0.0, 0), (0.4, 2), (1.0, 5)):
        made = corrupted_mask(mask, rate, 1)
        assert made.sum() == 3 + more
        assert (made >= mask).all()
    assert (corrupted_mask(mask, 0.4, 1) == corrupted_mask(mask, 0.4, 1)).all()
    assert mask.sum() == 3
    with pytest.raises(InputError, match="rate is 2"):
        corrupted_mask(mask, 2)


def test_masks_are_kept_in_a_file(tmp_path: Path) -> None:
    asked = []

    def parse(text: str) -> Any:
        asked.append(text)
        return parser({2: ("dobj", 1)})(text)

    given: dict[str, Any] = {"tokenizer": tiny.tokenizer(), "progress": False}
    given["file"] = tmp_path / "masks.json"
    found = head_masks(constructed(), TEXTS, parse, **given)
    again = head_masks(constructed(), TEXTS, parse, **given)
    assert asked == TEXTS
    np.testing.assert_array_equal(again.mask, found.mask)
    assert again.distances == found.distances
    before = given["file"].read_text()
    for other in ({"texts": TEXTS[1:]}, {"share": 0.5}, {"model": tiny.model("bert")}):
        call = {"model": constructed(), "texts": TEXTS, **other}
        with pytest.raises(InputError, match="another model, other texts or other settings"):
            head_masks(nlp=parse, **call, **given)
    assert given["file"].read_text() == before


def found_masks() -> HeadMasks:
    return head_masks(
        tiny.model("bert"), TEXTS, parser({}), tokenizer=tiny.tokenizer(), progress=False
    )


def test_save_load_plot_and_use(tmp_path: Path) -> None:
    found = found_masks()
    assert found.random().sum() == found.mask.sum()
    found.save(tmp_path / "masks.json")
    again = HeadMasks.load(tmp_path / "masks.json")
    np.testing.assert_array_equal(found.mask, again.mask)
    np.testing.assert_allclose(found.positional_shares, again.positional_shares, atol=1e-4)
    found.plot().savefig(tmp_path / "heads.png")
    assert (tmp_path / "heads.png").stat().st_size > 1000
    used = explain(tiny.model("bert"), TEXTS[0], "mask_lrp", mask=found, tokenizer=tiny.tokenizer())
    assert used.info["mask"] == found.mask.tolist()


def test_without_a_mask_positional_heads_of_the_text_are_used() -> None:
    found = explain(constructed(), TEXTS[0], "mask_lrp", tokenizer=tiny.tokenizer())
    assert found.info["mask"][0][:2] == [1, 1]
    assert "this text alone" in found.info["mask_note"]


def test_the_demo_model_brings_its_masks() -> None:
    model, tokenizer = demo.load()
    found = explain(model, demo.SENTENCE, "mask_lrp", tokenizer=tokenizer)
    if not (demo.FOLDER / FILE).exists():
        pytest.skip("the demo model has no masks yet (tools/make_demo_masks.py)")
    assert found.info["mask_note"].startswith("the demo model's own")
    assert found.info["mask"] == HeadMasks.load(demo.FOLDER / FILE).mask.tolist()


def test_missing_spacy_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtraError, match=r"mixwidget\[syntax\]"):
        head_masks(tiny.model("bert"), TEXTS, tokenizer=tiny.tokenizer())


@pytest.mark.parametrize("texts", ["one text", [], None])
def test_wrong_texts(texts: Any) -> None:
    with pytest.raises(InputError, match="list"):
        head_masks(tiny.model("bert"), texts, parser({}), tokenizer=tiny.tokenizer())


def test_wrong_pipeline() -> None:
    with pytest.raises(InputError, match="pipeline"):
        head_masks(tiny.model("bert"), TEXTS, 3, tokenizer=tiny.tokenizer())


@pytest.mark.slow
def test_with_spacy() -> None:
    spacy = pytest.importorskip("spacy", reason="spaCy is not installed (extra `syntax`)")
    with pytest.raises(MissingExtraError, match="no_such_pipeline"):
        head_masks(tiny.model("bert"), TEXTS, "no_such_pipeline", tokenizer=tiny.tokenizer())
    if not any(name.startswith("en") for name in spacy.util.get_installed_models()):
        pytest.skip("no English spaCy pipeline is installed")
    model, tokenizer = demo.load()
    texts = ["the film never finds a good plot .", "we saw a very deep film ."]
    found = head_masks(model, texts, tokenizer=tokenizer, progress=False)
    assert found.words.tolist()[:3] == [2, 2, 2]  # film, we; plot, film; good, deep
    assert ((found.syntactic_shares >= 0) & (found.syntactic_shares <= 1)).all()
