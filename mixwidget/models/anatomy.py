"""What a model is built of, found out by one short pass: which modules are its layers.

A layer is an item of a list of modules that gives back vectors of the shape it was given, and
that computes an attention or stands in a list with one that does. A family that a spec is known
of needs no pass.
"""

from __future__ import annotations

import inspect
import weakref
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from ..blocks import Attention, BlockSpec, Known
from ..errors import MixwidgetError, UnsupportedModelError
from .again import always_hooked, first_tensor, hidden_of
from .families import registered, spec_for
from .fingerprint import fingerprint
from .proof import other_in_the_open
from .shadow import shadow
from .tap import Watching
from .trace import base_of, plain_output

_TOKENS, _PREFIX = 7, 5
# Attentions of one layer: of the text, of the encoder's text; two of one text in a few families.
_MOST_CALLS = 2
_LONGER = 4


@dataclass
class Anatomy:
    """How a model is taken apart.

    Attributes:
        spec: where its blocks keep their parts, if it is known.
        layers: paths of its layers.
        causal: no token takes anything from a later one.
        decodes: it is an encoder and a decoder, which reads a text of its own.
        open: what its layers put out is added to the stream outside of them.
        known: what was found out in earlier passes.
        reuses: whether it goes on from keys and values as if it had read all; None: not tried.

    Passes write into it: what was proved of a model, and that a spec did not fit it.
    """

    spec: BlockSpec | None
    layers: tuple[str, ...]
    causal: bool
    decodes: bool
    open: bool = False
    known: Known = field(default_factory=Known)
    proved: int = 0  # tokens of the longest text whose pass has been compared with the model's own
    reuses: bool | None = None
    own_attention: bool = False  # its passes are made with the implementation it came with
    beside: dict[int, float] = field(default_factory=dict)  # layers that mix not by attention alone
    misfit: dict[int, float] = field(default_factory=dict)  # by how much a spec missed, by layer
    said: Any = None  # what the table of families had when it was found

    def proved_for(self, tokens: int) -> bool:
        """Whether the proof holds for a text: windows and blocks show in much longer ones only."""
        return tokens <= _LONGER * self.proved


_anatomies: weakref.WeakKeyDictionary[nn.Module, tuple[int, Anatomy]] = weakref.WeakKeyDictionary()


def anatomy_of(model: nn.Module) -> Anatomy:
    """Of the user's model; found once, and anew when more than weights has changed in it or its
    family has been taught anew."""
    said, now = registered(getattr(model, "config", None)), fingerprint(model)
    before, known = _anatomies.get(model, (None, None))
    if known is None or before != now or known.said is not said:
        known = _anatomy(model)
        known.said = said
        known.own_attention = other_in_the_open(model, probe_inputs(model, known.decodes)[0])
        _anatomies[model] = now, known
    return known


def decodes(model: Any) -> bool:
    """Whether a model has an encoder and a decoder, which reads a text of its own."""
    if not getattr(getattr(model, "config", None), "is_encoder_decoder", False):
        return False
    return "decoder_input_ids" in inspect.signature(type(model).forward).parameters


def _anatomy(model: Any) -> Anatomy:
    two, not_known = decodes(model), ""
    try:
        spec = spec_for(model.config)
    except UnsupportedModelError:
        spec, kind = None, getattr(model.config, "model_type", None)
        not_known = f" To add the family {kind!r} by hand, as 'bert' is, see register_family."
    if spec is not None and (spec.decoder is not None) != two:
        # A decoder alone, or an encoder alone, of a family that has both.
        alone = not hasattr(base_of(model), "decoder")
        spec = spec.but(decoder=None) if spec.decoder is not None and alone else None
    if spec is not None:
        return Anatomy(spec, (), spec.causal, two)
    try:
        return probed(model)
    except UnsupportedModelError as reason:
        raise UnsupportedModelError(f"{reason}{not_known}") from reason


def without_spec(anatomy: Anatomy, model: Any, misfit: dict[int, float]) -> None:
    """A model that its spec does not fit is taken apart as one that has none."""
    found = probed(model)
    anatomy.spec, anatomy.layers, anatomy.misfit = None, found.layers, misfit
    anatomy.open = found.open


def probed(model: Any) -> Anatomy:
    """Found by a short pass, whatever the table of families says."""
    return _Search(shadow(model), decodes(model)).result()


class _Entered:
    """A module that runs, and may be a layer."""

    def __init__(self, module: nn.Module, given: Tensor | None) -> None:
        self.module, self.given, self.calls = module, given, 0
        self.out: Tensor | None = None


