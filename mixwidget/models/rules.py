"""Relevance rules: how a number at the output of an operation is shared among its inputs.

Every rule takes what the operation read and put out in the forward pass, and the relevance R
of what it put out; R may carry a leading batch dimension. All in float64. sd(a, b) is a / b
with b stabilised by 1e-9, and 0 where b is 0. Norms, activations, softmax, dropout and
scaling pass relevance on unchanged; where a value goes to several places, theirs are added.

Chefer et al.: Transformer Interpretability Beyond Attention Visualization (2021).
"""

from __future__ import annotations

import torch
from torch import Tensor

_STABILISER = 1e-9
# Contributions to a number that are many.
_MANY = 256
# Where the sum of all is below this share of their sizes, less than a fifth of them is positive.
_FEW = 0.6


def sd(a: Tensor, b: Tensor) -> Tensor:
    """a / b where b is not 0, with b stabilised; 0 elsewhere."""
    stable = b + _STABILISER
    stable = torch.where(stable == 0, _STABILISER, stable)
    return torch.where(b == 0, 0.0, a / stable)


def linear(x: Tensor, weight: Tensor, relevance: Tensor, product: Tensor | None = None) -> Tensor:
    """Through y = x W^T + b: contributions x_j W_ij > 0 share R_i in proportion.

    Z = x+ W+^T + x- W-^T = (x W^T + |x| |W|^T) / 2, which saves half of the products;
    R_x = x+ * (S W+) + x- * (S W-) = (x * (S W) + |x| * (S |W|)) / 2, S = sd(R, Z).

    Shapes: x [n, in], weight [out, in], relevance [..., n, out] -> [..., n, in]. `product` is
    x W^T where it is known already.
    """
    held = relevance.abs().sum(-1).reshape(-1, len(x)).sum(0) > 0 if len(x) else None
    if held is None or not bool(held.all()):  # a classifier's last layer: at one token only
        result = relevance.new_zeros(*relevance.shape[:-1], x.shape[-1])
        if held is not None and bool(held.any()):
            known = None if product is None else product[held]
            result[..., held, :] = linear(x[held], weight, relevance[..., held, :], known)
        return result
    wide = weight.to(x.dtype)
    product = x @ wide.T if product is None else product
    size, whole = x.abs(), _sizes(x, weight, product)
    shares = positive_shares(product, whole, relevance)
    of_signed = shares @ wide
    magnitude = wide.abs_() if wide is not weight else wide.abs()
    return 0.5 * (x * of_signed + size * (shares @ magnitude))


def _sizes(x: Tensor, weight: Tensor, product: Tensor) -> Tensor:
    """|x| |W|^T. Its terms are of one sign: where there are many of them, they are added up in
    float32; but not where hardly any contribution is positive, since Z would lose its digits."""
    if weight.dtype != torch.float32 or weight.shape[1] < _MANY:
        return x.abs() @ weight.to(x.dtype).abs().T
    whole = (x.abs().float() @ weight.abs().T).to(x.dtype)
    few = (product < -_FEW * whole).any(0).nonzero().flatten()
    if len(few):
        whole[:, few] = x.abs() @ weight[few].to(x.dtype).abs().T
    return whole


def positive_shares(product: Tensor, whole: Tensor, relevance: Tensor) -> Tensor:
    """S = sd(R, Z), Z the sum of the positive contributions: half of `product`, the sum of all,
    and `whole`, the sum of their sizes."""
    # What is left of two equal numbers is rounding, not a contribution.
    positive = 0.5 * (product + whole)
    return sd(relevance, torch.where(positive > 1e-13 * whole, positive, 0.0))


def add(a: Tensor, b: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
    """Through y = a + b: in proportion; then both parts are rescaled so that |sum of a's| to
    |sum of b's| shares the total relevance of the example. [..., n, d] each."""
    shares = sd(relevance, a + b)
    part_a, part_b = a * shares, b * shares
    total = relevance.sum((-1, -2), keepdim=True)
    sum_a, sum_b = part_a.sum((-1, -2), keepdim=True), part_b.sum((-1, -2), keepdim=True)
    both = sum_a.abs() + sum_b.abs()
    return (
        part_a * sd(sd(sum_a.abs(), both) * total, sum_a),
        part_b * sd(sd(sum_b.abs(), both) * total, sum_b),
    )


def product(a: Tensor, b: Tensor, made: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
    """Through y = a b (matrices): each operand's share in proportion, halved.

    a [..., n, k], b [..., k, m], y [..., n, m].
    """
    shares = sd(relevance, made)
    part_a = a * (shares @ b.transpose(-1, -2))
    part_b = b * (a.transpose(-1, -2) @ shares)
    return part_a / 2, part_b / 2
