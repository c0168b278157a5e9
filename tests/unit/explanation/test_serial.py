"""Explanations as JSON: the same to the last bit, and clear words about wrong files."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch

from mixwidget import Explanation, explain
from mixwidget.errors import InputError, UnsupportedMethodError
from mixwidget.explanation.serial import NotAnExplanationError, decode, dumps, encode, loads
from mixwidget.methods.registry import all_methods
from mixwidget.tokens import Target
from tests.lib import tiny

TEXT = "the film is not bad ."
OF_TEXTS = [entry.id for entry in all_methods() if "answer" not in entry.needs]


@pytest.fixture(scope="module")
def made() -> dict[str, Explanation]:
    """What every method makes of one text, with the class-specific options tried too."""
    model, tokenizer = tiny.model("bert"), tiny.tokenizer()
    found = {name: explain(model, TEXT, name, tokenizer=tokenizer) for name in OF_TEXTS}
    found["contrast"] = explain(model, TEXT, "attcat", tokenizer=tokenizer, target=(0, 2))
    return found


def same(one: object, other: object) -> bool:
    """Equal in type and to the last bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return (
            one.dtype == other.dtype
            and one.shape == other.shape
            and one.tobytes() == (other.tobytes())
        )
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other or (one != one and other != other)


@pytest.mark.parametrize("name", [*OF_TEXTS, "contrast"])
def test_round_trip_is_exact(made: dict[str, Explanation], name: str) -> None:
    before = made[name]
    after = Explanation.from_json(before.to_json())
    for field in ("maps", "layer_scores", "own_scores", "scores", "focus", "method"):
        assert same(getattr(before, field), getattr(after, field)), field
    assert [(str(t), t.as_dict()) for t in before.tokens] == [
        (str(t), t.as_dict()) for t in after.tokens
    ]
    assert vars(before.target) == vars(after.target)
    assert (before.combine, before.scores_from) == (after.combine, after.scores_from)
    assert same(before.params, after.params)
    assert same(decode(encode(before.info)), after.info)
    assert after.to_json() == before.to_json()
    if before.maps is not None:
        np.testing.assert_array_equal(before.rollout(), after.rollout())
        if before.combine != "flow":
            assert after.with_focus(2).scores.tolist() == before.with_focus(2).scores.tolist()


def test_nothing_is_left_out(made: dict[str, Explanation]) -> None:
    held = json.loads(made["alti"].to_json())["explanations"][0]
    assert set(held) == {field.name for field in fields(Explanation)} | {"scores"}
    assert set(held["target"]) == {field.name for field in fields(Target)}


def test_an_encoder_decoder() -> None:
    model = tiny.model("bart", "Seq2SeqLM")
    before = explain(model, TEXT, "alti", tokenizer=tiny.tokenizer(), text_pair="we saw it")
    after = Explanation.from_json(before.to_json())
    assert same(before.maps, after.maps)
    assert [t.as_dict() for t in before.tokens] == [t.as_dict() for t in after.tokens]
    assert after.to_json() == before.to_json()


def test_a_file_and_its_text_are_read_alike(made: dict[str, Explanation], tmp_path: Path) -> None:
    path = tmp_path / "alti.json"
    text = made["alti"].to_json(path)
    assert path.read_text(encoding="utf-8") == text
    for source in (path, str(path), text, text.encode()):
        assert Explanation.from_json(source).to_json() == text


def test_several_in_one_file(made: dict[str, Explanation], tmp_path: Path) -> None:
    text = dumps([made["alti"], made["gradient"]])
    assert [one.method for one in loads(text, Explanation)] == ["alti", "gradient"]
    assert Explanation.from_json(text, method="gradient").method == "gradient"
    with pytest.raises(InputError, match=r"alti, gradient; say which"):
        Explanation.from_json(text)
    with pytest.raises(InputError, match="not one of globenc"):
        Explanation.from_json(text, method="globenc")


