"""More digits where float32 has too few."""

from __future__ import annotations

from torch import Tensor


def wide(tensor: Tensor) -> Tensor:
    """In float64; in float32 on Apple's GPUs, which have nothing wider."""
    return tensor.float() if tensor.device.type == "mps" else tensor.double()
