"""AttCAT (Qiang et al. 2022), Tables 1 and 2: AOPC, log-odds and Kendall between classes."""

from __future__ import annotations

from typing import Any

from benchmarks.tables.common import Clock, column_of, heading, setup, table

METHODS = {
    "raw_attention": "raw_attention",
    "attention_rollout": "attention_rollout",
    "attn_grad": "attn_grad",
    "grad_cam": "grad_cam",
    "attn_grad_all": ("attn_grad", {"layers": "all"}),
    "grad_sam": "grad_sam",
    "partial_lrp": "partial_lrp",
    "transatt": "transatt",
    "cat": "cat",
    "attcat": "attcat",
    "attcat_input": ("attcat", {"features": "input"}),
    "random": "random",
}
NAMES = {
    "raw_attention": "RawAtt",
    "attention_rollout": "Rollout",
    "attn_grad": "Grads",
    "grad_cam": "AttGrads (their code: last layer)",
    "attn_grad_all": "AttGrads, gradients of all layers",
    "grad_sam": "AttGrads, attention and gradients of all layers (their text)",
    "partial_lrp": "PartialLRP",
    "transatt": "TransAtt",
    "cat": "CAT",
    "attcat": "AttCAT",
    "attcat_input": "AttCAT, features of the layer's input (their code)",
}
METRICS: dict[str, Any] = {
    "aopc as released": ("aopc", {"as_released": True}),
    "aopc": "aopc",
    "log_odds": "log_odds",
    "kendall as released": ("kendall", {"as_released": True}),
    "kendall": "kendall",
}
PAPER = {  # BERT: AOPC, log-odds
    "sst2": {
        "raw_attention": (0.331, -0.885),
        "attention_rollout": (0.286, -0.641),
        "attn_grad": (0.335, -0.252),
        "grad_cam": (0.351, -0.603),
        "partial_lrp": (0.341, -0.922),
        "transatt": (0.354, -1.038),
        "cat": (0.352, -1.115),
        "attcat": (0.371, -1.319),
    },
    "imdb": {
        "raw_attention": (0.298, -1.245),
        "attention_rollout": (0.331, -1.323),
        "attn_grad": (0.304, -1.227),
        "grad_cam": (0.310, -1.267),
        "partial_lrp": (0.312, -1.321),
        "transatt": (0.421, -2.137),
        "cat": (0.406, -3.052),
        "attcat": (0.528, -3.671),
    },
}
KENDALL = {
    "sst2": {
        "attn_grad": 0.150,
        "grad_cam": 0.116,
        "partial_lrp": 0.955,
        "transatt": 0.336,
        "cat": 0.101,
        "attcat": 0.018,
    },
    "imdb": {
        "attn_grad": 0.098,
        "grad_cam": 0.064,
        "partial_lrp": 0.858,
        "transatt": 0.043,
        "cat": 0.056,
        "attcat": 0.023,
    },
}


def main() -> None:
    chosen, given = setup(__doc__ or "")
    examples, clock = chosen.examples(), Clock()
    column = column_of(chosen, given.paper, PAPER)
    frame = chosen.run(examples, METHODS, METRICS, truncate=True)
    heading("AttCAT, Table 1", chosen, len(examples), clock())
    columns = {"aopc as released": "AOPC", "log_odds": "log-odds", "aopc": "AOPC, signed"}
    paper = {method: (*values, None) for method, values in PAPER[column].items()}
    table(frame, columns, paper, NAMES)
    heading("AttCAT, Table 2: Kendall between the classes", chosen, len(examples), clock())
    own = frame[frame.method.isin([*KENDALL[column], "attn_grad_all", "grad_sam", "attcat_input"])]
    columns = {"kendall as released": "of sorted indices, as released", "kendall": "of the scores"}
    table(own, columns, {m: (value, None) for m, value in KENDALL[column].items()}, NAMES)


if __name__ == "__main__":
    main()
