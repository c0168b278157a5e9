"""ALTI (Ferrando et al. 2022), Tables 2 and 4 to 7: comprehensiveness and sufficiency.

With agreement data (rows of `masked`, `target`, `foil`) and a masked language model these are the
columns of SVA: the probability is that of the target given that it is one of the two.
"""

from __future__ import annotations

from typing import Any

from benchmarks.tables.common import Clock, column_of, heading, setup, table

METHODS: dict[str, Any] = {
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
    "alti_ln2": ("alti", {"ln2": True}),
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
    "alti_ln2": "ALTI with the second norm (Figure 9)",
    "attn_norm_res": "N_RES",
    "raw_attention": "raw attention",
}
# Whose curves and agreement are drawn: Figures 6 to 9.
DRAWN = {
    name: METHODS[name] for name in ("gradient", "ig_l2", "gxi_l2", "globenc", "alti", "random")
}
METRICS: dict[str, Any] = {
    f"{name}{' as released' if released else ''}": (name, {"as_released": released})
    for released in (True, False)
    for name in ("comprehensiveness", "sufficiency")
}
# Comprehensiveness and sufficiency in turn, in the order of the methods as far as the paper goes:
# one column for BERT on each dataset, and those of the other builds that it has.
_PAPER = {
    "sst2": "0.204 0.076 0.223 0.084 0.211 0.112 0.199 0.080 0.207 0.073 "
    "0.074 0.270 0.174 0.125 0.317 0.044 0.300 0.045 0.134 0.180",
    "imdb": "0.192 0.052 0.214 0.060 0.179 0.063 0.197 0.056 0.213 0.054 "
    "0.090 0.185 0.207 0.117 0.308 0.031 0.286 0.031 0.148 0.115",
    "sva": "0.284 0.145 0.315 0.171 0.317 0.174 0.279 0.149 0.285 0.145 "
    "0.108 0.292 0.251 0.178 0.372 0.088 0.374 0.088 0.273 0.152",
    "sst2 roberta": "0.190 0.075 0.223 0.074 0.231 0.067 0.187 0.081 0.191 0.078 "
    "0.076 0.179 0.161 0.119 0.269 0.057 0.230 0.075 0.168 0.135",
    "sst2 distilbert": "0.230 0.066 0.295 0.048 0.279 0.064 0.235 0.065 0.237 0.065 "
    "0.152 0.147 0.240 0.072 0.332 0.034 0.292 0.051 0.157 0.152",
    "imdb roberta": "0.216 0.083 0.200 0.084 0.215 0.083 0.183 0.109 0.225 0.080 "
    "0.077 0.197 0.154 0.086 0.266 0.050 0.203 0.086 0.133 0.162",
    "imdb distilbert": "0.266 0.054 0.275 0.055 0.244 0.059 0.281 0.053 0.282 0.053 "
    "0.183 0.089 0.252 0.066 0.304 0.039 0.254 0.053 0.175 0.104",
    "sva roberta": "0.273 0.165 0.363 0.163 0.351 0.161 0.280 0.169 0.270 0.167 "
    "0.223 0.183 0.305 0.170 0.390 0.109 0.379 0.114 0.275 0.178",
    "sva distilbert": "0.338 0.107 0.372 0.108 0.365 0.118 0.333 0.111 0.335 0.110 "
    "0.241 0.179 0.341 0.108 0.382 0.084 0.357 0.096 0.315 0.117",
}
PAPER = {
    column: {
        method: (float(comp), float(suff))
        for method, comp, suff in zip(METHODS, told.split()[::2], told.split()[1::2])
    }
    for column, told in _PAPER.items()
}


def main() -> None:
    chosen, given = setup(__doc__ or "")
    examples, clock = chosen.examples(), Clock()
    frame = chosen.run(examples, METHODS, METRICS, truncate=True)
    paper = PAPER[column_of(chosen, given.paper, PAPER)]
    heading("ALTI, Tables 2 and 4 to 7, metrics as released", chosen, len(examples), clock())
    released = {
        "comprehensiveness as released": "comp.",
        "sufficiency as released": "suff.",
    }
    table(frame, released, paper, NAMES)
    heading("The same methods, metrics as defined", chosen, len(examples), clock())
    table(frame, {"comprehensiveness": "comp.", "sufficiency": "suff."}, {}, NAMES)


if __name__ == "__main__":
    main()
