"""The layers that a text goes through, and a pass whose graph begins with the first of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import UnsupportedMethodError
from .gradients import gradients
from .source import Source
from .trace import base_of, plain_output

# Lists of layers that are tried: a model that also sees or hears has several.
_TRIES = 4


class Inputs:
    """The inputs of a stack of layers, as nodes of one graph that begins with the first.

    Attributes:
        sides: of each node, which stack it is an input of; encoder-decoders have two.
    """

    def __init__(self, check: Callable[[], None], second: Sequence[nn.Module] = ()) -> None:
        self.check = check
        self.second = {id(layer) for layer in second}
        self.nodes: list[Tensor] = []
        self.sides: list[int] = []
        self.embedded: Tensor | None = None

    def enter(self, module: nn.Module, args: Any, kwargs: Any) -> Any:
        self.check()
        read = args[0] if args and isinstance(args[0], Tensor) else None
        hidden = self.given(kwargs) if read is None else read
        if not (isinstance(hidden, Tensor) and hidden.is_floating_point()):
            raise UnsupportedMethodError(
                f"The layers of this model ({type(module).__name__}) are not given one tensor of "
                "hidden states, so attributions cannot be followed through them."
            )
        side = int(id(module) in self.second)
        begins = side not in self.sides
        node = self.node(hidden, begins)
        if node.requires_grad:  # not what a model computes without gradients beforehand
            self.nodes.append(node)
            self.sides.append(side)
        if node.is_leaf:  # some models write into what they read
            node = node.clone()
        args, kwargs = self.beside(args, kwargs, hidden)
        if read is not None:
            return (node, *args[1:]), kwargs
        name = "hidden_states" if "hidden_states" in kwargs else "x"
        return args, {**kwargs, name: node}

    def node(self, hidden: Tensor, begins: bool) -> Tensor:
        """What a layer reads, as a node of the graph."""
        return hidden.detach().requires_grad_() if begins else hidden.view_as(hidden)

    def beside(self, args: Any, kwargs: Any, hidden: Tensor) -> tuple[Any, Any]:
        """What else a layer is given."""
        return args, kwargs

    @staticmethod
    def given(kwargs: dict[str, Any]) -> Any:
        """The hidden states among a layer's arguments by name."""
        return kwargs.get("hidden_states", kwargs.get("x"))

    def embed(self, module: nn.Module, args: Any, made: Any) -> Any:
        """The embeddings, for models that read them again further up."""
        if isinstance(made, tuple):  # I-BERT gives a scale with them
            return (self.embed(module, args, made[0]), *made[1:])
        if self.embedded is None:
            self.embedded = made.detach().requires_grad_()
            return self.embedded.clone()
        return made


def stacks_of(source: Source, twin: Any) -> list[list[nn.Module]]:
    """Lists of layers that the text may go through, the one that holds most of the model first."""
    lists = _lists(base_of(twin))
    if not lists:
        raise UnsupportedMethodError(
            f"{type(source.model).__name__} has no list of layers to follow the text through."
        )
    return [_innermost(layers) for layers in lists]


def _lists(module: nn.Module) -> list[list[nn.Module]]:
    lists = [
        (sum(p.numel() for p in one.parameters()), -len(name), list(one))
        for name, one in module.named_modules()
        if isinstance(one, nn.ModuleList) and len(one)
    ]
    lists.sort(key=lambda found: found[:2], reverse=True)
    return [found[2] for found in lists[:_TRIES]]


def _followed(source: Source, twin: Any, number: int) -> tuple[list[nn.Module], list[nn.Module]]:
    """The layers that are followed at a try: of one text, and of an encoder-decoder's other."""
    if source.decodes:
        both = [_lists(part) for part in (twin.get_encoder(), twin.get_decoder())]
        if all(both):
            first, second = (found[min(number, len(found) - 1)] for found in both)
            return first, second
    stacks = stacks_of(source, twin)
    return stacks[min(number, len(stacks) - 1)], []


def _innermost(layers: list[nn.Module]) -> list[nn.Module]:
    """A layer may be a group of layers of its own (ALBERT), which are what runs."""
    while layers and all(_groups(m) for m in layers):
        layers = [child for m in layers for child in _members(m)]
    return list(dict.fromkeys(layers))


def _members(module: nn.Module) -> list[nn.Module]:
    if isinstance(module, nn.ModuleList):
        return list(module)
    return [m for child in module.children() if isinstance(child, nn.ModuleList) for m in child]


def _groups(module: nn.Module) -> bool:
    children = list(module.children())
    return len(children) == 1 and isinstance(children[0], nn.ModuleList)


def prediction(
    source: Source,
    inputs: dict[str, Tensor],
    value: Callable[[Any], Tensor],
    install: Callable[[nn.Module, list[nn.Module]], AbstractContextManager[Any]],
    check: Callable[[], None] = lambda: None,
    reading: Callable[[Callable[[], None], Sequence[nn.Module]], Inputs] = Inputs,
) -> tuple[Tensor, Inputs]:
    """A number of the model's output as a node of the graph of its pass, and the layers' inputs.

    Args:
        value: the number, given the output.
        install: is given a shadow and its layers, and gives what the pass runs under.
        reading: makes what keeps the layers' inputs.
    """
    for number in range(_TRIES):
        twin = source.shadowed().model
        layers, second = _followed(source, twin, number)
        reads = reading(check, second)
        for layer in (*layers, *second):
            layer.register_forward_pre_hook(reads.enter, with_kwargs=True)
        rules = install(twin, [*layers, *second])
        table = twin.get_input_embeddings()
        if table is not None and not second:
            table.register_forward_hook(reads.embed)
        with torch.inference_mode(False), torch.enable_grad():
            with rules:
                output = twin(**inputs, **plain_output(twin))
            made = value(output).sum()
        if reads.nodes and made.requires_grad:
            return made, reads
    raise UnsupportedMethodError(
        f"The prediction of {type(source.model).__name__} could not be followed back to the "
        "input of its first layer."
    )


def layer_gradients(
    source: Source,
    inputs: dict[str, Tensor],
    value: Callable[[Any], Tensor],
    check: Callable[[], None] = lambda: None,
) -> list[tuple[Tensor, Tensor]]:
    """(what a layer reads, the true gradient of a number there), [n, d] each, for every layer."""
    made, reads = prediction(source, inputs, value, lambda *_: contextlib.nullcontext(), check)
    nodes = reads.nodes
    return [
        (node.detach().reshape(-1, node.shape[-1]), slope.reshape(-1, node.shape[-1]))
        for node, slope in zip(nodes, gradients(made, nodes), strict=True)
    ]
