"""Mask-LRP, Tables 1, 3 and 4: AOPC and log-odds, with random masks.

Masks of syntactic and positional heads come from `--masks`: sentences to find them in (a
dataset; needs spaCy and an English pipeline), or a .json of `HeadMasks.save`. Random masks, the
control, hold as many heads as that mask does. Without `--masks` only whole heads are measured.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.tables.common import Clock, Setup, column_of, heading, setup, table
from mixwidget import HeadMasks, head_masks

SENTENCES = 200  # to find heads in
DRAWS = 5
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
    "random mask": "random masks of as many heads, mean of five",
    "ours": "Mask-LRP",
    "syntactic": "syntactic heads only (Table 3)",
    "positional": "positional heads only (Table 3)",
}
METRICS: dict[str, Any] = {
    "aopc as released": ("aopc", {"as_released": True}),
    "log_odds": "log_odds",
    "aopc": "aopc",
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


def masked(masks: HeadMasks) -> dict[str, Any]:
    """Mask-LRP with the masks found, with random and with corrupted ones, as methods."""
    parts = {"syntactic": masks.syntactic, "positional": masks.positional, "ours": masks.mask}
    parts |= {f"random mask {seed}": masks.random(seed) for seed in range(DRAWS)}
    return {name: ("mask_lrp", {"mask": mask.tolist()}) for name, mask in parts.items()}


def main() -> None:
    chosen, given = setup(__doc__ or "")
    examples, clock = chosen.examples(), Clock()
    methods: dict[str, Any] = dict(METHODS)
    if given.masks:
        methods |= masked(_masks(chosen, given.masks))
    frame = chosen.run(examples, methods, METRICS, truncate=True)
    frame, spread = _join_random(frame)
    heading("Mask-LRP, Tables 1, 3 and 4", chosen, len(examples), clock())
    columns = {"aopc as released": "AOPC", "log_odds": "log-odds", "aopc": "AOPC, signed"}
    column = column_of(chosen, given.paper, PAPER)
    table(frame, columns, {m: (*v, None) for m, v in PAPER[column].items()}, NAMES)
    if spread:
        print(f"Random masks: standard deviation between the {DRAWS} {spread}.")


def _masks(chosen: Setup, path: str) -> HeadMasks:
    """Syntactic and positional heads, as saved or as found in a sample of sentences."""
    if path.endswith(".json"):
        return HeadMasks.load(path)
    texts = [one.text for one in replace(chosen, data=path, limit=SENTENCES).examples()]
    found = head_masks(chosen.model, texts, progress=False)
    print(
        f"Heads found in {len(texts)} sentences of `{Path(path).name}`: "
        f"{int(found.syntactic.sum())} syntactic and {int(found.positional.sum())} positional, "
        f"together {int(found.mask.sum())} of {found.mask.size}."
    )
    return found


def _join_random(frame: Any) -> tuple[Any, str]:
    """The random masks as one row, and how far they are apart."""
    drawn = frame.method.str.startswith("random mask ")
    if not drawn.any():
        return frame, ""
    words, rows = [], []
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
