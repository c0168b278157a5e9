"""Question answering: AttCAT's Figure 3 and Mask-LRP's Table 2, precision at 20.

DATA is SQuAD's form: a .jsonl of `question`, `context`, `answers`; `benchmarks.questions` makes one
and models that answer. Measured is the row of the answer's first token, which is what answers,
and beside it the row of [CLS], as of a classifier.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks.tables.common import Clock, heading, setup, table

METHODS: dict[str, Any] = {
    "raw_attention": "raw_attention",
    "attention_rollout": "attention_rollout",
    "attn_grad": "attn_grad",
    "grad_cam": "grad_cam",
    "partial_lrp": "partial_lrp",
    "transatt": "transatt",
    "cat": "cat",
    "attcat": "attcat",
    "mask_lrp": "mask_lrp",
    "globenc": "globenc",
    "alti": "alti",
    "value_zeroing": "value_zeroing",
    "attn_lrp": "attn_lrp",
    "random": "random",
}
NAMES = {
    "raw_attention": "RawAtt",
    "attention_rollout": "Rollout",
    "attn_grad": "Grads",
    "grad_cam": "AttGrads",
    "partial_lrp": "PartialLRP",
    "transatt": "TransAtt",
    "cat": "CAT",
    "attcat": "AttCAT",
    "mask_lrp": "Mask-LRP (heads positional in the text)",
    "globenc": "GlobEnc",
    "alti": "ALTI",
    "value_zeroing": "Value Zeroing",
    "attn_lrp": "AttnLRP",
}
METRICS: dict[str, Any] = {
    "at 20": ("precision_at_k", {"k": 20}),
    "at 5": ("precision_at_k", {"k": 5}),
}
# Mask-LRP's Table 2, SQuAD 1, in percent: BERT, GPT-2, RoBERTa.
PAPER = {
    "bert": {"attention_rollout": 4.62, "raw_attention": 36.33, "attcat": 31.44, "mask_lrp": 52.97},
    "gpt2": {"attention_rollout": 5.86, "raw_attention": 28.97, "attcat": 17.53, "mask_lrp": 51.62},
    "roberta": {
        "attention_rollout": 8.04,
        "raw_attention": 45.61,
        "attcat": 47.32,
        "mask_lrp": 67.31,
    },
}


def main() -> None:
    chosen, given = setup(__doc__ or "")
    examples, clock = chosen.examples(), Clock()
    build = given.paper or open_build(chosen.model)
    paper = {method: (value / 100, None) for method, value in PAPER[build].items()}
    for row, focus in (("the answer's first token", None), ("[CLS]", 0)):
        asked = [replace(one, focus=focus) for one in examples]
        frame = chosen.run(asked, METHODS, METRICS)
        heading(f"Precision at 20, read at {row}", chosen, len(examples), clock())
        table(frame, {"at 20": "at 20", "at 5": "at 5"}, paper, NAMES)


def open_build(model: str) -> str:
    from mixwidget.models import open_source

    return str(open_source(model).model.config.model_type)


if __name__ == "__main__":
    main()
