"""A model without its layers, in float64: embeddings below, head above.

Relevance is walked in float64, but the user's model stays as it is. The shell is a copy of
everything but the layers and the vocabulary tables, which are the bulk of a model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from ..blocks import all_at, linear_weights
from ..errors import UnsupportedMethodError
from ..tokens import Target
from . import rules
from .encode import Encoding
from .gradients import others, token_embeddings
from .shadow import shadow
from .source import Source
from .targets import objective
from .trace import Trace, base_of, plain_output


class _Layers(nn.Module):
    """Stands in for every layer: keeps what the first reads, puts out what the last should."""

    def __init__(self, count: int, wrapped: bool) -> None:
        super().__init__()
        self.count, self.wrapped = count, wrapped
        self.calls = 0
        self.read: Tensor | None = None
        self.puts_out: Tensor | None = None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        hidden = args[0] if args else kwargs["hidden_states"]
        if self.calls % self.count == 0:
            self.read = hidden
        self.calls += 1
        if self.calls % self.count == 0 and self.puts_out is not None:
            hidden = self.puts_out
        return (hidden,) if self.wrapped else hidden


class _Words(nn.Module):
    """Stands in for the word embeddings, which are given already; what else is looked up in
    them (GPT-2's token types) is still looked up."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._module = [module]  # in a list: not a part of this module

    def forward(self, x: Tensor) -> Tensor:
        return x if x.is_floating_point() else self._module[0](x).double()


class _Table(nn.Module):
    """A vocabulary's projection that is not copied; its rows are widened when they are used."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._module = [module]  # in a list: not a part of this module

    @property
    def original(self) -> nn.Module:
        return self._module[0]

    def forward(self, x: Tensor) -> Tensor:
        weight, bias = linear_weights(self.original)
        made = nn.functional.linear(x.to(weight), weight, bias)
        return made.to(x)


class Shell:
    """Embeddings and head of one model, for one text."""

    def __init__(self, source: Source, encoding: Encoding, trace: Trace) -> None:
        self.source, self.encoding = source, encoding
        model = source.model
        assert source.spec is not None  # `check_rules` has seen to it
        self.layers = _Layers(len(trace), trace.layers[0].wrapped)
        stack = all_at(base_of(model), source.spec.layers)
        instead: dict[nn.Module, nn.Module] = dict.fromkeys(stack, self.layers)
        words, output = model.get_input_embeddings(), model.get_output_embeddings()
        instead[words] = _Words(words)
        if output is not None:
            instead[output] = _Table(output)
        self.model = shadow(model, instead)
        # One device for the walk, wherever the model's parts are; Apple's has no float64.
        self.device = torch.device("cpu") if source.device.type == "mps" else source.device
        self.model.to(self.device).double()

    def _run(self) -> Any:
        embeddings = token_embeddings(self.source, self.encoding.ids).to(self.device).double()
        self.layers.calls = 0
        inputs = {k: v.to(self.device) for k, v in others(self.encoding, embeddings).items()}
        return self.model(**inputs, **plain_output(self.model))

    def embedding_output(self) -> Tensor:
        """What the first layer reads. [n, d]"""
        with torch.no_grad():
            self._run()
        assert self.layers.read is not None
        return self.layers.read[0]

    def head_relevance(self, hidden: Tensor, target: Target) -> Tensor:
        """R of what the last layer puts out, [parts, n, d], starting from one-hot on the target.

        A head is a chain of projections with activations and norms between them, which pass
        relevance unchanged. The chain is found by running it.
        """
        leaf = hidden.detach().to(self.device).unsqueeze(0).requires_grad_()
        calls: list[tuple[nn.Module, Tensor, Tensor]] = []
        with torch.enable_grad():
            output = self._watched(leaf, calls)
            parts = [objective(output, one).sum() for one in single_targets(target)]
            chain = self._chain(parts, calls)
            # Logits are what the last projection puts out: a logit's gradient there is one-hot.
            last = chain[-1][2]
            relevance = torch.stack(
                [torch.autograd.grad(part, last, retain_graph=True)[0][0] for part in parts]
            )
            for module, read, _ in reversed(chain):
                relevance = _through(module, read, relevance)
            return self._placed(relevance, chain[0][1], leaf)

    def _watched(self, leaf: Tensor, calls: list[tuple[nn.Module, Tensor, Tensor]]) -> Any:
        def saw(module: nn.Module, args: tuple[Any, ...], result: Tensor) -> None:
            calls.append((module, args[0], result))

        handles = [module.register_forward_hook(saw) for module in _projections(self.model)]
        self.layers.puts_out = leaf
        try:
            return self._run()
        finally:
            self.layers.puts_out = None
            for handle in handles:
                handle.remove()

    def _chain(
        self, parts: list[Tensor], calls: list[tuple[nn.Module, Tensor, Tensor]]
    ) -> list[tuple[nn.Module, Tensor, Tensor]]:
        """The projections on the way from the last layer to the target."""
        calls = [call for call in calls if call[2].requires_grad]
        used = (
            torch.autograd.grad(
                parts[0], [made for _, _, made in calls], retain_graph=True, allow_unused=True
            )
            if calls
            else ()
        )
        chain = [call for call, slope in zip(calls, used, strict=True) if slope is not None]
        fits = all(before[2].shape == after[1].shape for before, after in pairwise(chain))
        if not chain or not fits:
            raise UnsupportedMethodError(
                f"The head of {type(self.source.model).__name__} is not a chain of projections, "
                "which is all that relevance can be walked through."
            )
        return chain

    def _placed(self, relevance: Tensor, read: Tensor, leaf: Tensor) -> Tensor:
        """Relevance of what the head read, put at the tokens it read it from."""
        if read.dim() == 3:
            return relevance
        probe = torch.linspace(1, 2, read.shape[-1], dtype=read.dtype, device=read.device)
        (slope,) = torch.autograd.grad((read * probe).sum(), leaf, retain_graph=True)
        rows = slope[0].abs().sum(-1).nonzero().flatten().tolist()
        if len(rows) != 1:
            raise UnsupportedMethodError(
                f"The head of {type(self.source.model).__name__} pools several tokens; relevance "
                "is defined here for heads that read one, or each."
            )
        placed = relevance.new_zeros(len(relevance), *leaf.shape[1:])
        placed[:, rows[0]] = relevance.reshape(len(relevance), -1)
        return placed


def _projections(module: nn.Module) -> Iterator[nn.Module]:
    """Linear maps; one with an adapter (LoRA) is the one map that its parts are together."""
    weight = getattr(module, "weight", None)
    matrix = isinstance(weight, Tensor) and weight.dim() == 2
    if isinstance(module, _Table) or (matrix and not isinstance(module, nn.Embedding)):
        yield module
        return
    for child in module.children():
        yield from _projections(child)


def single_targets(target: Target) -> list[Target]:
    """The two targets of a contrast, or the one."""
    if target.kind != "contrast":
        return [target]
    assert isinstance(target.index, tuple)
    return [replace(target, kind="class", index=index) for index in target.index]


def _through(module: nn.Module, read: Tensor, relevance: Tensor) -> Tensor:
    """Through one projection; only outputs that hold relevance are looked at."""
    weight, _ = linear_weights(module.original if isinstance(module, _Table) else module)
    rows = relevance.reshape(len(relevance), -1, weight.shape[0])
    held = rows.abs().sum((0, 1)).nonzero().flatten()
    x = read.detach().reshape(-1, weight.shape[1])
    return rules.linear(x, weight[held.to(weight.device)].to(x), rows[..., held])
