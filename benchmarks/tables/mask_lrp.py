"""Mask-LRP, Tables 1, 3 and 4: AOPC and log-odds, with random masks.

Masks of syntactic and positional heads come from `--masks`: sentences to find them in (a
dataset; needs spaCy and an English pipeline), or a .json of {"syntactic": [L][H],
"positional": [L][H]}. Without it only random masks are measured.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables.common import Clock, Setup, heading, setup, table
from mixwidget import head_masks
from mixwidget.models import open_source

SENTENCES = 200  # to find heads in
METHODS = {
    "raw_attention": "raw_attention",
    "attention_rollout": "attention_rollout",
    "lrp": "lrp",
    "partial_lrp": "partial_lrp",
    "gae": "gae",
    "attn_grad": "attn_grad",
    "grad_cam": "grad_cam",
    "attcat": "attcat",
    "transatt": "transatt",
    "alti": "alti",
    "random": "random",
}
NAMES = {
    "raw_attention": "RawAtt",
    "attention_rollout": "Rollout",
    "lrp": "LRP",
    "partial_lrp": "PartialLRP",
    "gae": "GAE",
    "attn_grad": "CAM",
    "grad_cam": "GradCAM",
    "attcat": "AttCAT",
    "transatt": "TransAtt (all heads kept)",
    "alti": "ALTI (Table 4)",
    "random": "random scores",
    "random mask": "random masks, mean of five",
    "ours": "Mask-LRP",
    "syntactic": "syntactic heads only (Table 3)",
    "positional": "positional heads only (Table 3)",
}
PAPER = {  # BERT: AOPC, log-odds
    "sst2": {
        "raw_attention": (0.374, -0.992),
        "attention_rollout": (0.337, -0.911),
        "lrp": (0.336, -0.888),
        "partial_lrp": (0.396, -1.052),
        "gae": (0.423, -1.171),
        "attn_grad": (0.399, -1.086),
        "grad_cam": (0.341, -0.855),
        "attcat": (0.405, -1.110),
        "alti": (0.369, -0.866),
        "random mask": (0.432, -1.205),
        "ours": (0.438, -1.208),
        "syntactic": (0.438, -1.208),
        "positional": (0.437, -1.205),
    },
    "imdb": {
        "raw_attention": (0.354, -1.593),
        "attention_rollout": (0.334, -1.456),
        "lrp": (0.288, -1.271),
        "partial_lrp": (0.370, -1.726),
        "gae": (0.384, -1.853),
        "attn_grad": (0.365, -1.883),
        "grad_cam": (0.236, -0.974),
        "attcat": (0.340, -1.697),
        "alti": (0.342, -0.748),
        "random mask": (0.387, -1.898),
        "ours": (0.392, -1.906),
    },
}


def main() -> None:
    chosen, given = setup(__doc__ or "")
    examples, clock = chosen.examples(), Clock()
    config = open_source(chosen.model).model.config
    shape = (int(config.num_hidden_layers), int(config.num_attention_heads))
    methods: dict[str, Any] = dict(METHODS)
    for seed in range(5):
        mask = (np.random.RandomState(seed).rand(*shape) > 0.5).astype(int).tolist()
        methods[f"random mask {seed}"] = ("mask_lrp", {"mask": mask})
    if given.masks:
        masks = _masks(chosen, given.masks)
        masks["ours"] = np.maximum(masks["syntactic"], masks["positional"])
        for name, mask in masks.items():
            methods[name] = ("mask_lrp", {"mask": mask.astype(int).tolist()})
    metrics = {"aopc as released": ("aopc", {"as_released": True}), "log_odds": "log_odds"}
    metrics["aopc"] = ("aopc", {})
    frame = chosen.run(examples, methods, metrics, truncate=True)
    frame, spread = _join_random(frame)
    heading("Mask-LRP, Tables 1, 3 and 4", chosen, len(examples), clock())
    columns = {"aopc as released": "AOPC", "log_odds": "log-odds", "aopc": "AOPC, signed"}
    column = given.paper or ("imdb" if "imdb" in chosen.data else "sst2")
    table(frame, columns, {m: (*v, None) for m, v in PAPER[column].items()}, NAMES)
    print("Random masks: standard deviation between the five " + spread)


def _masks(chosen: Setup, path: str) -> dict[str, np.ndarray[Any, Any]]:
    """Syntactic and positional heads, as saved or as found in a sample of sentences."""
    if path.endswith(".json"):
        saved = json.loads(Path(path).read_text())
        return {name: np.array(saved[name]) for name in ("syntactic", "positional")}
    texts = [one.text for one in replace(chosen, data=path, limit=SENTENCES).examples()]
    found = head_masks(chosen.model, texts, progress=False)
    print(
        f"Heads found in {len(texts)} sentences of `{Path(path).name}`: "
        f"{int(found.syntactic.sum())} syntactic and {int(found.positional.sum())} positional "
        f"of {found.mask.size}."
    )
    return {"syntactic": found.syntactic, "positional": found.positional}


def _join_random(frame: Any) -> tuple[Any, str]:
    """The five random masks as one row, and how far they are apart."""
    drawn = frame.method.str.startswith("random mask ")
    words = []
    rows = []
    for metric, group in frame[drawn].groupby("metric", sort=False):
        row = group.iloc[0].copy()
        row["method"], row["mean"] = "random mask", group["mean"].mean()
        row["stderr"] = group["stderr"].mean()
        rows.append(row)
        words.append(f"{metric} {group['mean'].std():.4f}")
    import pandas as pd

    joined = pd.concat([frame[~drawn], pd.DataFrame(rows)], ignore_index=True)
    return joined.astype({"n": int}), ", ".join(words)


if __name__ == "__main__":
    main()
