"""Methods that weigh what a layer holds by the gradient of the target's logit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from ..explanation import Part
from ..models import (
    embedded,
    gradients,
    is_long,
    objective,
    plain_output,
    positive_attention,
    recorded_with_graph,
    shared_slopes,
    shared_weights,
    token_embeddings,
)
from .registry import method

if TYPE_CHECKING:
    from .run import Run

_ATTCAT = {
    "paper": "Qiang et al.: AttCAT: Explaining Transformers via Attentive Class Activation Tokens",
    "year": 2022,
    "link": "https://papers.nips.cc/paper_files/paper/2022/hash/20e45668fefa793bd9f2edf19be12c4b-Abstract-Conference.html",
}
_GRAD_SAM = {
    "paper": "Barkan et al.: Grad-SAM: Explaining Transformers via Gradient Self-Attention Maps",
    "year": 2021,
    "link": "https://arxiv.org/abs/2204.11073",
}
_CHEFER = {
    "paper": "Chefer et al.: Generic Attention-model Explainability for Interpreting Bi-Modal "
    "and Encoder-Decoder Transformers",
    "year": 2021,
    "link": "https://arxiv.org/abs/2103.15679",
}
_FEATURES = (
    ("output", "input"),
    "The vectors that are weighed: what the layer puts out, or what it reads (as released).",
)
ZERO_FOCUS = (
    (False, True),
    "Set the focus token's own score to 0, as the authors' code does.",
)


def attention_gradients(run: Run) -> tuple[dict[int, Tensor], dict[int, Tensor]]:
    """A and dy_c/dA of every layer that attends, each [H, n, n], in float64: their products are
    tiny. By layer."""
    if (shared := shared_slopes(run.case, "attention", "logit")) is not None:
        held, changes = (dict(enumerate(one.double() for one in all)) for all in shared)
        return held, changes
    trace, _ = recorded_with_graph(run.source, run.encoding, run.check)
    nodes = [trace.weights(layer) for layer in trace.attending]
    slopes = gradients(objective(trace.output, run.target), nodes)

    def placed(tensors: list[Tensor]) -> dict[int, Tensor]:
        pairs = zip(trace.attending, tensors, strict=True)
        return {layer: trace.on_axis(layer, tensor.detach()).double() for layer, tensor in pairs}

    return placed(nodes), placed(slopes)


def finish(run: Run, scores: Tensor, zero_focus: bool) -> Part:
    """The final scores, the focus token's own set to 0 if asked for."""
    scores = scores.clone()
    if zero_focus:
        scores[run.focus] = 0
    return run.final(scores)


def _class_activation(run: Run, features: str) -> tuple[list[Tensor], dict[int, Tensor]]:
    """sum_d h_id * dy_c/dh_id of every layer [n]; and the attention weights [H, n, n] of those
    that attend. What a decoder's layer holds is counted with its attention over the prefix."""
    kind: Literal["input", "output"] = "input" if features == "input" else "output"
    if (shared := shared_slopes(run.case, kind, "logit")) is not None:
        pairs = zip(*shared, strict=True)
        own = [(node * 1.0).double().mul_(slope.double()).sum(-1) for node, slope in pairs]
        return own, dict(enumerate(shared_weights(run.case)))
    trace, _ = recorded_with_graph(run.source, run.encoding, run.check)
    records = trace.layers
    nodes = [record.input if features == "input" else record.output for record in records]
    hidden = [node for node in nodes if node is not None]
    slopes = gradients(objective(trace.output, run.target), hidden)
    activations = []
    for record, node, slope in zip(records, hidden, slopes, strict=True):
        made = (
            (node.detach() * 1.0)
            .double()
            .mul_(slope.double())
            .sum(-2 if record.turned else -1)
            .flatten()
        )
        activations.append(made if record.place is None else record.place.scores(made))
    weights = {layer: trace.weights(layer).detach() for layer in trace.attending}
    return activations, {layer: trace.on_axis(layer, a) for layer, a in weights.items()}


