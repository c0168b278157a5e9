"""The proof that the pass that is recorded is the model's own: its output is compared, once per
model, with that of a second shadow which attends by the model's own implementation."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import MixwidgetError, UnsupportedModelError
from .again import Again, beside_attention
from .shadow import shadow
from .tap import NAME
from .trace import Trace, plain_output

# Relative to the largest number of the output.
_REFUSED = 1e-3
_MISSED = 1e-2
# What rounding moves when an expert gets other tokens beside, far below what a mixer moves.
_BESIDE = 1e-3
_HALF_WARNED, _HALF_REFUSED = 1e-2, 1e-1


def check_same(model: nn.Module, inputs: Mapping[str, Tensor], recorded: Any) -> None:
    """Refuse a model whose recorded pass gave other numbers than it gives by itself."""
    own = _own(model, inputs)
    made = _numbers(recorded)
    error = _gap(made, own)
    half = made.dtype not in (torch.float32, torch.float64)
    if error > (_HALF_REFUSED if half else _REFUSED):
        if _gap(_own(model, inputs), own) > error / 10:
            raise UnsupportedModelError(
                f"{type(model).__name__} gives other numbers each time it runs on the same text "
                "(it draws at random also in evaluation), so no one pass of it can be explained."
            )
        raise UnsupportedModelError(
            f"{type(model).__name__} computes something else when its attention is looked at: its "
            f"output moves by {error:.1%} of the largest number. What it does with another "
            "implementation of attention (a mask of its own, a different kernel) is not "
            "understood, and maps of that pass would not be of this model."
        )
    # Of bfloat16 three digits are not to be had.
    if half and error > max(_HALF_WARNED, 10 * torch.finfo(made.dtype).eps):
        warnings.warn(
            f"{type(model).__name__}: in half precision the recorded pass differs from the "
            f"model's own by {error:.1%} of its largest number. Load it in float32 to be sure.",
            stacklevel=6,
        )


def other_in_the_open(model: nn.Module, inputs: Mapping[str, Tensor]) -> bool:
    """Whether a short text shows that attention in the open is not the model's own (Falcon counts
    its position biases twice): for passes that are not recorded, and so not compared."""
    if getattr(getattr(model, "config", None), "_attn_implementation", NAME) == NAME:
        return False
    numbers = []
    try:
        for plain in (shadow(model), shadow(model, as_it_is=True)):
            with torch.inference_mode(False), torch.no_grad():
                numbers.append(_numbers(plain(**inputs, **plain_output(plain))))
    except Exception:  # what does not run so is told of where a text is run
        return False
    half = numbers[0].dtype not in (torch.float32, torch.float64)
    return _gap(*numbers) > (_HALF_REFUSED if half else _REFUSED)


def check_taken_apart(
    model: nn.Module, trace: Trace, errors: dict[int, float], beside: dict[int, float]
) -> None:
    """Refuse a model whose layers write what neither their attention nor their stream explains,
    nor what is known to mix tokens beside the attention (ConvBERT's convolution)."""
    errors = {layer: error for layer, error in errors.items() if layer not in beside} or {0: 0.0}
    layer, error = max(errors.items(), key=lambda item: item[1])
    output = trace.layers[layer].output
    assert output is not None
    parameter = next((p for p in model.parameters() if p.is_floating_point()), output)
    half = parameter.dtype not in (torch.float32, torch.float64)
    if error > (_HALF_REFUSED if half else _MISSED):
        raise UnsupportedModelError(
            f"{type(model).__name__}: {error:.1%} of what layer {layer} leaves before its "
            "feed-forward comes neither from its attention to the text's tokens nor from its "
            "residual stream (another way of mixing tokens beside the attention, or an attention "
            "that is only approximated), and that is not understood."
        )


def find_beside(trace: Trace) -> dict[int, float]:
    """Layers that move numbers between tokens beside their attention, and by how much: looked for
    by running each once more with its attention held and one token's vector changed."""
    found = {}
    for layer, record in enumerate(trace.layers):
        again = None if record.taped is None else record.taped.again
        if isinstance(again, Again) and again.last:
            run = trace.layers[layer - again.which : layer + 1]
            moved = beside_attention(again, [one.attention for one in run if one.attention])
            if moved > _BESIDE:
                found[layer] = moved
    return found


def _own(model: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
    """What the model puts out by its own attention; by torch's where that does not run on this
    machine or in this precision (a model that is set to flash attention, without a GPU)."""
    for kernel in (None, "sdpa"):
        plain = shadow(model, as_it_is=True)
        if kernel is not None:
            _set_attention(plain, kernel)
        try:
            with torch.inference_mode(False), torch.no_grad():
                return _numbers(plain(**inputs, **plain_output(plain)))
        except MixwidgetError:
            raise
        except Exception as error:  # kernels fail in ways of their own
            failed = error
    raise UnsupportedModelError(
        f"{type(model).__name__} does not run by itself here with the attention that it is set to: "
        f"{(str(failed).strip().splitlines() or [''])[0][:200]} Set another one, for example "
        "model.set_attn_implementation('eager')."
    ) from failed


def _set_attention(plain: nn.Module, kernel: str) -> None:
    configs = (getattr(module, "config", None) for module in plain.modules())
    for config in {id(c): c for c in configs if c is not None}.values():
        for one in (config, *vars(config).values()):
            if hasattr(one, "_attn_implementation_internal"):
                vars(one)["_attn_implementation_internal"] = kernel


def _numbers(output: Any) -> Tensor:
    """What the model predicts from, or the vectors that it leaves."""
    for name in ("logits", "prediction_logits", "start_logits", "last_hidden_state"):
        tensor = getattr(output, name, None)
        if isinstance(tensor, Tensor):
            return tensor.detach()
    first: Tensor = output[0]
    return first.detach()


def _gap(one: Tensor, other: Tensor) -> float:
    if one.shape != other.shape:
        return float("inf")
    finite = torch.isfinite(other)  # a vocabulary may be masked with infinities
    if not bool(finite.any()):  # broken by itself, which is told where it is read
        return 0.0
    size = other[finite].abs().max().clamp(min=1e-30).double()
    gap = float((one[finite].double() - other[finite].double()).abs().max() / size)
    return gap if math.isfinite(gap) else math.inf
