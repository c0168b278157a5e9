"""What the engine's numbers are compared with, from the model alone."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

_NEAR = {"attention": 1e-4, "gae": 2e-3, "value_zeroing": 2e-2, "logits": 1e-3}


def compare(model: Any, eager: Any, case: Any, found: dict[str, Any], outcome: Any) -> None:
    """Notes in `outcome` what was compared and what differs."""
    inputs = dict(case.encoding.inputs)
    plain = {"use_cache": False} if "use_cache" in _accepted(model) else {}

    def say(name: str, error: float, near: float) -> None:
        outcome.compared.append(name)
        if not error <= near:
            outcome.differs[name] = error

    with torch.no_grad():
        own = _logits(model(**inputs, **plain))
    recorded = _logits(case.trace().output)
    size = own.abs().max().clamp(min=1e-9)
    say("logits", float((own - recorded).abs().max() / size), _NEAR["logits"])
    with torch.no_grad():
        in_the_open = _logits(eager(**inputs, **plain))
    if float((own - in_the_open).abs().max() / size) < _NEAR["logits"]:
        model = eager  # else its own code is not the same model in the open
    trace = case.trace()
    maps = list(trace.attending)
    attentions, output = _attentions(model, inputs, plain, case, len(maps))
    if attentions is not None:
        if "raw_attention" in found:
            error = 0.0
            for layer, (weights, rows, columns) in zip(maps, attentions, strict=True):
                n = trace.tokens
                expected = np.eye(n)
                expected[rows] = 0
                block = expected[rows].copy()
                block[:, columns] = weights[0].detach().float().mean(0).numpy()
                expected[rows] = block
                error = max(
                    error, float(np.abs(found["raw_attention"].maps[layer] - expected).max())
                )
            say("attention", error, _NEAR["attention"])
        if "gae" in found:
            e = found["gae"]
            error = _gae(e, case, output, attentions, maps, trace.tokens)
            if error is not None:
                say("gae", error, _NEAR["gae"])
    if "value_zeroing" in found:
        error = _value_zeroing(model, inputs, plain, case, found["value_zeroing"])
        if error is not None:
            say("value_zeroing", error, _NEAR["value_zeroing"])


def _accepted(model: Any) -> set[str]:
    import inspect

    return set(inspect.signature(model.forward).parameters)


def _logits(output: Any) -> Tensor:
    for name in ("logits", "prediction_logits"):
        if (tensor := getattr(output, name, None)) is not None:
            return tensor.detach().float()
    return output[0].detach().float()


def _attentions(model: Any, inputs: Any, plain: Any, case: Any, count: int) -> Any:
    """[(weights [H, rows, columns], rows, columns)] of every attention, with the output they
    lead to; None if the model does not give them out."""
    for parameter in model.parameters():
        if parameter.is_floating_point():
            parameter.requires_grad_()
    try:
        output = model(**inputs, **plain, output_attentions=True)
    except Exception:
        return None, None
    if isinstance((getattr(output, "encoder_attentions", None) or (None,))[0], dict):
        return None, None  # Pegasus-X gives out its attention in parts
    first = case.encoding.first_row
    n = len(case.encoding.tokens)
    if first:
        texts = slice(0, first), slice(first, n)
        found = [(a, texts[0], texts[0]) for a in getattr(output, "encoder_attentions", None) or ()]
        crosses = getattr(output, "cross_attentions", None)
        for number, own in enumerate(getattr(output, "decoder_attentions", None) or ()):
            if own.shape[-1] == n:
                found.append((own, texts[1], [*range(first, n), *range(first)]))
                continue
            found.append((own, texts[1], texts[1]))
            if crosses is not None and len(crosses):
                found.append((crosses[number], texts[1], texts[0]))
    else:
        given = getattr(output, "attentions", None) or ()
        if given and isinstance(given[0], tuple):
            given = [a for one in given for a in one]
        found = [
            (a, slice(None), slice(None))
            for a in given
            if isinstance(a, Tensor) and a.dim() == 4 and a.shape[-2:] == (n, n)
        ]
    if len(found) != count:
        return None, None
    if any(not bool((a >= 0).all() and (a <= 1.001).all()) for a, _, _ in found):
        return None, None  # SqueezeBERT gives out scores before the softmax
    return found, output


def _gae(
    e: Any, case: Any, output: Any, attentions: Any, layers: list[int], n: int
) -> float | None:
    logits = output.logits if hasattr(output, "logits") else output.prediction_logits
    row = logits[0] if e.target.position is None else logits[0, e.target.position]
    nodes = [weights for weights, _, _ in attentions]
    while row.dim() > 1:
        row = row[0]
    slopes = torch.autograd.grad(row[e.target.index], nodes, allow_unused=True)
    if all(slope is None for slope in slopes):
        return None  # what is given out is a copy beside the way
    return _far(e, attentions, slopes, layers, n)


def _far(e: Any, attentions: Any, slopes: Any, layers: list[int], n: int) -> float:
    worst = 0.0
    for layer, (weights, rows, columns), slope in zip(layers, attentions, slopes, strict=True):
        expected = np.zeros((n, n))
        if slope is not None:
            step = (weights[0].detach().double() * slope[0].double()).relu().mean(0).numpy()
            block = expected[rows].copy()
            block[:, columns] = step
            expected[rows] = block
        got = e.maps[layer].astype(float).copy()
        outside = np.ones(n, bool)
        outside[rows] = False
        got[outside] = 0
        size = max(np.abs(expected).max(), 1e-9)
        worst = max(worst, float(np.abs(got - expected).max() / size))
    return worst


class _Zeroed(TorchDispatchMode):
    """One level below torch's functions: in the k-th product of a softmax with something, one
    token's values are zero."""

    def __init__(self, lengths: set[int], which: int, source: int) -> None:
        super().__init__()
        self.lengths, self.which, self.source = lengths, which, source
        self.seen, self.held, self.pointers = 0, [], set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name.split("::")[1]
        first = args[0] if args and isinstance(args[0], Tensor) else None
        follows = first is not None and first.data_ptr() in self.pointers and first.dim() > 2
        if name == "bmm" and follows and args[0].shape[-1] in self.lengths:
            shape = args[0].shape[-2] in self.lengths
            self.pointers = set()
            if shape:
                if self.seen == self.which:
                    values = args[1].clone()
                    values[:, self.source] = 0
                    args = (args[0], values)
                self.seen += 1
        result = func(*args, **kwargs)
        if name == "_softmax":
            self.pointers = {result.data_ptr()}
            self.held.append(result)
        elif follows and isinstance(result, Tensor) and name in (
            "_to_copy", "clone", "slice", "mul", "where", "nan_to_num", "masked_fill", "copy"
        ):  # fmt: skip
            self.pointers.add(result.data_ptr())
            self.held.append(result)
        return result


