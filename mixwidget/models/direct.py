"""What each part of a model writes straight into a prediction.

In every layer the heads' joined results and whatever the feed-forward makes of its activations
become leaves: beyond them only norms, projections and sums lie on the way to the logit, with
the norms' scales constant. So the logit is a sum over layers of what attention wrote, source
token by source token and head by head, of what the feed-forwards wrote, of what entered the
first layer, and of biases. The head above the layers follows the slope rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import UnsupportedMethodError
from ..tokens import Target
from .dispatch import depends
from .elementwise import put_activations
from .functions import LINEAR
from .ledger import Ledger, product_sum
from .slopes import SlopeRules
from .source import Source
from .stack import Inputs, prediction
from .targets import linear_objective


@dataclass
class _Written:
    """What one layer wrote: the heads' results, and all else that is not linear."""

    # Of each attention: its weights, what it makes of weights, and the leaf that it made.
    heads: list[tuple[Tensor, Callable[[Tensor], Tensor], Tensor]] = field(default_factory=list)
    others: list[Tensor] = field(default_factory=list)


@dataclass(frozen=True)
class Direct:
    """A logit as a sum.

    Attributes:
        heads: per layer [H, n], by source token.
        blocks: per attention [n], by source token: a layer may have two, or none.
        first: [n], by the tokens that entered the first layer.
        feed_forward: per layer.
        biases: what belongs to none of them.
        target: the logit.
    """

    heads: list[Tensor]
    blocks: list[Tensor]
    first: Tensor
    feed_forward: list[float]
    biases: float
    target: float

    @property
    def balance(self) -> dict[str, float]:
        """target = inputs + feed_forward + biases, and how far that is from holding, relative to
        the terms' absolute values."""
        inputs = sum(float(heads.sum()) for heads in self.heads) + float(self.first.sum())
        terms = {"inputs": inputs, "feed_forward": sum(self.feed_forward), "biases": self.biases}
        size = abs(self.target) + sum(map(abs, terms.values()))
        error = abs(self.target - sum(terms.values())) / size if size else 0.0
        return {"target": self.target, **terms, "softmax": 0.0, "error": error}


_CARRIES = LINEAR | {"linear", "addmm", "conv1d", "masked_fill"}


class DirectRules(SlopeRules):
    """Slope rules outside of the layers; inside, leaves where something is not linear."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger, attention=False)
        self.layers: list[_Written] = []
        self.inside = False
        self.kind = "biases"

    def _applied(self, func: Any, name: str, args: Any, kwargs: Any, given: list[Tensor]) -> Any:
        made = super()._applied(func, name, args, kwargs, given)
        if self.inside and isinstance(made, Tensor) and name in _CARRIES:
            # Attention weights keep their mark on the way to the values, and what attention
            # wrote keeps its own up to where it is added to something.
            _mark(made, next((m for a in args if (m := getattr(a, "mark", None))), None))
        return made

    def _softmax(self, func: Any, args: Any, kwargs: Any) -> Any:
        made = super()._softmax(func, args, kwargs)
        if self.inside:  # still a node, so that what becomes of it can be followed
            made = made.requires_grad_()
            _mark(made, "weights")
        return made

    def activated(self, function: Callable[[Tensor], Tensor], x: Tensor, name: str) -> Tensor:
        if not self.inside or name in ("pow", "square"):
            return super().activated(function, x, name)
        self.ledger.met["activation"][name] += 1
        with torch.no_grad():
            y = function(x)
        return self._leaf(y)

    def _unmet(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        made = super()._unmet(func, name, args, kwargs)
        return self._leaf(made) if self.inside and depends(made) else made

    def _product(self, func: Any, name: str, args: Any, kwargs: Any, given: Any) -> Any:
        if not self.inside:
            return super()._product(func, name, args, kwargs, given)
        marks = [getattr(a, "mark", None) for a in args]
        if "weights" in marks and name in ("matmul", "bmm", "einsum"):
            return self._attended(func, args, marks.index("weights"))
        if sum(map(depends, given)) < 2:
            made = func(*args, **kwargs)
            _mark(made, next((m for m in marks if m), None))
            return made
        self.ledger.met["product"][name] += 1
        if "written" in marks:  # a gate on what attention wrote is a constant
            held = (a if m == "written" else a.detach() for a, m in zip(args, marks, strict=True))
            made = func(*held, **kwargs)
            _mark(made, "written")
            return made
        return self._leaf(func(*args, **kwargs))

    def _constant(self, made: Tensor, constant: Tensor, kind: str = "biases") -> None:
        super()._constant(made, constant, self.kind)

    def _biased(self, func: Any, name: str, args: Any, kwargs: Any, given: Any) -> Any:
        """The bias of what a feed-forward puts out is the feed-forward's."""
        if self.inside and any(getattr(tensor, "mark", None) == "made" for tensor in given):
            self.kind = f"feed-forward {len(self.layers) - 1}"
        try:
            return super()._biased(func, name, args, kwargs, given)
        finally:
            self.kind = "biases"

    def _attended(self, func: Any, args: Any, place: int) -> Tensor:
        self.ledger.met["attention"]["product"] += 1
        held = [a.detach() if isinstance(a, Tensor) else a for a in args]

        def again(weights: Tensor) -> Tensor:
            made: Tensor = func(*held[:place], weights, *held[place + 1 :])
            return made

        leaf = again(held[place]).requires_grad_()
        self.layers[-1].heads.append((held[place], again, leaf))
        made = leaf.clone()  # some models add to it in place
        _mark(made, "written")
        return made

    def _leaf(self, value: Tensor) -> Tensor:
        leaf = value.detach().requires_grad_()
        self.layers[-1].others.append(leaf)
        made = leaf.clone()
        _mark(made, "made")
        return made