@method(
    "cat",
    title="Class activation of tokens (CAT)",
    family="class activation",
    yields="layer_scores",
    **_ATTCAT,  # type: ignore[arg-type]
    needs=("gradients", "passes", "target"),
    signed=True,
    any_focus=True,
    measures="What each token's vector, layer by layer, adds to the target's logit, to first "
    "order. Positive speaks for the target, negative against it.",
    formula=r"s_i = \sum_l \sum_d h^l_{id} \frac{\partial y_c}{\partial h^l_{id}}",
    ignores="How a token's vector came about: in upper layers it holds other tokens too.",
    cost=lambda size: 2.2,
    options={"features": _FEATURES},
)
def cat(run: Run, *, features: str = "output") -> Iterator[Part]:
    """Per layer s_i = sum_d h_id dy_c/dh_id, [n], h the layer's output; summed over layers.

    Qiang et al. 2022. `features="input"`: h is the layer's input, as in the released code.
    """
    activations, _ = _class_activation(run, features)
    for layer in run.layers():
        yield run.part(layer, scores=activations[layer])


@method(
    "attcat",
    title="AttCAT",
    family="class activation",
    yields="layer_scores",
    **_ATTCAT,  # type: ignore[arg-type]
    needs=("attention", "gradients", "passes", "target"),
    signed=True,
    any_focus=True,
    measures="Class activation of each token, weighed by how much attention the token receives "
    "in that layer.",
    formula=r"s_i = \sum_l \Bigl(\tfrac{1}{Hn} \sum_{h,k} A^{l,h}_{ki}\Bigr) "
    r"\sum_d h^l_{id} \frac{\partial y_c}{\partial h^l_{id}}",
    ignores="Which token attends: attention is averaged over all rows and heads.",
    cost=lambda size: 2.2,
    options={"features": _FEATURES},
)
def attcat(run: Run, *, features: str = "output") -> Iterator[Part]:
    """Per layer cat_i times the mean over heads and rows of A[:, :, i], [n]; summed.

    Qiang et al. 2022. `features="input"` as for `cat`.
    """
    activations, weights = _class_activation(run, features)
    for layer in run.layers():
        received = weights[layer].double().mean((0, 1))
        yield run.part(layer, scores=activations[layer] * received)


@method(
    "attn_grad",
    title="Attention gradient",
    family="class activation",
    yields="scores",
    **_GRAD_SAM,  # type: ignore[arg-type]
    needs=("attention", "gradients", "passes", "target"),
    any_focus=True,
    measures="How much the target's logit would rise if the last layer attended more to a token.",
    formula=r"s_j = \mathrm{relu}\Bigl(\tfrac{1}{Hn} \sum_{h,i} "
    r"\frac{\partial y_c}{\partial A^{L,h}_{ij}}\Bigr)",
    ignores="All layers but the last, and how much the token is attended to.",
    cost=lambda size: 2.2,
    options={
        "layers": (("last", "all"), "the last layer's, or the mean over all"),
        "zero_focus": ZERO_FOCUS,
    },
)
def attn_grad(run: Run, *, layers: str = "last", zero_focus: bool = False) -> Iterator[Part]:
    """s_j = relu(mean over heads and rows of dy_c/dA of the last layer), [n].

    The ablation of Barkan et al. 2021 that leaves attention out; CAM in later comparisons. With
    `layers="all"` the mean of what every layer gives.
    """
    _, slopes = attention_gradients(run)
    chosen = sorted(slopes) if layers == "all" else [max(slopes)]
    scores = torch.stack([slopes[layer].mean((0, 1)).relu() for layer in chosen]).mean(0)
    yield finish(run, scores, zero_focus)


@method(
    "grad_sam",
    title="Grad-SAM",
    family="class activation",
    yields="layer_scores",
    **_GRAD_SAM,  # type: ignore[arg-type]
    needs=("attention", "gradients", "passes", "target"),
    scores_from="mean",
    any_focus=True,
    measures="Attention a token receives where more of it would raise the target's logit, "
    "averaged over layers, heads and rows.",
    formula=r"s_j = \tfrac{1}{LHn} \sum_{l,h,i} A^{l,h}_{ij}\, "
    r"\mathrm{relu}\Bigl(\frac{\partial y_c}{\partial A^{l,h}_{ij}}\Bigr)",
    ignores="Attention that speaks against the target; the way through the layers.",
    cost=lambda size: 2.2,
)
def grad_sam(run: Run) -> Iterator[Part]:
    """Per layer mean over heads and rows of A * relu(dy_c/dA), [n]; averaged over layers.

    Barkan et al. 2021.
    """
    weights, slopes = attention_gradients(run)
    for layer in run.layers():
        yield run.part(layer, scores=(weights[layer] * slopes[layer].relu()).mean((0, 1)))


