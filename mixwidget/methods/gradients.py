"""Methods that differentiate the prediction with respect to the token embeddings."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ..errors import UnsupportedMethodError
from ..explanation import Part
from ..models import (
    Prediction,
    Size,
    gradients,
    layer_gradients,
    neutral_token,
    read,
    shared_slopes,
    source_batches,
    token_embeddings,
)
from .registry import method

if TYPE_CHECKING:
    from .run import Run

_OF = (("probability", "logit"), "What is differentiated: the target's probability or its logit.")
_NORM = (
    ("l2", "mean", "sum"),
    "A token's size: length of its vector, mean of absolute values, or the signed sum as it is.",
)
_AT = (("embedding", "layers"), "Taken at the token embeddings, or at every layer's input.")
_STEPS = 100
# Tokens in one pass of integrated gradients: enough to fill the cores, little enough to cache.
_BATCH_TOKENS = 1024


def token_sizes(vectors: Tensor, norm: str = "l2") -> Tensor:
    """One number for each token's vector [n, d], scaled to sum 1 (all zero stays zero). [n]

    With `norm="sum"` the signed sum, not scaled.
    """
    vectors = vectors.double()
    if norm == "sum":
        return vectors.sum(-1)
    sizes = vectors.norm(dim=-1) if norm == "l2" else vectors.abs().mean(-1)
    total = sizes.sum()
    return sizes / total if bool(total > 0) else sizes


def _embeddings(run: Run) -> Tensor:
    """Of the text's tokens, [1, n, d]."""
    return token_embeddings(run.source, run.encoding.ids, run.encoding.first_row)


def _gradient(run: Run, of: str) -> tuple[Tensor, Tensor]:
    """Embeddings and dF/de, both [n, d]."""
    if (shared := shared_slopes(run.case, "embeddings", of)) is not None:
        return shared[0][0], shared[1][0]
    embeddings = _embeddings(run).requires_grad_()
    predict = Prediction(run.source, run.encoding, run.resolved, of, lambda rows: run.check())
    (gradient,) = gradients(predict(embeddings), [embeddings])
    return embeddings[0].detach(), gradient[0]


def _by_layer(run: Run, of: str, size: Callable[[Tensor, Tensor], Tensor]) -> Iterator[Part]:
    """A size of (what a layer reads, the slope there) for every layer; the first's at last."""

    def value(output: Any) -> Tensor:
        return read(output, run.resolved(output), of)

    found = layer_gradients(run.source, run.encoding.inputs, value, run.check)
    rows = [size(reads, slope) for reads, slope in found]
    for layer, scores in enumerate(rows):
        yield run.part(layer, scores=scores)
    yield run.final(rows[0])


@method(
    "gradient",
    title="Gradient",
    family="gradients",
    yields="scores",
    paper="Simonyan et al.: Deep Inside Convolutional Networks",
    year=2013,
    link="https://arxiv.org/abs/1312.6034",
    needs=("gradients", "passes", "target"),
    any_focus=True,
    measures="How strongly the prediction reacts to a small change of each token's embedding.",
    formula=r"s_j \propto \left\lVert \frac{\partial p_c}{\partial e_j} \right\rVert_2",
    ignores="What the embedding is, and the direction of the change: no sign. One point only, "
    "so a saturated prediction has gradients near zero everywhere.",
    cost=lambda size: 2.2,
    options={"of": _OF, "at": _AT},
)
def gradient(run: Run, *, of: str = "probability", at: str = "embedding") -> Iterator[Part]:
    """s_j = ||dF/de_j||_2, [n], scaled to sum 1; e are the token embeddings alone.

    With `at="layers"` the same at what every layer reads, each scaled to sum 1; scores are the
    first layer's.

    F is the target's probability or, with `of="logit"`, its logit. Positions and segments are
    held. Simonyan et al. 2013 take the maximum over channels of an image; for text the length.
    """
    if at == "layers":
        yield from _by_layer(run, of, lambda reads, slope: token_sizes(slope))
        return
    _, slope = _gradient(run, of)
    yield run.final(token_sizes(slope))


