"""The page that `save("x.html")` writes. tests/browser/test_page.py opens it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from mixwidget import MixView, protocol
from mixwidget.cli import main
from mixwidget.metrics import evidence, faithfulness_report
from mixwidget.saving.page import json_text
from tests.lib import tiny

METHODS = ["alti", "globenc", "value_zeroing"]


def parts(path: Path) -> tuple[str, dict[str, Any], dict[tuple[str, str, Any, Any], Any]]:
    """The page, its data, and its arrays as the browser will read them."""
    text = path.read_text("utf-8")
    found = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    packed = gzip.decompress(base64.b64decode(data["data"]))
    arrays, at = {}, 0
    for content, length in data["arrays"]:
        key = (content["run"], content["what"], content["layer"], content["of"])
        arrays[key] = protocol.unpack(content, packed[at : at + length])
        at += length
    assert at == len(packed)
    return text, data, arrays


def test_it_holds_all_that_is_computed(tmp_path: Path) -> None:
    view = MixView(method="attention_rollout", compared=["attcat"], view="map")
    view.wait()
    view.method = "alti"
    view.wait()
    view.save(tmp_path / "x.html")
    _, data, arrays = parts(tmp_path / "x.html")
    assert set(data["traits"]["runs"]) == {"attention_rollout", "attcat", "alti"}
    assert data["traits"]["view"] == "map"
    assert data["focused"] == []
    usable = {entry["id"] for entry in data["traits"]["catalogue"] if entry["available"]}
    assert usable == {"attention_rollout", "attcat", "alti"}
    alti = view.explanations["alti"]
    run = data["traits"]["runs"]["alti"]["run"]
    for layer in range(4):
        np.testing.assert_allclose(
            arrays[run, "rollout", layer, None], alti.rollout(layer), rtol=4e-3, atol=1e-4
        )
        assert alti.maps is not None
        np.testing.assert_allclose(
            arrays[run, "layer", layer, None], alti.maps[layer], rtol=4e-3, atol=1e-4
        )
    attcat = view.explanations["attcat"]
    run = data["traits"]["runs"]["attcat"]["run"]
    np.testing.assert_allclose(arrays[run, "scores", None, None], attcat.scores, rtol=1e-6)
    assert arrays["", "head_stats", None, None].shape[:2] == (4, view.model_info["heads"])
    assert ("", "heads", 3, None) in arrays
    assert arrays["", "mixing", None, None].shape == (4, len(view.tokens))
    view.close()


def test_it_holds_faithfulness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    view = MixView(method="alti", compared=["random"])
    view.wait()
    view.save(tmp_path / "x.html", faithfulness=True)
    found = parts(tmp_path / "x.html")[1]["faithfulness"]
    assert [part["part"] for part in found] == [
        *("start", "curve", "random", "curve", "agreement", "verdict")
    ]
    case = view._session.case  # type: ignore[union-attr]
    assert case is not None
    report = faithfulness_report(case, ["alti", "random"], explanations=view.explanations)
    assert found[1]["order"] == report["curves"]["alti"]["order"]
    np.testing.assert_allclose(
        found[1]["probabilities"], report["curves"]["alti"]["probabilities"], atol=1e-6
    )
    assert found[2]["seeds"] == 20
    assert set(found[-1]["methods"]) == {"alti", "random"}

    # What is shown is tested as soon as it is ready: saving asks the model nothing more.
    asked = evidence(view.explanations["alti"], case).passes
    view.save(tmp_path / "y.html")
    known = parts(tmp_path / "y.html")[1]["faithfulness"]
    assert known[-1] == found[-1]
    assert evidence(view.explanations["alti"], case).passes == asked

    def broken(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(import_module("mixwidget.models.predict"), "_run", broken)
    view.text = "a warm and funny film"  # nothing about it is known yet
    view.wait()
    view.save(tmp_path / "z.html", faithfulness=True)
    _, data, arrays = parts(tmp_path / "z.html")
    assert all("memory" in part["error"] for part in data["faithfulness"])
    assert arrays
    view.close()


def test_what_cannot_be_measured_is_said(tmp_path: Path) -> None:
    model, tokenizer = tiny.model("bert", ""), tiny.tokenizer()
    view = MixView(model, "a good film", tokenizer, method="alti")  # it has no head
    view.save(tmp_path / "x.html", faithfulness=True)
    (part,) = parts(tmp_path / "x.html")[1]["faithfulness"]
    assert "error" in part
    view.close()


def test_it_knows_what_holds_for_one_focus_token(tmp_path: Path) -> None:
    methods = ["attcat", "gae", "partial_lrp", "raw_attention"]
    for head, focused in [
        ("SequenceClassification", ["partial_lrp"]),
        ("MaskedLM", ["attcat", "gae", "partial_lrp"]),  # another token is another prediction
    ]:
        view = MixView(
            tiny.model("bert", head),
            "a [MASK] film",
            tiny.tokenizer(),
            method=methods[0],
            compared=methods[1:],
        )
        view.save(tmp_path / "x.html", faithfulness=False)
        assert sorted(parts(tmp_path / "x.html")[1]["focused"]) == focused
        view.close()


def test_only_its_own_script_may_run(tmp_path: Path) -> None:
    view = MixView(method="raw_attention")
    view.save(tmp_path / "x.html")
    text, _, _ = parts(tmp_path / "x.html")
    scripts = re.findall(r'<script type="module">(.*?)</script>', text, re.DOTALL)
    assert len(scripts) == 1
    assert text.count("<script") == 2 + scripts[0].count("<script")
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"default-src 'none'; script-src 'sha256-{digest}';" in text
    assert "<!--" not in scripts[0]
    assert "</style" not in text.split("<style>")[1].split("</style>")[0]
    view.close()


def test_no_text_ends_the_data() -> None:
    hostile = "</script><img src=x onerror=alert(1)><!-- & \u2028\u2029 \\u003c"
    text = json_text({"a": hostile, hostile: [float("nan"), 1.5]})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"a": hostile, hostile: [None, 1.5]}


def long_view(std: float, **options: Any) -> MixView:
    tokenizer = tiny.tokenizer()
    tokenizer.model_max_length = 512
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=96,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=96,
        initializer_range=std,
    )
    torch.manual_seed(0)
    model = transformers.BertForSequenceClassification(config).eval()
    words = sorted(word for word in tokenizer.get_vocab() if word.isalpha())
    chosen = np.random.default_rng(0).integers(len(words), size=126)
    text = " ".join(words[i] for i in chosen)
    return MixView(model, text, tokenizer, method=METHODS[0], compared=METHODS[1:], **options)


@pytest.mark.slow
@pytest.mark.parametrize("std", [0.02, 0.2])
def test_128_tokens_12_layers_3_methods_take_less_than_3_mb(std: float, tmp_path: Path) -> None:
    view = long_view(std)
    view.save(tmp_path / "x.html")
    assert len(view.tokens) == 128
    size = (tmp_path / "x.html").stat().st_size
    assert size < 3_000_000, f"{size:,} bytes"
    view.close()


def test_the_command_line_writes_one(tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    assert main(["a boring film", "--method", "alti", "--method", "attcat", "-o", str(path)]) == 0
    _, data, arrays = parts(path)
    assert [token["text"] for token in data["traits"]["tokens"]][1:-1] == ["a", "boring", "film"]
    assert data["traits"]["method"] == "alti"
    assert data["traits"]["compared"] == ["attcat"]
    assert ("alti", "rollout", 3, None) in arrays
    measured = [p["method"] for p in data["faithfulness"] if p["part"] == "curve"]
    assert measured == ["alti", "attcat"]


def test_of_long_texts_it_holds_rows_and_overviews_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = MixView(method="alti")
    view.wait()
    page = import_module("mixwidget.saving.page")
    monkeypatch.setattr(page, "PUSH_TOKENS", 4)
    monkeypatch.setattr(page, "_MAPS_BYTES", 0)
    view.save(tmp_path / "x.html")
    _, data, arrays = parts(tmp_path / "x.html")
    run = data["traits"]["runs"]["alti"]["run"]
    assert (run, "layer", 0, None) not in arrays
    assert (run, "overview", 0, "layer") in arrays
    assert "whole maps need the notebook" in data["traits"]["status"]["message"]
    alti = view.explanations["alti"]
    rows = [c for c, _ in data["arrays"] if c["what"] == "rows" and c["of"] == "rollout"]
    assert rows[0]["focus"] == alti.focus
    assert len(rows) == min(17, len(alti.tokens))
