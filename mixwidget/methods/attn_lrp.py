"""Relevance by changed gradients: AttnLRP and CP-LRP, for every family."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import torch

from ..explanation import Part
from ..models import Activation, Attribution, attribute, graph_is_large
from .registry import method
from .run import IMBALANCE, Run, blocks_of

_HALF_BALANCE = 5e-2  # of models in half precision


def _relevance(run: Run, attention: bool, activation: Activation = "slope") -> Iterator[Part]:
    tokens = len(run.encoding.tokens)
    found = attribute(
        run.source,
        run.encoding.inputs,
        run.resolved,
        attention=attention,
        activation=activation,
        check=run.check,
        sparing=graph_is_large(run.source, tokens),
    )
    run.report(1.0)
    run.info |= {"balance": found.balance, "rules": found.rules}
    warn_of_imbalance(run, found)
    for layer, scores in enumerate(found.layers):
        for block in blocks_of(run, found.sides, layer):
            yield run.part(block, scores=scores)
    yield run.final(found.inputs)


def warn_of_imbalance(run: Run, found: Attribution) -> None:
    """Say so where the shares do not make the prediction, and what may be the reason."""
    half = any(p.dtype in (torch.float16, torch.bfloat16) for p in run.source.model.parameters())
    error = found.balance["error"]
    if error <= (_HALF_BALANCE if half else IMBALANCE):
        return
    unmet = found.rules.get("unmet", {})
    kept = {name: found.balance.get(name, 0.0) for name in unmet}
    worst = max(kept, key=lambda name: abs(kept[name]), default=None)
    why = "Some operation of it is unknown to the rules"
    if worst is not None and kept[worst]:
        why = f"There is no rule for {worst!r}, which keeps {kept[worst]:.3g} for itself"
    warnings.warn(
        f"{run.method.id} of {run.source.name}: inputs, biases and softmax miss the prediction by "
        f"{error:.1%}. {why}; do not trust these scores.",
        stacklevel=5,  # the caller of `explain`
    )


@method(
    "attn_lrp",
    title="AttnLRP",
    family="relevance",
    yields="layer_scores",
    paper="Achtibat et al.: AttnLRP: Attention-Aware Layer-Wise Relevance Propagation for "
    "Transformers",
    year=2024,
    link="https://proceedings.mlr.press/v235/achtibat24a.html",
    needs=("gradients", "passes", "target"),
    scores_from="first",
    signed=True,
    any_focus=True,
    measures="The target's logit shared out backwards through every operation of the model, the "
    "softmax of attention included. Positive speaks for the target, negative against it.",
    formula=r"s_j = \sum_d x_{jd} \frac{\tilde\partial y_c}{\partial x_{jd}}, \quad "
    r"y_c = \textstyle\sum_j s_j + \text{biases} + \text{softmax}",
    ignores="That norms depend on the text: their scales are constants. Biases and the softmax "
    "keep shares of their own. It finds what was copied better than the token that told where to "
    "look; `shapley` and `blank_out` find both.",
    cost=lambda size: 2.6,
)
def attn_lrp(run: Run) -> Iterator[Part]:
    """s_j = sum_d x_jd g_jd, [n], at what enters the first layer; per layer at what it reads.

    g is the gradient of the target's logit in a changed graph: norms divide by constants, an
    activation is multiplied by its value over its argument, of a product of two parts of the
    text (A V, Q K, gate and up, a router's weight and its expert) each gets half, and softmax
    keeps its true derivative. `info["balance"]`: target = inputs + biases + softmax, and
    `error`, relative to the sum of their absolute values; `info["rules"]` counts the functions
    that each rule was met by. Of an encoder-decoder what enters encoder and decoder is shared out
    on one axis. Achtibat et al. 2024.
    """
    yield from _relevance(run, attention=True)


@method(
    "cp_lrp",
    title="CP-LRP",
    family="relevance",
    yields="layer_scores",
    paper="Ali et al.: XAI for Transformers: Better Explanations through Conservative Propagation",
    year=2022,
    link="https://proceedings.mlr.press/v162/ali22a.html",
    needs=("gradients", "passes", "target"),
    scores_from="first",
    signed=True,
    any_focus=True,
    measures="The target's logit shared out backwards with attention weights taken as given: "
    "what was carried along them. Positive speaks for the target, negative against it.",
    formula=r"s_j = \sum_d x_{jd} \frac{\tilde\partial y_c}{\partial x_{jd}}\Big|_{A}, \quad "
    r"y_c = \textstyle\sum_j s_j + \text{biases}",
    ignores="Why a token was attended to: attention is constant, so the token that told where to "
    "look gets nothing. Norms' scales and the activation of a gate are constants too.",
    cost=lambda size: 2.3,
    options={
        "activation": (
            ("slope", "gradient"),
            "An activation passes relevance by its value over its argument, or by its derivative "
            "(then it keeps a share).",
        )
    },
)
def cp_lrp(run: Run, *, activation: Activation = "slope") -> Iterator[Part]:
    """As `attn_lrp`, with attention weights and the activation of a gate constant, [n].

    Nothing is halved, and nothing stays in the softmax: target = inputs + biases. With
    `activation="gradient"` activations keep their derivative, and what they keep is counted in
    `info["balance"]["activations"]`. Ali et al. 2022.
    """
    yield from _relevance(run, attention=False, activation=activation)
