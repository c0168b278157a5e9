"""DecompX: every token's part, carried through the whole model."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from ..explanation import Part
from ..models import Bias, decompose
from .registry import method
from .run import IMBALANCE, Run


@method(
    "decompx",
    title="DecompX",
    family="contributions",
    yields="maps",
    paper="Modarressi et al.: DecompX: Explaining Transformers Decisions by Propagating Token "
    "Decomposition",
    year=2023,
    link="https://aclanthology.org/2023.acl-long.149",
    needs=("gradients", "passes", "target"),
    combine="whole",
    scores_from="own",
    signed=True,
    measures="The part of every vector, and at last of the target's logit, that is each input "
    "token's: carried through attention, norms, feed-forwards and the head. Positive speaks for "
    "the target, negative against it.",
    formula=r"U^0 = \mathrm{diag}(x), \quad \textstyle\sum_j U^l_{ij} = o^l_i, \quad "
    r"M^l_{ij} = \|U^l_{ij}\|, \quad s_j = U^{out}_{rj}",
    ignores="That attention weights, norms' scales and gates depend on the text: they are "
    "constants, so the token that told where to look gets nothing for it.",
    cost=lambda size: 1.0 + 1.2 * size.tokens,
    options={
        "bias": (
            ("absdot", "norm", "equal", "none"),
            "Who gets a bias: parts by their product with it, by their length, all alike, nobody.",
        )
    },
)
def decompx(run: Run, *, bias: Bias = "absdot") -> Iterator[Part]:
    """Maps ||U^l_ij||, [n, n], of vectors that go all the way from the input; scores U_rj. [n]

    Attention, norms' scales and gates are frozen, activations by slope. A bias b is shared over
    j by |U_ij . b| where it is added (that of the values with the output projection's, at the
    residual sum). The sum over j of U_ij is the layer's output, that of the scores the target's
    logit; with `bias="none"` the scores are those of `cp_lrp`. Modarressi et al. 2023.
    """
    made = decompose(run.source, run.encoding.inputs, run.target, bias, run.check)
    run.report(1.0)
    rest = made.target - float(made.scores.sum())
    size = abs(made.target) + float(made.scores.abs().sum())
    run.info["balance"] = {
        "target": made.target,
        "inputs": float(made.scores.sum()),
        "biases": rest if bias == "none" else 0.0,
        "softmax": 0.0,
        "error": 0.0 if bias == "none" or not size else abs(rest) / size,
    }
    if run.info["balance"]["error"] > IMBALANCE:
        warnings.warn(
            f"{run.method.id} of {run.source.name}: the parts miss the prediction by "
            f"{run.info['balance']['error']:.1%}. Some operation of it is not carried as it is "
            "computed; do not trust these scores.",
            stacklevel=5,  # the caller of `explain`
        )
    for layer, map in enumerate(made.maps):
        yield run.part(layer, map)
    yield run.final(made.scores)
