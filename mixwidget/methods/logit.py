"""What the parts of a model write straight into a logit."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..blocks import part_distances, proximity
from ..errors import UnsupportedMethodError
from ..explanation import Part
from ..models import Direct, Size, direct
from .registry import method

if TYPE_CHECKING:
    from .run import Run

# Above this the parts do not make the logit.
_ERROR = 1e-3
_FERRANDO = {
    "paper": "Ferrando et al.: Explaining How Transformers Use Context to Build Predictions",
    "year": 2023,
    "link": "https://aclanthology.org/2023.acl-long.301",
}
_WITH_INIT = ((False, True), "Add what the token's own vector brings along the residual.")


def _direct(run: Run) -> Direct:
    """The logit's parts; what belongs to no token goes into `info`."""
    found = direct(run.source, run.encoding.inputs, run.resolved, run.check)
    run.info |= {
        "init": float(found.first.sum()),
        "feed_forward": found.feed_forward,
        "bias": found.biases,
        "balance": found.balance,
    }
    if found.balance["error"] > _ERROR:
        warnings.warn(
            f"{run.method.id} of {run.source.name}: its parts miss the logit by "
            f"{found.balance['error']:.1%}. The way its layers add up is not understood; do not "
            "trust these scores.",
            stacklevel=5,  # the caller of `explain`
        )
    return found


@method(
    "logit",
    title="Direct logit contributions",
    family="contributions",
    yields="layer_scores",
    **_FERRANDO,  # type: ignore[arg-type]
    needs=("gradients", "passes", "target"),
    scores_from="own",
    signed=True,
    any_focus=True,
    measures="What attention writes into the target's logit from each token, layer by layer and "
    "head by head. Positive speaks for the target, negative against it.",
    formula=r"s_j = \sum_{l,h} A^{l,h}_{rj}\, W_O^h v^{l,h}_j \cdot u^l, \quad "
    r"y_c = \text{init} + \textstyle\sum_j s_j + \sum_l \text{ffn}_l + \text{bias}",
    ignores="How a token's vector came about: in upper layers it holds other tokens too. What "
    "feed-forwards make of it is told apart in `info`. Attention is taken as given, so the token "
    "that told where to look gets nothing.",
    cost=lambda size: 2.3,
    options={"with_init": _WITH_INIT},
)
def logit(run: Run, *, with_init: bool = False) -> Iterator[Part]:
    """s_j = sum over layers and heads of A^h_rj W_O^h v^h_j . u^l, [n]; `head_scores` [L, H, n].

    u^l is what follows at row r, with norms' scales constant and the head's activations by their
    slope: residuals and norms, no later attention or feed-forward. `info` has `init` (what
    entered the first layer), `feed_forward` per layer and `bias`; with the scores they make the
    target's logit (`info["balance"]`). Ferrando et al. 2023, direct contributions.
    """
    found = _direct(run)
    run.report(1.0)
    total = found.first.clone() if with_init else torch.zeros_like(found.first)
    for layer, heads in enumerate(found.heads):
        total = total + heads.sum(0)
        yield run.part(layer, scores=heads.sum(0), heads=heads)
    yield run.final(total)


def _cost(size: Size) -> float:
    layer = 4 * size.width**2 + 2 * size.width * size.inner + 2 * size.tokens * size.width
    return 2.7 + size.tokens * size.width * (size.heads + 15) / layer


@method(
    "alti_logit",
    title="ALTI-Logit",
    family="contributions",
    yields="layer_scores",
    **_FERRANDO,  # type: ignore[arg-type]
    needs=("attention", "values", "gradients", "passes", "target"),
    scores_from="own",
    signed=True,
    any_focus=True,
    measures="Direct logit contributions, each traced back to the input tokens by the rollout of "
    "ALTI below its layer. Positive speaks for the target, negative against it.",
    formula=r"s_k = \sum_l \sum_j \text{logit}^l_j\, R^{l-1}_{jk}, \quad R^0 = I",
    ignores="What feed-forwards write into the logit, and that ALTI's shares have no sign. The "
    "token that told where to look gets what its vector brings, not what it decided.",
    cost=_cost,
    options={"with_init": _WITH_INIT},
)
def alti_logit(run: Run, *, with_init: bool = False) -> Iterator[Part]:
    """Per layer sum_j logit_l(j) R^(l-1)_jk, [n], R the rollout of `alti` and R^0 = I; summed.

    Per layer the sum over k is that of `logit` over j. `info` as there. Ferrando et al. 2023.
    """
    found = _direct(run)
    reached = torch.eye(run.trace.tokens, dtype=torch.float64)
    total = found.first.cpu().clone() if with_init else torch.zeros(len(reached)).double()
    written = [row.cpu() for row in found.blocks]
    if len(written) != len(run.trace):
        raise UnsupportedMethodError(
            f"{type(run.source.model).__name__} attends {len(written)} times on the way to the "
            f"prediction and {len(run.trace)} times in the recorded pass, so what is written "
            "cannot be traced back layer by layer. logit needs no layers below."
        )
    for layer in run.layers():
        scores = written[layer] @ reached
        total = total + scores
        yield run.part(layer, scores=scores)
        reached = _alti(run, layer) @ reached
    yield run.final(total)


def _alti(run: Run, layer: int) -> Tensor:
    """The map of `alti` of a layer, in float64 on the CPU. [n, n]"""
    with torch.no_grad():
        block = run.trace.block(layer)
        stage = block.stage("res_ln")
        map = proximity(block, stage, part_distances(block, stage, 1, run.tick), 1)
        return run.trace.completed(layer, map).cpu().double()
