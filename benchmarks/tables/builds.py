"""Does an order of methods hold across architectures? One dataset, models of several builds.

python -m benchmarks.tables.builds DATA MODEL MODEL ... [--limit 40] [--workers 2] [--cache FOLDER]

For ALTI's Tables 2, 6 and 7 and GlobEnc's Table A.2, and the builds that others name: every
method on the same texts by each model, and how far the orders of the methods agree.
`benchmarks.distil` trains models for it.
"""

from __future__ import annotations

import argparse
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd
from scipy import stats

from benchmarks.tables.common import Clock, Setup
from mixwidget import benchmark

METHODS: dict[str, Any] = {
    "Grad l2": "gradient",
    "G x I l2": "gradient_x_input",
    "IG l2, 25 steps": ("integrated_gradients", {"steps": 25}),
    "RawAtt": "raw_attention",
    "Rollout": "attention_rollout",
    "N": "attn_norm",
    "N_Res": "attn_norm_res",
    "N_ResLN": "attn_norm_res_ln",
    "GlobEnc": "globenc",
    "ALTI l1": "alti",
    "ALTI l2": ("alti", {"p": 2}),
    "Value Zeroing": "value_zeroing",
    "Grads (CAM)": "attn_grad",
    "AttCAT": "attcat",
    "GAE": "gae",
    "TransAtt": "transatt",
    "AttnLRP": "attn_lrp",
    "random": "random",
}
METRICS: dict[str, Any] = {
    "comprehensiveness": ("comprehensiveness", {"as_released": True}),
    "sufficiency": ("sufficiency", {"as_released": True}),
    "AOPC": ("aopc", {"as_released": True}),
    "log-odds": "log_odds",
    "Spearman with saliency": ("saliency_rho", {"how": "rollout"}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="a .tsv, .csv or .jsonl file")
    parser.add_argument("models", nargs="+", help="names or folders of models")
    parser.add_argument("--limit", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--cache")
    given = parser.parse_args()
    one = Setup(
        given.models[0], given.data, given.limit, None, given.seed, given.workers, given.cache
    )
    examples, clock = one.examples(), Clock()
    with one.executor() as executor:
        frame = benchmark(
            given.models, examples, METHODS, METRICS, executor, truncate=True, **one.usual()
        )
    frame = frame[frame["example"].isna()]
    print(f"{len(examples)} texts of `{Path(given.data).name}`, {clock():.0f} s.")
    for metric in METRICS:
        print(f"\n### {metric}\n")
        print_table(frame[frame["metric"] == metric])


def print_table(rows: pd.DataFrame) -> None:
    """A column for each model; then how far the orders agree, and which is best in each."""
    models = list(dict.fromkeys(rows["model"]))
    means = rows.pivot(index="method", columns="model", values="mean").loc[:, models]
    errors = rows.pivot(index="method", columns="model", values="stderr")
    means = means.loc[[one for one in METHODS if means.loc[one].notna().any()]]
    print("| method | " + " | ".join(models) + " |\n|---|" + "---|" * len(models))
    for method, row in means.iterrows():
        cells = [
            "" if row[one] != row[one] else f"{row[one]:.3f} ± {errors.loc[method, one]:.3f}"
            for one in models
        ]
        print(f"| {method} | " + " | ".join(cells) + " |")
    up = rows["better"].iloc[0] == "higher"
    best = means.drop(index="random", errors="ignore").agg("idxmax" if up else "idxmin")
    print("\nBest: " + ", ".join(f"{model} {best[model]}" for model in models) + ".")
    told = []
    for one, other in combinations(models, 2):
        both = means[[one, other]].dropna()
        told.append(f"{one} ~ {other} {stats.spearmanr(both[one], both[other]).statistic:+.2f}")
    print("Rank correlation of the methods: " + ", ".join(told) + ".")


if __name__ == "__main__":
    main()