def test_it_is_strict_json_with_scores_to_read(made: dict[str, Explanation]) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(word)

    whole = json.loads(made["alti"].to_json(), parse_constant=refuse)
    assert (whole["format"], whole["version"]) == ("mixwidget", 1)
    held = whole["explanations"][0]
    assert np.array(held["scores"], dtype=np.float32).tolist() == made["alti"].scores.tolist()
    assert held["tokens"][1] == {"piece": "the", **made["alti"].tokens[1].as_dict()}


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("-inf"),
        (1, (2.5, "a")),
        [np.zeros((2, 0), np.float32), np.array(3.25)],
        {"a": None, "b": [True, 1, 0.1]},
        np.arange(3, dtype=">f4"),
        np.array([True, False]),
    ],
)
def test_values_come_back(value: object) -> None:
    there = json.dumps(encode(value), allow_nan=False)
    back = decode(json.loads(there))
    if isinstance(value, np.ndarray):
        assert back.tolist() == value.tolist()
        assert back.dtype == value.dtype.newbyteorder("=")
    else:
        assert same(back, value)


def test_what_json_has_no_form_for() -> None:
    assert encode(np.float32(0.5)) == 0.5
    assert decode(encode(torch.tensor([1.0, 2.0]))).tolist() == [1.0, 2.0]
    assert encode(Path("folder") / "x") == str(Path("folder") / "x")
    assert encode(np.array(["a"], dtype=object)) == ["a"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        (b"\xff\xfe{", "not JSON"),
        ("[1, 2]", "not written by mixwidget"),
        ('{"format": "other"}', "not written by mixwidget"),
        ('{"format": "mixwidget", "version": 99}', "version 99"),
        ('{"format": "mixwidget", "version": 1}', "damaged"),
        ('{"format": "mixwidget", "version": 1, "explanations": [{}]}', "damaged"),
        ('{"format": "mixwidget", "version": 1, "explanations": []}', "no explanation"),
        ("no_such_file.json", "cannot be read"),
        (Path("no_such_file.json"), "cannot be read"),
    ],
)
def test_wrong_files_are_refused_in_words(text: str | bytes | Path, words: str) -> None:
    with pytest.raises(NotAnExplanationError, match=words):
        Explanation.from_json(text)


@pytest.mark.parametrize("field", ["scores", "maps", "tokens", "target", "focus"])
def test_damaged_entries_are_refused(made: dict[str, Explanation], field: str) -> None:
    whole = json.loads(made["alti"].to_json())
    held = whole["explanations"][0]
    if field == "maps":
        held["maps"]["$array"]["data"] = held["maps"]["$array"]["data"][:-8]
    elif field in ("scores", "tokens"):
        held[field] = held[field][:-1]
    elif field == "target":
        held["target"] = {"kind": "class", "surprise": 1}
    else:
        del held[field]
    with pytest.raises(NotAnExplanationError, match="damaged"):
        loads(json.dumps(whole), Explanation)
    assert issubclass(NotAnExplanationError, InputError)


def test_maps_of_long_texts_leave_an_excerpt_that_says_so(
    made: dict[str, Explanation], monkeypatch: pytest.MonkeyPatch
) -> None:
    e = made["alti"]
    assert e.maps is not None
    monkeypatch.setattr("mixwidget.explanation.excerpt.LARGE", 0)
    copy = Explanation.from_json(e.to_json())
    assert np.array_equal(copy.scores, e.scores)
    held = copy.info["excerpt"]
    for layer in range(len(e.maps)):
        assert np.array_equal(held["rows"][layer], e.maps[layer, e.focus])
        row = e.rollout(layer)[e.focus]
        assert np.allclose(held["rollout_rows"][layer], row, atol=1e-6)
        for column, place in enumerate(held["columns_of"]):
            own = e.maps[layer, :, place]
            assert np.allclose(held["columns"][layer, :, column], own, atol=1e-3)
    assert e.scores[held["columns_of"][0]] == e.scores.max()
    with pytest.raises(UnsupportedMethodError, match=r"leaves out maps of .* layers"):
        copy.rollout()
    assert same(Explanation.from_json(e.to_json(whole=True)).maps, e.maps)
