"""Value Zeroing (Mohebbi et al. 2023): Figure 2 and Tables 2 and 3, on agreement data.

DATA is a .jsonl with `masked` (a sentence with a mask), `target` and `foil` (two words for the
mask), `cue_indices` (which words decide, counted by spaces) and `number` (what a probe should
find at the mask).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.tables.common import Clock, Setup, compare_order, heading, setup, table
from mixwidget.engine import prepare
from mixwidget.evaluation.examples import Example
from mixwidget.metrics import compression, layer_features
from mixwidget.models import open_source

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
PROBING = {  # Table 2, fine-tuned
    "raw_attention": 0.08,
    "attn_norm": 0.56,
    "attn_norm_res": -0.24,
    "attn_norm_res_ln": 0.17,
    "globenc": -0.12,
    "alti": -0.12,
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
    layers = int(open_source(chosen.model).model.config.num_hidden_layers)
    alignment = _cue_alignment(chosen, examples, layers)
    _probing(chosen, alignment, layers)
    _blank_out(chosen, examples)


def _cue_alignment(chosen: Setup, examples: list[Example], layers: int) -> pd.DataFrame:
    clock = Clock()
    kinds = ("cue_dot", "cue_ap", "probes_needed")
    metrics = [(kind, {"layer": layer}) for kind in kinds for layer in range(layers)]
    frame = chosen.run(examples, MIXING, metrics)
    for kind, title in zip(kinds, ("mass on the cue words", "average precision", "probes needed")):
        heading(f"Value Zeroing, Figure 2: {title}, by layer", chosen, len(examples), clock())
        print("| method | " + " | ".join(str(layer) for layer in range(layers)) + " | mean |")
        print("|---|" + "---|" * (layers + 1))
        for method in MIXING:
            row = _row(frame, method, kind, layers)
            cells = " | ".join(f"{value:.2f}" for value in [*row, float(np.mean(row))])
            print(f"| {NAMES[method]} | {cells} |")
        print()
    return frame


def _row(frame: pd.DataFrame, method: str, kind: str, layers: int) -> list[float]:
    mine = frame[frame.method == method].set_index("metric")["mean"]
    return [float(mine[f"{kind}(layer={layer})"]) for layer in range(layers)]


def _probing(chosen: Setup, alignment: pd.DataFrame, layers: int) -> None:
    clock = Clock()
    rows = [json.loads(line) for line in Path(chosen.data).read_text().split("\n") if line]
    generator = np.random.default_rng(chosen.seed)
    some = generator.permutation(len(rows))[: 5 * chosen.limit]
    source = open_source(chosen.model)
    features = np.stack([layer_features(prepare(source, rows[i]["masked"])) for i in some])
    labels = [rows[i]["number"] for i in some]
    scores = [compression(features[:, layer], labels) for layer in range(layers + 1)]
    heading("Value Zeroing, Table 2: probing", chosen, len(labels), clock())
    print("Compression by layer, the embeddings first: " + ", ".join(f"{s:.2f}" for s in scores))
    print("\n| method | rho (paper) | rho (here) |\n|---|---|---|")
    found: list[dict[str, Any]] = []
    for method, theirs in PROBING.items():
        row = _row(alignment, method, "cue_dot", layers)
        rho = float(stats.spearmanr(row, scores[1:]).statistic)
        found.append({"method": method, "metric": "rho", "mean": rho, "n": 1, "better": "higher"})
        print(f"| {NAMES[method]} | {theirs:.2f} | {rho:.2f} |")
    print()
    compare_order(pd.DataFrame(found), "rho", f"rho over {layers} layers", PROBING)


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
