"""Every token's part of every vector, carried from the first layer to the prediction.

Beside each tensor of the pass goes one tensor for each token of the text, which together make
it; see `carried` for the rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace as altered
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import CostError, UnsupportedMethodError
from ..tokens import Target
from .carried import Bias, PartRules
from .elementwise import is_elementwise
from .memory import available_bytes
from .pieces import Parts, carried_by
from .source import Source
from .stack import Inputs, stacks_of
from .targets import objective
from .trace import plain_output


@dataclass(frozen=True)
class Decomposition:
    """Parts of a pass: their lengths after every layer [n, n], and of the target's logit [n]."""

    maps: list[Tensor]
    scores: Tensor
    target: float


class _Activated(nn.Module):
    def __init__(self, inner: nn.Module, rules: PartRules) -> None:
        super().__init__()
        self.inner, self.rules = [inner], rules

    def forward(self, x: Tensor) -> Tensor:
        with torch._C.DisableTorchFunction():
            return self.rules.activated(self.inner[0], x, type(self.inner[0]).__name__)


def decompose(
    source: Source,
    inputs: dict[str, Tensor],
    target: Target,
    bias: Bias,
    check: Callable[[], None] = lambda: None,
) -> Decomposition:
    """Carry every token's part through one pass."""
    _check_room(source, inputs)
    for number in range(len(stacks_of(source, source.model))):
        made = _decomposed(source, inputs, target, bias, check, number)
        if made is not None:
            return made
    raise UnsupportedMethodError(
        f"The prediction of {type(source.model).__name__} is not made of what the layers that hold "
        "most of it put out, so no token's part in it can be carried."
    )


def _decomposed(
    source: Source,
    inputs: dict[str, Tensor],
    target: Target,
    bias: Bias,
    check: Callable[[], None],
    number: int,
) -> Decomposition | None:
    """By the layers of one of the model's lists; None where the text does not go through them."""
    twin = source.shadowed().model
    rules, reads, maps = PartRules(bias), Inputs(check), []
    for module in list(twin.modules()):
        for name, child in list(module._modules.items()):
            if child is not None and is_elementwise(child):
                module._modules[name] = _Activated(child, rules)
    row = target.position if isinstance(target.position, int) else None

    def enter(module: nn.Module, args: Any, kwargs: Any) -> Any:
        begun, rules.inside = bool(reads.nodes), True
        args, kwargs = reads.enter(module, args, kwargs)
        if not begun:
            first = args[0] if args and isinstance(args[0], Tensor) else reads.given(kwargs)
            rules.give(first, lambda: Parts(_diagonal(first)))
        return args, kwargs

    def leave(module: nn.Module, args: Any, made: Any) -> Any:
        rules.inside = False
        hidden = made[0] if isinstance(made, tuple | list) else made
        way = carried_by(hidden)
        if way is None:
            raise UnsupportedMethodError(
                f"{type(module).__name__}, a layer of {type(source.model).__name__}, does not put "
                "out one tensor that is made of what it read, so no token's part can be carried."
            )
        parts = rules.settled(way()).values  # made now, so that what it was made of can go
        maps.append(parts.reshape(len(parts), -1, parts.shape[-1]).norm(dim=-1).T)
        hidden = rules.give(hidden.detach(), lambda: Parts(parts))
        return type(made)((hidden, *made[1:])) if isinstance(made, tuple | list) else hidden

    def narrow(module: nn.Module, args: Any) -> Any:
        """A vocabulary is wide: the parts of its logits are made at the target's row alone."""
        read = args[0]
        if row is None or carried_by(read) is None or read.dim() != 3:
            return None
        narrowed.append(True)
        return (read[:, row : row + 1], *args[1:])

    narrowed: list[bool] = []
    for layer in stacks_of(source, twin)[number]:
        layer.register_forward_pre_hook(enter, with_kwargs=True)
        layer.register_forward_hook(leave)
    if (head := twin.get_output_embeddings()) is not None:
        head.register_forward_pre_hook(narrow)
    with torch.inference_mode(False), torch.no_grad(), rules:
        output = twin(**inputs, **plain_output(twin))
        value = objective(output, altered(target, position=0) if narrowed else target)
        if (given := carried_by(value)) is None:
            return None
        scores = rules.settled(given()).values
    return Decomposition(maps, scores.reshape(-1), float(value))


def _check_room(source: Source, inputs: dict[str, Tensor]) -> None:
    """Refuse a text whose parts would not fit: a vector for every pair of tokens, in a layer
    about ten of a token's width and three of the feed-forward's."""
    tokens, config = inputs["input_ids"].shape[1], source.model.config
    width = getattr(config, "hidden_size", 1)
    inner = getattr(config, "intermediate_size", None)
    inner = inner if isinstance(inner, int) else 4 * width
    needed = 4 * tokens**2 * (10 * width + 3 * inner)
    free = available_bytes(source.device)
    if free is not None and needed > free:
        raise CostError(
            f"Carrying the parts of {tokens} tokens takes about {needed / 1e9:.1f} GB, and "
            f"{free / 1e9:.1f} GB are free. Shorten the text, or use cp_lrp, whose scores leave "
            "biases to nobody and are otherwise the same."
        )


def _diagonal(first: Tensor) -> Tensor:
    """Of each token's vector, all is its own part. [n, 1, n, d]"""
    eye = torch.eye(first.shape[1], dtype=first.dtype, device=first.device)
    return eye[:, None, :, None] * first
