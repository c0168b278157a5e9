"""GlobEnc (Modarressi et al. 2022), Table 1: Spearman with saliency, all ablations rolled out."""

from __future__ import annotations

from benchmarks.tables.common import Clock, heading, setup, table

NAMES = {
    "raw_attention": "W",
    "attention_rollout": "W_FixedRes",
    "attention_residual": "W_Res",
    "attn_norm": "N",
    "attn_norm_fixed": "N_FixedRes",
    "attn_norm_res": "N_Res",
    "attn_norm_res_ln": "N_ResLN",
    "globenc": "N_Enc (GlobEnc)",
    "alti": "ALTI",
    "value_zeroing": "Value Zeroing",
    "random": "random",
}
PAPER = {  # BERT on SST-2, validation set
    "raw_attention": (-0.11,),
    "attention_rollout": (-0.24,),
    "attention_residual": (0.19,),
    "attn_norm": (0.44,),
    "attn_norm_fixed": (0.48,),
    "attn_norm_res": (0.73,),
    "attn_norm_res_ln": (-0.21,),
    "globenc": (0.77,),
}


def main() -> None:
    chosen, _ = setup(__doc__ or "", limit=200)
    examples, clock = chosen.examples(), Clock()
    metrics = {
        "all tokens": ("saliency_rho", {"how": "rollout"}),
        "ordinary tokens": ("saliency_rho", {"how": "rollout", "special": False}),
    }
    frame = chosen.run(examples, list(NAMES), metrics, target="label")
    heading("GlobEnc, Table 1", chosen, len(examples), clock())
    paper = {method: (value, None) for method, (value,) in PAPER.items()}
    columns = {"all tokens": "rho", "ordinary tokens": "rho, ordinary tokens only"}
    table(frame, columns, paper, NAMES)


if __name__ == "__main__":
    main()
