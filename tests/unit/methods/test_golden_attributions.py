"""The reference arrays of the direct and whole-text attributions; skipped where they are not."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest
import transformers

from mixwidget import explain
from tests.lib.shared import shared_folder

SETS = ["bert_cls_t0", "bert_cls_t1", "llama_gqa_t0", "llama_gqa_t1"]
LIMIT, BY_LAYER = 2e-5, 5e-5


@cache
def loaded(name: str) -> tuple[Any, Any]:
    folder = shared_folder("golden2", name)
    head = "SequenceClassification" if name == "bert_cls" else "CausalLM"
    model = getattr(transformers, f"AutoModelFor{head}").from_pretrained(folder).double().eval()
    return model, transformers.AutoTokenizer.from_pretrained(folder)


@pytest.fixture(params=SETS)
def reference(request: pytest.FixtureRequest) -> tuple[Any, dict[str, Any]]:
    """(explain this text by a method, the arrays)."""
    name, _, number = request.param.rpartition("_t")
    text = json.loads(shared_folder("golden2", "texts.json").read_text())[name][int(number)]
    with np.load(shared_folder("golden2", f"{request.param}.npz")) as held:
        arrays = dict(held)
    model, tokenizer = loaded(name)
    contrast = (int(arrays["target"]), int(arrays["foil"]))

    def run(method: str, against: bool = False, **params: Any) -> Any:
        target = contrast if against else None
        return explain(model, text, method, tokenizer=tokenizer, target=target, **params)

    return run, arrays


def close(ours: Any, true: Any, limit: float = LIMIT) -> None:
    assert np.abs(np.asarray(ours) - true).max() <= limit * np.abs(true).max()


@pytest.mark.parametrize("method", ["attn_lrp", "cp_lrp", "logit", "alti_logit"])
def test_scores(reference: Any, method: str) -> None:
    run, arrays = reference
    for against in (False, True):
        key = f"{method}.contrast" if against else method
        found = run(method, against)
        close(found.scores, arrays[f"{key}.scores"])
        close(found.layer_scores, arrays[f"{key}.per_layer"], BY_LAYER)
        if "lrp" in method:
            balance = found.info["balance"]
            assert balance["biases"] == pytest.approx(float(arrays[f"{key}.bias"]), abs=1e-5)
            assert balance["softmax"] == pytest.approx(float(arrays[f"{key}.softmax"]), abs=1e-5)
        if method == "logit":
            close(found.head_scores, arrays[f"{key}.heads"], BY_LAYER)
            close(found.info["feed_forward"], arrays[f"{key}.mlp"])
            assert found.info["init"] == pytest.approx(float(arrays[f"{key}.init"]), abs=1e-5)
            assert found.info["bias"] == pytest.approx(float(arrays[f"{key}.bias"]), abs=1e-5)


def test_alti(reference: Any) -> None:
    run, arrays = reference
    close(run("alti").maps, arrays["alti.maps"], BY_LAYER)


def test_routes(reference: Any) -> None:
    run, arrays = reference
    found = run("ifr")
    close(found.maps, arrays["ifr.maps"], BY_LAYER)
    close(found.scores, arrays["ifr.scores"])
    close(found.info["feed_forward"], arrays["ifr.ffn"])
    close(found.info["residual"], arrays["ifr.residual"])
    close(run("ifr", as_released=True).maps, arrays["ifr.as_released.maps"], 1e-4)
    for tau in (0.01, 0.04, 0.1):
        routes = found.routes(tau)
        assert [list(edge) for edge in routes.edges] == arrays[f"ifr.routes_{tau}"].tolist()
        fed = [list(place) for place in routes.feed_forwards]
        assert fed == arrays[f"ifr.routes_ffn_{tau}"].tolist()


@pytest.mark.parametrize("bias", ["absdot", "norm", "equal", "none"])
def test_decompx(reference: Any, bias: str) -> None:
    run, arrays = reference
    found = run("decompx", bias=bias)
    close(found.scores, arrays[f"decompx.{bias}.scores"])
    close(run("decompx", True, bias=bias).scores, arrays[f"decompx.{bias}.contrast"])
    if bias == "absdot":
        close(found.maps, arrays["decompx.absdot.maps"], BY_LAYER)
    if bias == "none":  # biases as one more part: tokens get what they get where nobody does
        n = len(found.tokens)
        close(found.maps, arrays["decompx.token.maps"][:, :, :n], BY_LAYER)
        for against, key in ((False, "scores"), (True, "contrast")):
            whole = np.append(
                (found := run("decompx", against, bias=bias)).scores,
                found.info["balance"]["biases"],
            )
            close(whole, arrays[f"decompx.token.{key}"])


def test_gradient_x_input(reference: Any) -> None:
    run, arrays = reference
    found = run("gradient_x_input", at="layers", norm="sum", of="logit")
    close(found.scores, arrays["gradient_x_input.signed"])


def test_shapley(reference: Any) -> None:
    run, arrays = reference
    if "shapley.mask.logit.scores" not in arrays:  # kept for the short text only
        found = run("shapley")
        gain = found.info["all"] - found.info["none"]
        assert found.scores.sum() == pytest.approx(gain, abs=1e-6)
        return
    for key, params in {
        "mask.logit": {},
        "mask.prob": {"of": "probability"},
        "delete.logit": {"by": "delete"},
    }.items():
        found = run("shapley", **params)
        close(found.scores, arrays[f"shapley.{key}.scores"], 1e-4)
        none_all = [found.info["none"], found.info["all"]]
        close(none_all, arrays[f"shapley.{key}.none_all"], 1e-5)


def test_shapley_of_groups(reference: Any) -> None:
    run, arrays = reference
    tokens, groups = run("raw_attention").tokens, arrays["shapley.groups"]
    players = arrays["shapley.players"]
    spans = []
    for group in dict.fromkeys(groups.tolist()):
        inside = [tokens[i] for i in players[groups == group]]
        spans.append((inside[0].start, inside[-1].end))
    found = run("shapley", units=spans)
    close(found.info["values"], arrays["shapley.groups.scores"], 1e-4)
    none_all = [found.info["none"], found.info["all"]]
    close(none_all, arrays["shapley.groups.none_all"], 1e-5)
