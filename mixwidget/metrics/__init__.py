"""Metrics: should I believe this map? Plain functions on an `Explanation`.

Those that ask the model take it as their second argument (or its `Case`), and share what
they ask: `comprehensiveness(e, model)` then `sufficiency(e, model)` runs no text twice.
"""

from ..engine import explain_case
from .alignment import (
    blank_out_rho,
    cue_ap,
    cue_dot,
    precision_at_k,
    probes_needed,
    saliency_rho,
)
from .answers import lds, top_k_drop
from .comparison import (
    MEASURES,
    agreement,
    agreement_matrix,
    agreement_with,
    jaccard,
    kendall,
    kendall_tau,
    kept_places,
    pearson,
    spearman,
)
from .evidence import Evidence, evidence, scores_of
from .faithfulness import Curve, aopc, comprehensiveness, curve, log_odds, sufficiency
from .probing import (
    anisotropy,
    compression,
    compression_by_layer,
    layer_features,
    mean_cosine,
    outlier_weights,
)
from .report import SEEDS, ReportPart, faithfulness, faithfulness_report
from .table import FAITHFULNESS, METRICS, Choice, choices, get_metric

__all__ = [
    "FAITHFULNESS",
    "MEASURES",
    "METRICS",
    "SEEDS",
    "Choice",
    "Curve",
    "Evidence",
    "ReportPart",
    "agreement",
    "agreement_matrix",
    "agreement_with",
    "anisotropy",
    "aopc",
    "blank_out_rho",
    "choices",
    "comprehensiveness",
    "compression",
    "compression_by_layer",
    "cue_ap",
    "cue_dot",
    "curve",
    "evidence",
    "explain_case",
    "faithfulness",
    "faithfulness_report",
    "get_metric",
    "jaccard",
    "kendall",
    "kendall_tau",
    "kept_places",
    "layer_features",
    "lds",
    "log_odds",
    "mean_cosine",
    "outlier_weights",
    "pearson",
    "precision_at_k",
    "probes_needed",
    "saliency_rho",
    "scores_of",
    "spearman",
    "sufficiency",
    "top_k_drop",
]
