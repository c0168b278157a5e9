"""Relevance of a prediction, walked down from the head, a layer at a time.

The graph of one pass under `ShareRules` is cut where layers read: what is below a cut is walked
when all relevance has come to it, since the rule for sums is not linear.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ..blocks import Attention
from ..tokens import Target
from .backward import by_token, graph_is_large, placed
from .elementwise import put_activations, put_projections
from .shares import ShareRules
from .source import Source
from .sparing import forgetting
from .stack import Inputs, prediction
from .tap import Watching
from .targets import objective, single_targets

# (attention by its place in the pass, relevance that comes to its heads [H, n, d_head]) -> what
# each head passes on of it, a factor [H].
HeadFilter = Callable[[int, Tensor], Tensor]


@dataclass
class Cut:
    """A place where the graph is cut: what comes out above it and what goes on below."""

    above: Tensor  # a leaf
    below: Tensor | None  # a node of the graph below; None where nothing is
    seen: int  # attentions of the pass before it
    layer: int | None  # which layer reads it; None for what is given beside
    relevance: list[Tensor] = field(default_factory=list)  # by part


@dataclass
class LayerRelevance:
    """What one layer's walk gives. `parts` are one, or two for a contrast of targets."""

    layer: int  # in the order in which they ran
    scores: Tensor  # [parts, n] relevance of what the layer read, on the axis of all tokens
    attention: dict[int, Tensor]  # by attention: [parts, 1, H, rows, columns] R_A, halved, before
    passed: dict[int, Tensor]  # any head filter; and what of it the heads pass on
    conserved: list[float]  # total relevance below the layer over that of the target, by part


class Cuts(Inputs):
    """Cuts the graph of a pass at whatever layers read; or only marks these places in it."""

    def __init__(
        self, check: Callable[[], None], second: Sequence[nn.Module], cut: bool = True
    ) -> None:
        super().__init__(check, second)
        self.cut = cut
        self.cuts: list[Cut] = []
        self.attentions = 0
        self._beside: dict[int, tuple[Tensor, Cut]] = {}

    def node(self, hidden: Tensor, begins: bool) -> Tensor:
        if not torch.is_grad_enabled():
            return hidden.detach()
        below = None if begins else hidden
        leaf = hidden.detach().double().requires_grad_()
        if not (self.cut or begins):
            leaf = hidden.view_as(hidden)
        self.cuts.append(Cut(leaf, below, self.attentions, len(self.nodes)))
        return leaf

    def beside(self, args: Any, kwargs: Any, hidden: Tensor) -> tuple[Any, Any]:
        def instead(value: Any) -> Any:
            given = isinstance(value, Tensor) and value.requires_grad and value is not hidden
            if not (given and self.cut):
                return value
            if id(value) not in self._beside:  # one encoder's text is given to every layer
                leaf = value.detach().requires_grad_()
                cut = Cut(leaf, value, self.attentions, None)
                self._beside[id(value)] = (value, cut)
                self.cuts.append(cut)
            return self._beside[id(value)][1].above

        return tuple(map(instead, args)), {k: instead(v) for k, v in kwargs.items()}