class _Search:
    """One pass with a hook on every item of a list of modules."""

    def __init__(self, model: Any, two: bool) -> None:
        self.model, self.two = model, two
        self.stack: list[_Entered] = []
        self.seen: dict[nn.Module, int] = {}  # attentions in one run, of what keeps its shape
        self.runs: list[_Entered] = []
        self.outside = 0
        self.later = False  # something was taken from a later token
        self.odd: set[tuple[int, int]] = set()

    def result(self) -> Anatomy:
        self._run()
        layers = self._layers()
        names = {module: name for name, module in self.model.named_modules()}
        paths = tuple(names[layer] for layer in layers)
        chained = [
            after.given is not None and before.out is not None and _same(before.out, after.given)
            for before, after in pairwise(run for run in self.runs if run.module in layers)
        ]
        is_open = bool(chained) and not any(chained)
        return Anatomy(None, paths, not self.later, self.two, is_open)

    def _run(self) -> None:
        items = dict.fromkeys(
            item
            for module in self.model.modules()
            if isinstance(module, nn.ModuleList | nn.Sequential)
            for item in module
        )
        for item in items:
            always_hooked(item)
            item.register_forward_pre_hook(self._enter, with_kwargs=True)
            item.register_forward_hook(self._leave)
        inputs, lengths = probe_inputs(self.model, self.two)
        watching = Watching(self._attention, lengths)
        with watching, torch.inference_mode(False), torch.no_grad():
            run_probe(self.model, inputs)
        self.odd = watching.odd

    def _enter(self, module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        given = hidden_of(args, kwargs)
        self.stack.append(_Entered(module, None if given is None else given.clone()))

    def _leave(self, module: nn.Module, args: Any, result: Any) -> None:
        entered = self.stack.pop()
        out = first_tensor(result)
        entered.out = out
        self.runs.append(entered)
        if entered.given is not None and out is not None and out.shape == entered.given.shape:
            self.seen[module] = max(self.seen.get(module, 0), entered.calls)

    def _attention(self, found: Attention) -> None:
        for entered in self.stack:
            entered.calls += 1
        self.outside += not self.stack
        rows, columns = found.weights.shape[-2:]
        if rows == columns and bool(found.weights.triu(1).any()):
            self.later = True

    def _layers(self) -> list[nn.Module]:
        attending = [m for m, calls in self.seen.items() if 1 <= calls <= _MOST_CALLS]
        if not attending:
            raise UnsupportedModelError(self._why_not())
        within = {id(inner) for m in attending for inner in m.modules() if inner is not m}
        outermost = [m for m in attending if id(m) not in within]
        # Layers beside them that do not attend.
        chosen = set(outermost)
        for stack in self.model.modules():
            if isinstance(stack, nn.ModuleList) and any(item in chosen for item in stack):
                beside = [item for item in stack if self.seen.get(item, 1) == 0]
                chosen.update(item for item in beside if id(item) not in within)
        if self.two:
            chosen.update(self._stacks_without_attention(chosen))
        return [module for module in self.model.modules() if module in chosen]

    def _stacks_without_attention(self, chosen: set[nn.Module]) -> list[nn.Module]:
        """Layers of an encoder whose attention is none of tokens to tokens (of windows, say): a
        list of modules that each read what the one before put out."""
        inside = {id(inner) for layer in chosen for inner in layer.modules()}
        runs = {run.module: run for run in self.runs}
        found: list[nn.Module] = []
        for stack in self.model.modules():
            if not isinstance(stack, nn.ModuleList) or any(id(one) in inside for one in stack):
                continue
            items = [runs[one] for one in stack if one in runs]
            chained = len(items) == len(stack) > 1 and all(
                one.out is not None and other.given is not None and _same(one.out, other.given)
                for one, other in pairwise(items)
            )
            if chained and all(self.seen.get(one.module) == 0 for one in items):
                found.extend(stack)
        return found

    def _why_not(self) -> str:
        if self.odd:
            rows, columns = max(self.odd)
            return (
                f"Its attention has {rows} rows and {columns} columns for a text of {_TOKENS} "
                "tokens: it attends to something else than the text's tokens (tokens that the "
                "model adds, pooled or grouped ones), which cannot be put down to them."
            )
        return (
            "None of its layers computes an attention of tokens to tokens as a softmax that is "
            "multiplied with values: it mixes tokens in another way (a recurrence, a convolution, "
            "an approximation of attention), which is not understood."
        )


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and bool(torch.equal(one, other))


def probe_inputs(model: Any, two: bool) -> tuple[dict[str, Tensor], set[int]]:
    """A short text of numbers, and how many tokens there are on either side of an attention."""
    device = next(model.parameters()).device

    def numbers(count: int) -> Tensor:
        return (torch.arange(count, device=device) % 5 + 3)[None]

    inputs = {"input_ids": numbers(_TOKENS), "attention_mask": torch.ones_like(numbers(_TOKENS))}
    ends = getattr(model.config, "eos_token_id", None)
    if isinstance(ends, int) and two:  # classifiers read at the end of the text
        inputs["input_ids"][0, -1] = ends
    if not two:
        return inputs, {_TOKENS}
    inputs["decoder_input_ids"] = numbers(_PREFIX)
    if "Classification" in type(model).__name__:  # reads its decoder where the text ends
        inputs["decoder_input_ids"] = numbers(_TOKENS)
    return inputs, {_TOKENS, _PREFIX, _TOKENS + _PREFIX, 2 * _TOKENS}


def run_probe(model: Any, inputs: dict[str, Tensor]) -> Any:
    """The model's output for a text; an error in words if it needs more than a text."""
    try:
        return model(**inputs, **plain_output(model))
    except MixwidgetError:
        raise
    except Exception as error:  # a model that nobody here has seen may fail in any way
        raise UnsupportedModelError(
            f"{type(model).__name__} does not run on the ids of a text alone: it needs other "
            "inputs (an image, audio, positions on a page, ids of a kind of its own), which this "
            "does not give it."
        ) from error
