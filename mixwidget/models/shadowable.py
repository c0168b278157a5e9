"""Which modules and tensors a shadow can share, and in which words the others are refused."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from ..errors import UnsupportedModelError

_SHARDED = ("FullyShardedDataParallel", "FSDPModule")
_USUAL = (nn.Parameter, Tensor)
_QUANTISED = ("torch.ao.nn.quantized", "torch.nn.quantized")


def check_module(kind: type[nn.Module]) -> None:
    """Refuse a class of modules whose weights are not there to be shared."""
    if any(base.__name__ in _SHARDED for base in kind.__mro__):
        raise UnsupportedModelError(
            "The model's weights are sharded over processes (FSDP), and no process holds all of "
            "them. Gather them into a plain model first, and explain that."
        )
    if kind.__module__.startswith(_QUANTISED):
        raise UnsupportedModelError(
            f"The model is quantised by modules that hide their weights ({kind.__name__} of "
            f"{kind.__module__}), so its blocks cannot be taken apart nor differentiated. Explain "
            "the model as it was before quantising."
        )


def check_tensor(tensor: Tensor) -> None:
    """Refuse a parameter or buffer whose numbers are not in memory, or not all of them."""
    if tensor.is_meta:
        raise UnsupportedModelError(
            "Some of the model's weights are not in memory (offloaded to disk or CPU, or made on "
            "the meta device). Load it without offloading: from_pretrained(...) without "
            "device_map, or with one whose devices hold the whole model."
        )
    kind: Any = type(tensor)
    if kind in _USUAL and not tensor.is_quantized and not hasattr(tensor, "ds_id"):
        return
    if kind.__name__ == "DTensor" or hasattr(tensor, "ds_id") or kind.__name__ == "FlatParameter":
        raise UnsupportedModelError(
            "The model's weights are sharded over processes (tensor parallel, FSDP or ZeRO-3), and "
            "no process holds all of them. Gather them into a plain model first, and explain that."
        )
    if is_lazy(tensor):
        raise UnsupportedModelError(
            "The model has parameters that were never initialised (lazy modules). Run it once "
            "before explaining it."
        )
    if _wraps(tensor) or tensor.is_quantized:
        raise UnsupportedModelError(
            f"The model keeps weights as {kind.__name__}, quantised or otherwise wrapped: its "
            "blocks cannot be taken apart. Explain the model as it was before that."
        )


def _wraps(tensor: Any) -> bool:
    return bool(is_traceable_wrapper_subclass(tensor))