def _value_zeroing(model: Any, inputs: Any, plain: Any, case: Any, e: Any) -> float | None:
    trace = case.trace()
    names = {id(m): name for name, m in case.source.model.named_modules()}
    n, first = trace.tokens, case.encoding.first_row
    lengths = {n, first, n - first} - {0}
    worst, compared = 0.0, 0
    for which, layer in enumerate(trace.attending):
        record = trace.layers[layer]
        calls = [i for i in trace.attending if trace.layers[i].module is record.module]
        if calls[-1] != layer:
            continue  # the layer's own output is that of its last attention
        same = [i for i in trace.attending if trace.layers[i].module is record.module]
        if len(same) > 2 or (len(same) == 2 and not first):
            continue  # a layer that runs several times: the hook cannot tell which
        module: Any = model.get_submodule(names[id(record.module)])
        if case.source.anatomy.open:  # its layers are no modules
            module = which
        before = _layer_output(model, module, inputs, plain, None)
        if before is None:
            return None  # a model that calls `forward` itself runs no hooks
        if first and isinstance(record.place and record.place.columns, list):
            rows, columns = record.rows, record.place.columns
        elif first and "source" not in record.name:
            rows = record.rows
            columns = list(range(n))[rows]
        elif first:
            rows, columns = record.rows, list(range(first))
        else:
            rows, columns = slice(None), list(range(n))
        moved = np.zeros((len(before), n))
        for number, column in enumerate(columns):
            mode = _Zeroed(lengths, which, number)
            after = _layer_output(model, module, inputs, plain, mode)
            if mode.seen != len(trace.attending):
                return None  # the dispatcher saw other products than the tap
            cosine = torch.nn.functional.cosine_similarity(before, after, dim=-1)
            moved[:, column] = (1 - cosine).clamp(min=0).numpy()
        total = moved.sum(-1, keepdims=True)
        sure = total[:, 0] > 1e-6
        expected = moved / np.maximum(total, 1e-30)
        got = e.maps[layer][rows]
        if len(got) != len(expected):
            return None
        if sure.any():
            worst = max(worst, float(np.abs(got[sure] - expected[sure]).max()))
            compared += 1
    return worst if compared else None


def _layer_output(model: Any, module: Any, inputs: Any, plain: Any, mode: Any) -> Tensor | None:
    held: list[Tensor] = []
    if isinstance(module, int):
        options = {**plain, "output_hidden_states": True}
        with torch.no_grad(), contextlib.nullcontext() if mode is None else mode:
            states = model(**inputs, **options).hidden_states
        return states[module + 1][0].double()

    def hook(m: Any, args: Any, result: Any) -> None:
        while isinstance(result, list | tuple):
            result = result[0]
        if isinstance(result, dict):
            result = next(iter(result.values())).transpose(1, 2)  # SqueezeBERT
        held.append(result.detach().double().reshape(-1, result.shape[-1]))

    handle = module.register_forward_hook(hook)
    try:
        with torch.no_grad():
            if mode is None:
                model(**inputs, **plain)
            else:
                with mode:
                    model(**inputs, **plain)
    finally:
        handle.remove()
    return held[-1] if held else None


Compare = Callable[[Any, Any], None]
