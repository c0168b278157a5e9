"""Metrics: should I believe this map? Plain functions on an `Explanation`.

Those that ask the model take it as their second argument (or its `Case`), and share what
they ask: `comprehensiveness(e, model)` then `sufficiency(e, model)` runs no text twice.
"""

from .alignment import (
    blank_out_rho,
    cue_ap,
    cue_dot,
    precision_at_k,
    probes_needed,
    saliency_rho,
)
from .comparison import (
    agreement,
    agreement_matrix,
    agreement_with,
    jaccard,
    kendall,
    kendall_tau,
    spearman,
)
from .evidence import Evidence, evidence, explain_case
from .faithfulness import Curve, aopc, comprehensiveness, curve, log_odds, sufficiency
from .probing import anisotropy, compression, layer_features, mean_cosine
from .report import faithfulness, faithfulness_report
from .table import METRICS, get_metric

__all__ = [
    "METRICS",
    "Curve",
    "Evidence",
    "agreement",
    "agreement_matrix",
    "agreement_with",
    "anisotropy",
    "aopc",
    "blank_out_rho",
    "comprehensiveness",
    "compression",
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
    "layer_features",
    "log_odds",
    "mean_cosine",
    "precision_at_k",
    "probes_needed",
    "saliency_rho",
    "spearman",
    "sufficiency",
]