@method(
    "grad_cam",
    title="Grad-CAM on attention",
    family="class activation",
    yields="scores",
    paper="Selvaraju et al.: Grad-CAM; on attention by Chefer et al.",
    year=2017,
    link="https://arxiv.org/abs/1610.02391",
    needs=("attention", "gradients", "passes", "target"),
    measures="The focus token's attention in the last layer, each head weighed by its mean "
    "gradient.",
    formula=r"s_j = \mathrm{minmax}\,\mathrm{relu}\Bigl(\tfrac{1}{H} \sum_h A^{L,h}_{fj}\, "
    r"\overline{\frac{\partial y_c}{\partial A^{L,h}}}\Bigr)",
    ignores="All layers but the last; where in a head the gradient is.",
    cost=lambda size: 2.2,
    options={"zero_focus": ZERO_FOCUS},
)
def grad_cam(run: Run, *, zero_focus: bool = False) -> Iterator[Part]:
    """relu(mean_h A^h * mean(dy_c/dA^h)) of the last layer, min-max over [n, n]; focus row [n].

    Selvaraju et al. 2017, on attention as in Chefer et al. 2021. A flat matrix gives zeros
    (the authors' code divides by zero there).
    """
    weights, slopes = attention_gradients(run)
    last = max(weights)
    importance = slopes[last].mean((1, 2), keepdim=True)
    matrix = (weights[last] * importance).mean(0).relu()
    span = matrix.max() - matrix.min()
    scaled = (matrix - matrix.min()) / span if bool(span > 0) else torch.zeros_like(matrix)
    yield finish(run, scaled[run.focus], zero_focus)


@method(
    "gae",
    title="Generic attention explainability (GAE)",
    family="class activation",
    yields="maps",
    **_CHEFER,  # type: ignore[arg-type]
    needs=("attention", "gradients", "passes", "target"),
    combine="with_identity",
    measures="Attention weighed by the target's gradient, followed through the layers; the "
    "residual carries every token on as itself.",
    formula=r"M^l = \tfrac{1}{H} \sum_h \mathrm{relu}\Bigl(\frac{\partial y_c}{\partial A^{l,h}} "
    r"\odot A^{l,h}\Bigr), \quad R^l = R^{l-1} + M^l R^{l-1}",
    ignores="Values, norms and feed-forward; gradients against the target. The residual counts "
    "as 1 whatever its size.",
    cost=lambda size: 2.2,
    options={"zero_focus": ZERO_FOCUS},
)
def gae(run: Run, *, zero_focus: bool = False) -> Iterator[Part]:
    """M = mean_h relu(dy_c/dA * A), [n, n]; R <- R + M R from R = I; scores are the focus row.

    Chefer et al. 2021 (generic). Scores are not normalised. `zero_focus=True` sets the focus
    token's own score, which the identity dominates, to 0.
    """
    if is_long(run.source, len(run.encoding.tokens)):
        yield from _gae_of_long(run, zero_focus)
        return
    weights, slopes = attention_gradients(run)
    combined = torch.eye(
        run.trace.tokens, dtype=torch.float64, device=next(iter(weights.values())).device
    )
    for layer in run.layers():
        step = (slopes[layer] * weights[layer]).relu().mean(0)
        combined = combined + step.to(combined.device) @ combined
        yield run.part(layer, step)
    if zero_focus:
        yield finish(run, combined[run.focus], zero_focus)


def _gae_of_long(run: Run, zero_focus: bool) -> Iterator[Part]:
    """The same with one layer's attention held at a time, and the focus row carried down."""
    encoding, found = run.encoding, list[Part]()
    row = torch.zeros(len(encoding.tokens), dtype=torch.float64)
    row[run.focus] = 1.0

    def value(model: Any) -> Tensor:
        run.check()
        embeddings = token_embeddings(run.source, encoding.ids).requires_grad_()
        with embedded(model, encoding, embeddings) as inputs:
            output = model(**inputs, **plain_output(model))
        return objective(output, run.resolved(output))

    def take(layer: int, step: Tensor) -> None:
        nonlocal row
        run.check()
        run.report(1.0 - layer / len(run.trace))
        row = row + row @ step.cpu()
        found.append(run.part(layer, step))

    positive_attention(run.source, value, len(encoding.tokens), take)
    yield from sorted(found, key=lambda part: part.layer or 0)
    if zero_focus:
        yield finish(run, row, zero_focus)