class Walk:
    """Relevance walked down through a model, layer by layer.

    A contrast of two targets is walked for each, as two parts: the rule for sums is not linear
    in relevance, and the two together would cancel. `signs` says how the parts combine.

    Args:
        resolve: the target, given the model's output.
        attentions: whether relevance of attention weights is wanted.
        head_filter: what heads pass on.
    """

    def __init__(
        self,
        source: Source,
        inputs: dict[str, Tensor],
        resolve: Callable[[Any], Target],
        *,
        attentions: bool = False,
        head_filter: HeadFilter | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.source, self.resolve, self.check = source, resolve, check
        # Apple's devices have no float64.
        self.device = torch.device("cpu") if source.device.type == "mps" else source.device
        self.inputs = {name: tensor.to(self.device) for name, tensor in inputs.items()}
        self.wants, self.head_filter = attentions or head_filter is not None, head_filter
        names = ("input_ids", "decoder_input_ids") if source.decodes else ("input_ids",)
        self.sizes = [int(inputs[name].shape[1]) for name in names]
        self.sides: list[int] = []  # of each layer's input 0 in an encoder and else 1
        self._rules = ShareRules()
        self._part = 0
        self._reads = Cuts(check, ())
        self._found: dict[int, dict[int, Tensor]] = {}  # by attention and part
        self._passed: dict[int, dict[int, Tensor]] = {}

    @property
    def met(self) -> dict[str, dict[str, int]]:
        """How often each rule was met, by kind and function."""
        return {kind: dict(counted) for kind, counted in self._rules.ledger.met.items() if counted}

    def layers(self) -> Iterator[LayerRelevance]:
        """From the top layer down."""
        told = 0
        try:
            for step in self._downward(*self._pass(cut=True)):
                told += 1
                yield step
        except RuntimeError as error:
            if "second time" not in str(error):
                raise
        else:
            return
        # Layers share what they computed (keys and values, in some families): in one go.
        yield from list(self._at_once(*self._pass(cut=False)))[told:]

    def _pass(self, cut: bool) -> tuple[list[Tensor], Cuts]:
        """Each target's value as a node of the graph, and where that is cut."""
        values: list[Tensor] = []

        def read(output: Any) -> Tensor:
            target = self.resolve(output)
            singles = single_targets(target)
            self.signs = torch.tensor([1.0, -1.0][: len(singles)]).double()
            self.total = 2.0 if target.kind == "span" else 1.0  # ones that relevance begins as
            values[:] = [objective(output, one).sum() for one in singles]
            return torch.stack(values)

        def reading(check: Callable[[], None], second: Sequence[nn.Module]) -> Cuts:
            self._reads = Cuts(check, second, cut)
            return self._reads

        prediction(self.source, self.inputs, read, self._installed, self.check, reading)
        self.sides = self._reads.sides
        return values, self._reads

    def _downward(self, values: list[Tensor], reads: Cuts) -> Iterator[LayerRelevance]:
        again = [] if reads.embedded is None else [Cut(reads.embedded, None, 0, None)]
        cuts = [*again, *reads.cuts]
        self._handed(values, [torch.ones_like(value) for value in values], cuts)
        entered = torch.zeros(len(values), sum(self.sizes)).double()
        top = reads.attentions
        for number in range(len(cuts) - 1, len(again) - 1, -1):
            self.check()
            cut = cuts[number]
            if cut.layer is not None:
                left = self._total(cuts[: number + 1]) + entered.sum(-1)
                yield self._layer(cut, top, (left / self.total).tolist())
                top = cut.seen
            if cut.below is None and cut.layer is not None:
                entered += self._scores(cut)
            elif cut.below is not None:
                self._handed([cut.below] * len(values), cut.relevance, cuts[:number])
            cut.relevance, cut.below = [], None
        self.entered = entered + self._read_again(again)

    def _at_once(self, values: list[Tensor], reads: Cuts) -> Iterator[LayerRelevance]:
        again = [] if reads.embedded is None else [Cut(reads.embedded, None, 0, None)]
        self._handed(values, [torch.ones_like(value) for value in values], [*again, *reads.cuts])
        begun = [self._scores(cut) for cut in reads.cuts if cut.below is None]
        self.entered = torch.stack(begun).sum(0) + self._read_again(again)
        kept = (self.entered.sum(-1) / self.total).tolist()
        top = reads.attentions
        for cut in reversed(reads.cuts):
            self.check()
            yield self._layer(cut, top, kept)
            top = cut.seen

    def _read_again(self, again: list[Cut]) -> Tensor:
        """What comes to the embeddings of models that read them again further up."""
        held = [cut for cut in again if cut.relevance]
        sizes = [by_token(cut.relevance[0].sum(-1)).numel() for cut in held]
        if sizes == self.sizes[:1]:
            return self._scores(held[0])
        return torch.zeros(len(self.signs), sum(self.sizes)).double()

    @property
    def attentions(self) -> int:
        """How many attentions the pass computed."""
        return self._reads.attentions

    def combined(self, parts: Tensor) -> Tensor:
        """One result from the parts of a contrast: the first minus the second."""
        return torch.einsum("p,p...->...", self.signs.to(parts.device), parts)

    def _installed(self, twin: nn.Module, layers: list[nn.Module]) -> AbstractContextManager[None]:
        """The rules on a shadow, and what sees its attentions."""
        self._found, self._passed = {}, {}
        if self.device != self.source.device:
            twin.to(self.device)
        rules = self._rules = ShareRules()
        put_projections(twin)
        put_activations(twin, rules)
        if graph_is_large(self.source, 2 * sum(self.sizes)):  # numbers are twice as wide
            for layer in layers:
                layer.forward = forgetting(layer.forward, lambda: self._under(rules, again=True))
        return self._under(rules)

    @contextlib.contextmanager
    def _under(self, rules: ShareRules, again: bool = False) -> Iterator[None]:
        def saw(found: Attention) -> Tensor | None:
            return self._attended(found, rules, again)

        with rules, Watching(saw, set(self.sizes)) if self.wants else contextlib.nullcontext():
            yield

    def _attended(self, found: Attention, rules: ShareRules, again: bool) -> Tensor | None:
        """Have an attention tell its relevance on the way back; with a filter, made anew."""
        number, filtered = self._reads.attentions, self.head_filter
        factors: list[Tensor] = []
        instead = None
        if filtered is not None:

            def passed(relevance: Tensor) -> Tensor:
                heads = found.by_head(relevance)
                factors[:] = [filtered(number, heads)]
                wide = factors[0][:, None, None].expand_as(heads)
                with torch.enable_grad():
                    probe = torch.zeros_like(relevance).requires_grad_()
                    return torch.autograd.grad(found.by_head(probe), probe, wide)[0]

            rules.passed = passed
            instead = found.again(found.raw_values)
            rules.passed = None
        if again or not found.weights.requires_grad:
            return instead

        def tell(relevance: Tensor) -> Tensor:
            self._found.setdefault(number, {})[self._part] = relevance
            if factors:  # a product's rule is linear: what comes out is scaled as what goes in
                relevance = relevance * factors[0][:, None, None]
            self._passed.setdefault(number, {})[self._part] = relevance
            return relevance

        self._reads.attentions += 1
        found.weights.register_hook(tell)
        return instead

    def _handed(self, outputs: list[Tensor], given: list[Tensor], cuts: list[Cut]) -> None:
        """Relevance of outputs, handed down to the cuts below; for each part."""
        leaves = [cut.above for cut in cuts]
        for part in range(len(given)):
            self._part = part
            found = torch.autograd.grad(
                outputs[part], leaves, given[part], part + 1 < len(given), allow_unused=True
            )
            for cut, more in zip(cuts, found, strict=True):
                if more is not None:
                    if not cut.relevance:
                        cut.relevance = [torch.zeros_like(more)] * len(outputs)
                    cut.relevance[part] = cut.relevance[part] + more

    def _layer(self, cut: Cut, top: int, conserved: list[float]) -> LayerRelevance:
        assert cut.layer is not None
        between = range(cut.seen, top)
        found, passed = (
            {k: torch.stack(list(held.pop(k).values())) for k in between if k in held}
            for held in (self._found, self._passed)
        )
        return LayerRelevance(cut.layer, self._scores(cut), found, passed, conserved)

    def _scores(self, cut: Cut) -> Tensor:
        """[parts, n], on the axis of all tokens."""
        side = 0 if cut.layer is None else self.sides[cut.layer]
        rows = [placed(by_token(r.sum(-1)), side, self.sizes) for r in cut.relevance]
        empty = torch.zeros(len(self.signs), sum(self.sizes)).double()
        return torch.stack(rows).cpu() if rows else empty

    def _total(self, cuts: list[Cut]) -> Tensor:
        """All relevance that waits at cuts, [parts]."""
        waiting = [torch.stack([r.sum().cpu() for r in c.relevance]) for c in cuts if c.relevance]
        return torch.stack(waiting).sum(0) if waiting else torch.zeros(len(self.signs)).double()
