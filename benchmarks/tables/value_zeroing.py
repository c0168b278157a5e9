"""Value Zeroing (Mohebbi et al. 2023): Figures 2, 3 and A.2, Tables 2 and 3, on agreement data.

DATA is a .jsonl with `masked` (a sentence with a mask), `target` and `foil` (two words for the
mask), `cue_indices` (which words decide, counted by spaces) and `number` (what a probe should
find at the mask).
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.tables.common import Clock, Setup, compare_order, heading, setup, table
from mixwidget import Study
from mixwidget.evaluation.examples import Example
from mixwidget.metrics import compression_by_layer

NAMES = {
    "random": "Rand",
    "raw_attention": "Attn",
    "attn_norm": "Attn-norm",
    "attn_norm_res": "Attn-norm + RES",
    "attn_norm_res_ln": "Attn-norm + RES + LN",
    "globenc": "GlobEnc",
    "alti": "ALTI",
    "value_zeroing": "Value Zeroing",
    "gradient_x_input": "GradXinput",
    "integrated_gradients": "IG",
    "deeplift": "DL",
}
MIXING = list(NAMES)[1:8]
# What has a row for each layer: maps, and gradients at what every layer reads.
LAYERED: dict[str, Any] = {
    **{id: id for id in MIXING},
    "gradient_x_input": ("gradient_x_input", {"at": "layers"}),
}
PROBING = {  # Table 2, fine-tuned
    "raw_attention": 0.08,
    "attn_norm": 0.56,
    "attn_norm_res": -0.24,
    "attn_norm_res_ln": 0.17,
    "globenc": -0.12,
    "alti": -0.12,
    "gradient_x_input": -0.99,
    "value_zeroing": 0.64,
}
BLANK_OUT = {  # Table 3, fine-tuned
    "random": (0.00,),
    "raw_attention": (-0.07,),
    "attn_norm": (0.14,),
    "attn_norm_res": (-0.05,),
    "attn_norm_res_ln": (-0.17,),
    "globenc": (-0.09,),
    "alti": (0.19,),
    "gradient_x_input": (0.16,),
    "integrated_gradients": (0.21,),
    "deeplift": (0.29,),
    "value_zeroing": (0.31,),
}


def main() -> None:
    chosen, _ = setup(__doc__ or "", limit=200)
    examples = chosen.examples()
    alignment = _cue_alignment(chosen, examples)
    _probing(chosen, alignment)
    _blank_out(chosen, examples)


def probing(found: Study, compression: Any) -> pd.DataFrame:
    """Spearman over the layers between the mass on the cue and what a probe finds there."""
    rows = []
    for method, group in found.layers.query("how == 'layer'").groupby("method", sort=False):
        rho = float(stats.spearmanr(group["mean"], compression[1:]).statistic)
        rows.append({"method": method, "metric": "rho", "mean": rho, "n": 1, "better": "higher"})
    return pd.DataFrame(rows)


def _cue_alignment(chosen: Setup, examples: list[Example]) -> Study:
    clock = Clock()
    kinds = ("cue_dot", "cue_ap", "probes_needed")
    found = chosen.study(examples, LAYERED, list(kinds))
    alone = found.layers[found.layers["how"] == "layer"]
    layers = alone["layer"].max() + 1
    for kind, title in zip(kinds, ("mass on the cue words", "average precision", "probes needed")):
        heading(f"Value Zeroing, Figure 2: {title}, by layer", chosen, len(examples), clock())
        print("| method | " + " | ".join(str(layer) for layer in range(layers)) + " | mean |")
        print("|---|" + "---|" * (layers + 1))
        for method in LAYERED:
            mine = alone[(alone["method"] == method) & (alone["metric"] == kind)]
            row = mine.sort_values("layer")["mean"].tolist()
            cells = " | ".join(f"{value:.2f}" for value in [*row, float(np.mean(row))])
            print(f"| {NAMES[method]} | {cells} |")
        print()
    return found


def _probing(chosen: Setup, alignment: Study) -> None:
    clock = Clock()
    rows = [json.loads(line) for line in Path(chosen.data).read_text().split("\n") if line]
    generator = np.random.default_rng(chosen.seed)
    some = [rows[i] for i in generator.permutation(len(rows))[: 5 * chosen.limit]]
    texts, labels = [row["masked"] for row in some], [row["number"] for row in some]
    scores = compression_by_layer(chosen.model, texts, labels)
    heading("Value Zeroing, Table 2 and Figure 3: probing", chosen, len(labels), clock())
    print("Compression by layer, the embeddings first: " + ", ".join(f"{s:.2f}" for s in scores))
    print("\n| method | rho (paper) | rho (here) |\n|---|---|---|")
    found = probing(_only(alignment, "cue_dot"), scores)
    for method, rho in zip(found["method"], found["mean"]):
        print(f"| {NAMES[method]} | {PROBING[method]:.2f} | {rho:.2f} |")
    print()
    compare_order(found, "rho", f"rho over {len(scores) - 1} layers", PROBING)


def _only(found: Study, metric: str) -> Study:
    return replace(
        found, values={key: one for key, one in found.values.items() if key[2] == metric}
    )


def _blank_out(chosen: Setup, examples: list[Example]) -> None:
    clock = Clock()
    metrics = {
        by: ("blank_out_rho", {"by": by, "how": "rollout"}) for by in ("unk", "mask", "delete")
    }
    frame = chosen.run(examples, list(NAMES), metrics)
    heading("Value Zeroing, Table 3: blank-out", chosen, len(examples), clock())
    paper = {method: (value, None, None) for method, (value,) in BLANK_OUT.items()}
    columns = {"unk": "rho, [UNK]", "mask": "rho, [MASK]", "delete": "rho, deleted"}
    table(frame, columns, paper, NAMES)


if __name__ == "__main__":
    main()
