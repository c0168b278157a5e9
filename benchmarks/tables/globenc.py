"""GlobEnc (Modarressi et al. 2022), Tables 1 and A.2: Spearman with saliency, rolled out."""

from __future__ import annotations

from typing import Any

from benchmarks.tables.common import Clock, heading, setup, table
from mixwidget.models import open_source

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
METRICS: dict[str, Any] = {
    "all tokens": ("saliency_rho", {"how": "rollout"}),
    "ordinary tokens": ("saliency_rho", {"how": "rollout", "special": False}),
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
ELECTRA = (-0.37, -0.37, -0.10, 0.18, 0.23, 0.54, -0.24, 0.64)  # Table A.2, in the same order
METHODS = list(NAMES)
STAGES = METHODS[:8]


def main() -> None:
    chosen, _ = setup(__doc__ or "", limit=200)
    examples, clock = chosen.examples(), Clock()
    frame = chosen.run(examples, METHODS, METRICS, target="label")
    heading("GlobEnc, Table 1", chosen, len(examples), clock())
    paper: dict[str, tuple[float | None, ...]] = {m: (rho, None) for m, (rho,) in PAPER.items()}
    if open_source(chosen.model).model.config.model_type == "electra":
        paper = {method: (rho, None) for method, rho in zip(STAGES, ELECTRA)}
    columns = {"all tokens": "rho", "ordinary tokens": "rho, ordinary tokens only"}
    table(frame, columns, paper, NAMES)


if __name__ == "__main__":
    main()