def _mark(made: Any, mark: str | None) -> None:
    if isinstance(made, Tensor):
        made.mark = mark  # type: ignore[attr-defined]


def direct(
    source: Source,
    inputs: dict[str, Tensor],
    resolve: Callable[[Any], Target],
    check: Callable[[], None] = lambda: None,
) -> Direct:
    """One pass forward and one back, in which all that a layer writes is a leaf."""
    made: list[DirectRules] = []

    def install(twin: nn.Module, layers: list[nn.Module]) -> DirectRules:
        made.append(DirectRules(Ledger()))
        put_activations(twin, made[-1])
        for layer in layers:
            _watch(layer, made[-1])
        return made[-1]

    def value(output: Any) -> Tensor:
        return linear_objective(output, resolve(output))

    return _added(*prediction(source, inputs, value, install, check), made[-1])


def _watch(layer: nn.Module, rules: DirectRules) -> None:
    """Tell the rules when this layer is at work."""

    def enter(module: nn.Module, args: Any, kwargs: Any) -> None:
        rules.inside = True
        rules.layers.append(_Written())

    def leave(module: nn.Module, args: Any, made: Any) -> None:
        rules.inside = False

    layer.register_forward_pre_hook(enter, with_kwargs=True)
    layer.register_forward_hook(leave)


def _added(value: Tensor, reads: Inputs, rules: DirectRules) -> Direct:
    first = reads.nodes[0]
    leaves = [first]
    for layer in rules.layers:
        leaves += [made for _, _, made in layer.heads] + layer.others
    found = torch.autograd.grad(value, leaves, allow_unused=True)
    slopes = {id(leaf): g for leaf, g in zip(leaves, found, strict=True) if g is not None}

    def share(leaf: Tensor) -> float:
        g = slopes.get(id(leaf))
        return 0.0 if g is None else float(product_sum(leaf.detach(), g))

    g = slopes.get(id(first), torch.zeros_like(first))
    by_token = (first.detach().double() * g.double()).reshape(-1, first.shape[-1]).sum(-1)
    each = [_by_source(layer, slopes, len(by_token)) for layer in rules.layers]
    none = torch.zeros(0, len(by_token), dtype=torch.float64)
    heads = [torch.cat(rows) if rows else none for rows in each]
    blocks = [row.sum(0) for rows in each for row in rows or [none]]
    kept = [rules.ledger.total(f"feed-forward {n}") for n in range(len(rules.layers))]
    others = [
        sum(map(share, layer.others)) + own for layer, own in zip(rules.layers, kept, strict=True)
    ]
    return Direct(
        heads, blocks, by_token, others, rules.ledger.total("biases"), float(value.detach())
    )


def _by_source(layer: _Written, slopes: dict[int, Tensor], tokens: int) -> list[Tensor]:
    """What each head of a layer wrote from each source token, [H, n] for each of its attentions:
    A times dy/dA, all rows."""
    rows = []
    for weights, again, made in layer.heads:
        given = torch.zeros_like(weights)
        if (g := slopes.get(id(made))) is not None:
            leaf = weights.clone().requires_grad_()
            with torch.enable_grad():
                (given,) = torch.autograd.grad(again(leaf), leaf, g)
        share = weights.double() * given.double()
        if share.shape[-1] != tokens:
            raise UnsupportedMethodError(
                f"An attention of this model has {share.shape[-1]} places to look at for {tokens} "
                "tokens; what it writes cannot be told apart by token."
            )
        rows.append(share.reshape(-1, *share.shape[-2:]).sum(-2))
    return rows