@method(
    "gradient_x_input",
    title="Gradient × input",
    family="gradients",
    yields="scores",
    paper="Denil et al.: Extraction of Salient Sentences from Labelled Documents",
    year=2014,
    link="https://arxiv.org/abs/1412.6815",
    needs=("gradients", "passes", "target"),
    any_focus=True,
    measures="The slope of the prediction along each token's embedding, times that embedding: "
    "a first-order guess of what it brings.",
    formula=r"s_j \propto \left\lVert \frac{\partial p_c}{\partial e_j} \odot e_j \right\rVert",
    ignores="Everything beyond the first order; the sign is dropped by the norm.",
    cost=lambda size: 2.2,
    options={"of": _OF, "norm": _NORM, "at": _AT},
)
def gradient_x_input(
    run: Run, *, of: str = "probability", norm: str = "l2", at: str = "embedding"
) -> Iterator[Part]:
    """s_j = ||dF/de_j * e_j||, [n], scaled to sum 1: `norm="l2"`, or "mean" of absolute values.

    `norm="sum"` is the signed inner product, not scaled. Denil et al. 2014. F and `at` as for
    `gradient`.
    """
    if at == "layers":
        yield from _by_layer(run, of, lambda reads, slope: token_sizes(slope * reads, norm))
        return
    embeddings, slope = _gradient(run, of)
    yield run.final(token_sizes(slope * embeddings, norm))


def baseline_embeddings(run: Run) -> tuple[Tensor, str]:
    """The text with a token that says nothing at every ordinary place, [1, n, d]; and its name.

    Special tokens stay. The mask token where there is one; else what `neutral_token` gives
    (unknown, padding); else the zero vector.
    """
    ordinary = run.encoding.ordinary()
    token, name = neutral_token(run.source, "mask")
    if token is not None:
        ids = run.encoding.ids.clone()
        ids[ordinary] = token
        return token_embeddings(run.source, ids, run.encoding.first_row), name
    embeddings = _embeddings(run)
    embeddings[0, ordinary] = 0
    return embeddings, "zero vector"


