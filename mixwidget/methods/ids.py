"""Ids and options of the methods, for editors to complete; compared with the registry by a test."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

MethodId = Literal[
    "raw_attention",
    "attention_rollout",
    "attention_flow",
    "attention_residual",
    "attn_norm",
    "attn_norm_fixed",
    "attn_norm_res",
    "attn_norm_res_ln",
    "globenc",
    "alti",
    "value_zeroing",
    "ifr",
    "decompx",
    "logit",
    "alti_logit",
    "hta",
    "gradient",
    "gradient_x_input",
    "integrated_gradients",
    "deeplift",
    "cat",
    "attcat",
    "attn_grad",
    "grad_sam",
    "grad_cam",
    "gae",
    "lrp",
    "partial_lrp",
    "transatt",
    "mask_lrp",
    "attn_lrp",
    "cp_lrp",
    "blank_out",
    "random",
    "shapley",
    "context_cite",
]


class Options(TypedDict, total=False):
    """What the methods' options are called, and what they may be. `steps` (of
    `integrated_gradients`) and `keep` (of `context_cite`) are arguments of `explain` too."""

    activation: Literal["slope", "gradient"]
    alpha: float
    as_released: bool
    at: Literal["embedding", "layers"]
    bias: Literal["absdot", "norm", "equal", "none"]
    by: Literal["mask", "unk", "pad", "delete"]
    distance: Literal["cosine", "euclidean", "spearman"]
    features: Literal["output", "input"]
    head: int | None
    layers: Literal["last", "all"]
    ln2: bool
    mask: Any
    norm: Literal["l2", "mean", "sum"]
    normalise: bool
    of: Literal["logit", "probability"]
    p: Literal[1, 2]
    permutations: int
    samples: int | None
    seed: int
    units: Any
    with_init: bool
    zero_focus: bool
