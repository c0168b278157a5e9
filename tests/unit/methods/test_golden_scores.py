"""Class-specific methods against the reference arrays, with a float32 and a float64 model."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from mixwidget import explain
from mixwidget.explanation import Explanation
from tests.lib.shared import golden

TEXTS = ["s0", "s1"]
DTYPES = [torch.float64, torch.float32]
ROUNDED = {torch.float64: 1e-6, torch.float32: 1e-4}

WORDS: list[tuple[str, dict[str, Any], str]] = [
    ("gradient", {}, "grad_l2"),
    ("gradient_x_input", {"norm": "l2"}, "gxi_l2"),
    ("gradient_x_input", {"norm": "mean"}, "gxi_absmean"),
    ("integrated_gradients", {"norm": "l2"}, "ig_gl_l2"),
    ("integrated_gradients", {"norm": "mean"}, "ig_gl_absmean"),
]
AS_AUTHORS = {"zero_focus": True}
RELEASED = {"as_released": True, **AS_AUTHORS}
CLASSES: list[tuple[str, dict[str, Any], str]] = [
    ("attcat", {}, "AttCAT_outputs"),
    ("attcat", {"features": "input"}, "AttCAT"),
    ("cat", {}, "CAT_outputs"),
    ("cat", {"features": "input"}, "CAT_inputs"),
    ("attn_grad", AS_AUTHORS, "CAM_Grads"),
    ("grad_cam", AS_AUTHORS, "AttGrads_GradCAM"),
    ("lrp", AS_AUTHORS, "fullLRP"),
    ("partial_lrp", AS_AUTHORS, "PartialLRP"),
    ("transatt", AS_AUTHORS, "TransAtt"),
]


@cache
def model(dtype: torch.dtype) -> Any:
    folder, _, _ = golden("s0")
    cls = transformers.AutoModelForSequenceClassification
    return cls.from_pretrained(folder, dtype=dtype).eval()


def run(name: str, dtype: torch.dtype, method: str, target: int, **params: Any) -> Explanation:
    folder, text, _ = golden(name)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return explain(model(dtype), text, method, tokenizer=tokenizer, target=target, **params)


def close(ours: Any, true: Any, dtype: torch.dtype) -> None:
    true = np.nan_to_num(np.asarray(true, dtype=float))  # the authors divide 0 by 0 where flat
    scale = np.abs(true).max() or 1.0
    assert np.abs(ours - true).max() / scale < ROUNDED[dtype]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("of", ["logit", "probability"])
@pytest.mark.parametrize(("method", "params", "key"), WORDS, ids=[key for *_, key in WORDS])
def test_gradients(
    name: str, of: str, method: str, params: dict[str, Any], key: str, dtype: torch.dtype
) -> None:
    short = "prob" if of == "probability" else of
    true = golden(name)[2][f"naive/word.{short}.{key}.c1"].astype(float)
    close(run(name, dtype, method, 1, of=of, **params).scores, true / true.sum(), dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("by", ["mask", "unk", "pad", "delete"])
def test_blank_out(name: str, by: str, dtype: torch.dtype) -> None:
    key = by if by == "delete" else by.upper()
    true = golden(name)[2][f"naive/blankout_{key}.c1"]
    close(run(name, dtype, "blank_out", 1, by=by).scores, true, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("target", [0, 1, 2])
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize(("method", "params", "key"), CLASSES, ids=[key for *_, key in CLASSES])
def test_classes(
    name: str, target: int, method: str, params: dict[str, Any], key: str, dtype: torch.dtype
) -> None:
    true = golden(name)[2][f"naive/{key}.full.c{target}"]
    close(run(name, dtype, method, target, **params).scores, true, dtype)


@pytest.mark.parametrize("target", [0, 1, 2])
@pytest.mark.parametrize("name", TEXTS)
def test_layers_and_maps(name: str, target: int) -> None:
    arrays, dtype = golden(name)[2], torch.float64
    layers = run(name, dtype, "attcat", target, features="input").layer_scores
    close(layers, arrays[f"naive/AttCAT.layers.full.c{target}"], dtype)
    # The reference keeps transatt's maps before the identity and the row sums.
    raw = arrays[f"naive/TransAtt.layers.full.c{target}"].astype(float)
    maps = raw + np.eye(raw.shape[-1])
    found = run(name, dtype, "transatt", target).maps
    close(found, maps / maps.sum(-1, keepdims=True), dtype)
    # gae: R starts from the identity and is not normalised; its focus row are the scores.
    reached = arrays[f"naive/GAE_chefer2021a.full.c{target}"]
    found_gae = run(name, dtype, "gae", target)
    close(found_gae.scores, reached[found_gae.focus], dtype)
    rows = reached / reached.sum(-1, keepdims=True)
    close(found_gae.rollout(), rows, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("target", [0, 1, 2])
@pytest.mark.parametrize("name", TEXTS)
def test_mask_lrp(name: str, target: int, dtype: torch.dtype) -> None:
    arrays = golden(name)[2]
    shape = (4, 4)
    masks = [(np.random.RandomState(seed).rand(*shape) > 0.5).astype(int) for seed in (0, 1)]
    cases = [
        ("MaskLRP_rand0", {"mask": masks[0], **RELEASED}),
        ("MaskLRP_ones", {"mask": np.ones(shape), **RELEASED}),
        ("MaskLRP_zeros", {"mask": np.zeros(shape), **RELEASED}),
        ("MaskLRP_paper_synt0_pos1", {"mask": masks, "normalise": True, **AS_AUTHORS}),
    ]
    for key, params in cases:
        true = arrays[f"naive/{key}.full.c{target}"]
        close(run(name, dtype, "mask_lrp", target, **params).scores, true, dtype)