@method(
    "integrated_gradients",
    title="Integrated gradients",
    family="gradients",
    yields="scores",
    paper="Sundararajan et al.: Axiomatic Attribution for Deep Networks",
    year=2017,
    link="https://arxiv.org/abs/1703.01365",
    needs=("gradients", "passes", "target"),
    any_focus=True,
    measures="The prediction's change from a text of mask tokens to this text, shared out by "
    "the gradients along the straight way between them.",
    formula=r"s_j \propto \left\lVert (e_j - e'_j) \odot \int_0^1 \frac{\partial p_c}"
    r"{\partial e_j}\bigl(e' + \alpha (e - e')\bigr)\, d\alpha \right\rVert",
    ignores="Other ways from the baseline to the text; points between are no real texts. The "
    "sign is dropped by the norm.",
    cost=lambda size: 300.0,
    options={
        "of": _OF,
        "norm": _NORM,
        "steps": (None, "Points on the way (Gauss-Legendre)."),
    },
)
def integrated_gradients(
    run: Run, *, of: str = "probability", norm: str = "l2", steps: int = _STEPS
) -> Iterator[Part]:
    """s_j = ||(e_j - e'_j) * integral of dF/de_j from e' to e||, [n], scaled to sum 1.

    By captum, Gauss-Legendre, several points in a pass. e' has the mask token at every
    ordinary place. `info` gives the convergence delta: the sum of all attributions minus
    F(e) - F(e'). Sundararajan et al. 2017.
    """
    from captum.attr import IntegratedGradients

    embeddings = _embeddings(run)
    baseline, name = baseline_embeddings(run)
    done = 0

    def before(rows: int) -> None:
        nonlocal done
        run.check()
        run.report(min(1.0, done / (steps + 2)))
        done += rows

    run.target  # noqa: B018 - found in the text's own pass, before those on the way to it
    predict = Prediction(run.source, run.encoding, run.resolved, of, before)
    attributions, delta = IntegratedGradients(predict).attribute(
        embeddings,
        baselines=baseline,
        n_steps=steps,
        method="gausslegendre",
        internal_batch_size=max(1, _BATCH_TOKENS // embeddings.shape[1]),
        return_convergence_delta=True,
    )
    run.report(1.0)
    yield run.final(
        token_sizes(attributions[0], norm),
        convergence_delta=float(delta[0]),
        baseline=name,
    )


class _Module(nn.Module):
    """The prediction as a module: captum puts DeepLift's hooks on a module's parts."""

    def __init__(self, model: nn.Module, predict: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.model = model
        self.predict = predict
        self.values = torch.zeros(2)  # F of the text and of the baseline, from the one pass

    def forward(self, embeddings: Tensor) -> Tensor:
        made = self.predict(embeddings)
        self.values = made.detach()
        return made.unsqueeze(-1)  # DeepLift reads a [batch, classes] output at a class


class _NoWarnings:
    @staticmethod
    def warn(*args: Any, **kwargs: Any) -> None:
        """captum warns that hooks are set on the model: here it is ours."""


def _without_warnings(function: Any) -> Any:
    """A function that warns nobody: filters of warnings are shared by all threads."""
    known = {**function.__globals__, "warnings": _NoWarnings}
    given = (function.__name__, function.__defaults__, function.__closure__)
    made = types.FunctionType(function.__code__, known, *given)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _deeplift_cost(size: Size) -> float:
    return 3.7


@method(
    "deeplift",
    title="DeepLIFT",
    family="gradients",
    yields="scores",
    paper="Shrikumar et al.: Learning Important Features Through Propagating Activation "
    "Differences",
    year=2017,
    link="https://arxiv.org/abs/1704.02685",
    needs=("gradients", "passes", "target"),
    any_focus=True,
    measures="The difference between this text and one of mask tokens, times slopes that are "
    "taken across activations instead of at a point.",
    formula=r"s_j \propto \left\lVert (e_j - e'_j) \odot m_j \right\rVert, \quad "
    r"m = \frac{\Delta \text{out}}{\Delta \text{in}} \text{ at activations}",
    ignores="Products and softmax inside attention, layer norms and activations that are not "
    "plain torch modules: there it falls back on the gradient, and the attributions do not add "
    "up to the change of the prediction.",
    cost=_deeplift_cost,
    options={"of": _OF, "norm": _NORM},
)
def deeplift(run: Run, *, of: str = "probability", norm: str = "l2") -> Iterator[Part]:
    """s_j = ||(e_j - e'_j) * m_j||, [n], scaled to sum 1; m are DeepLIFT's multipliers.

    By captum, on the inputs and the baseline of integrated gradients. captum knows the rescale
    rule for activations that are torch modules (ReLU, Tanh, Sigmoid, Softmax, ...) and uses
    the gradient everywhere else: attention, norms, GELU as transformers writes it. So on most
    transformers this is nearly gradient times difference; `info` gives the convergence delta,
    which says how far it is from adding up, and the activations that were seen (`rescaled`).
    """
    from captum.attr import DeepLift

    # captum tells nowhere else which activations its rescale rule knows; a list of ours would be
    # wrong with its next version.
    from captum.attr._core.deep_lift import SUPPORTED_NON_LINEAR

    if not source_batches(run.source):
        raise UnsupportedMethodError(
            "DeepLIFT runs text and baseline together, and this classifier knows no padding "
            "token: set model.config.pad_token_id."
        )
    embeddings = _embeddings(run)
    baseline, name = baseline_embeddings(run)
    source = run.source.shadowed()  # captum puts its hooks on it, and what they saw
    model = source.model
    run.target  # noqa: B018 - found in the text's own pass, not in one with the baseline
    predict = Prediction(source, run.encoding, run.resolved, of, lambda rows: run.check(), own=True)
    known = sorted({type(m).__name__ for m in model.modules() if type(m) in SUPPORTED_NON_LINEAR})
    embeddings.requires_grad_()
    module = _Module(model, predict)
    attribute = _without_warnings(inspect.unwrap(DeepLift.attribute))
    try:
        attributions = attribute(DeepLift(module), embeddings, baselines=baseline, target=0)
    except RuntimeError as error:
        if "more than once" not in str(error):
            raise
        raise UnsupportedMethodError(
            "DeepLIFT needs every activation module to be used once in a pass; this model "
            "uses one several times."
        ) from error
    change = module.values[0] - module.values[1]
    yield run.final(
        token_sizes(attributions[0], norm),
        convergence_delta=float(attributions.detach().sum() - change),
        baseline=name,
        rescaled=known,
    )
