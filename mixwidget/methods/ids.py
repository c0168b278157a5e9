"""The ids of the methods, for editors to complete; a test compares them with the registry."""

from __future__ import annotations

from typing import Literal

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
