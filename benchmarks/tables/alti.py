"""ALTI (Ferrando et al. 2022), Tables 2 and 5: comprehensiveness and sufficiency."""

from __future__ import annotations

from benchmarks.tables.common import Clock, heading, setup, table

METHODS = {
    "gradient": "gradient",
    "ig_l2": "integrated_gradients",
    "ig_mean": ("integrated_gradients", {"norm": "mean"}),
    "gxi_l2": "gradient_x_input",
    "gxi_mean": ("gradient_x_input", {"norm": "mean"}),
    "attention_rollout": "attention_rollout",
    "globenc": "globenc",
    "alti": "alti",
    "alti_l2": ("alti", {"p": 2}),
    "attn_norm_res_ln": "attn_norm_res_ln",
    "attn_norm_res": "attn_norm_res",
    "raw_attention": "raw_attention",
    "random": "random",
}
NAMES = {
    "gradient": "Grad l2",
    "ig_l2": "IG l2",
    "ig_mean": "IG mean",
    "gxi_l2": "G x I l2",
    "gxi_mean": "G x I mean",
    "attention_rollout": "Rollout",
    "globenc": "GlobEnc",
    "alti": "ALTI (l1)",
    "alti_l2": "ALTI l2 (Table 5)",
    "attn_norm_res_ln": "Norms (Table 4)",
    "attn_norm_res": "N_RES",
    "raw_attention": "raw attention",
}
# BERT's columns: comprehensiveness, sufficiency.
PAPER = {
    "sst2": {
        "gradient": (0.204, 0.076),
        "ig_l2": (0.223, 0.084),
        "ig_mean": (0.211, 0.112),
        "gxi_l2": (0.199, 0.080),
        "gxi_mean": (0.207, 0.073),
        "attention_rollout": (0.074, 0.270),
        "globenc": (0.174, 0.125),
        "alti": (0.317, 0.044),
        "alti_l2": (0.300, 0.045),
        "attn_norm_res_ln": (0.134, 0.180),
    },
    "imdb": {
        "gradient": (0.192, 0.052),
        "ig_l2": (0.214, 0.060),
        "ig_mean": (0.179, 0.063),
        "gxi_l2": (0.197, 0.056),
        "gxi_mean": (0.213, 0.054),
        "attention_rollout": (0.090, 0.185),
        "globenc": (0.207, 0.117),
        "alti": (0.308, 0.031),
        "alti_l2": (0.286, 0.031),
        "attn_norm_res_ln": (0.148, 0.115),
    },
}


def main() -> None:
    chosen, given = setup(__doc__ or "")
    examples, clock = chosen.examples(), Clock()
    metrics = {
        f"{name}{' as released' if released else ''}": (name, {"as_released": released})
        for released in (True, False)
        for name in ("comprehensiveness", "sufficiency")
    }
    frame = chosen.run(examples, METHODS, metrics, truncate=True)
    paper = PAPER[given.paper or ("imdb" if "imdb" in chosen.data else "sst2")]
    heading("ALTI, Tables 2 and 5, metrics as released", chosen, len(examples), clock())
    released = {
        "comprehensiveness as released": "comp.",
        "sufficiency as released": "suff.",
    }
    table(frame, released, paper, NAMES)
    heading("The same methods, metrics as defined", chosen, len(examples), clock())
    table(frame, {"comprehensiveness": "comp.", "sufficiency": "suff."}, {}, NAMES)


if __name__ == "__main__":
    main()
