"""What a recorded pass will hold, and whether there is room for it: asked before it is made."""

from __future__ import annotations

from pathlib import Path

import torch

from ..errors import CostError
from .source import Source

# Vectors of d features that a layer's record keeps: input, values, attention's and the
# feed-forward's results, output.
_VECTORS = 6
_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


def recorded_bytes(source: Source, tokens: int) -> int:
    """Bytes that the record of one pass will take, in float32 at least."""
    config = source.model.config
    layers = int(getattr(config, "num_hidden_layers", 1))
    if source.spec.decoder is not None:  # a decoder layer is two blocks
        names = ("num_decoder_layers", "decoder_layers")
        layers += 2 * max(int(getattr(config, name, None) or 0) for name in names)
    heads = int(getattr(config, "num_attention_heads", 1))
    width = int(getattr(config, "hidden_size", 1))
    size = 8 if next(source.model.parameters()).dtype == torch.float64 else 4
    # The softmax of the layer at work needs its scores beside the weights.
    return size * (heads * tokens**2 * (layers + 2) + _VECTORS * width * tokens * layers)


def available_bytes(device: torch.device) -> int | None:
    """Memory that can still be had on a device; None where nothing says."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type != "cpu" or not _MEMINFO.exists():
        return None
    lines = dict(line.split(":", 1) for line in _MEMINFO.read_text().splitlines())
    free = int(lines["MemAvailable"].split()[0]) * 1024
    try:  # a container may be allowed less than the machine has
        limit = int((_CGROUP / "memory.max").read_text())
        return min(free, limit - int((_CGROUP / "memory.current").read_text()))
    except (OSError, ValueError):
        return free


def check_memory(source: Source, tokens: int) -> None:
    """Refuse a text whose recorded pass would not fit, before anything is allocated."""
    needed, free = recorded_bytes(source, tokens), available_bytes(source.device)
    if free is not None and needed > free:
        raise CostError(
            f"Recording {tokens} tokens through this model takes about {needed / 1e9:.1f} GB "
            f"(attention weights of every head and layer), and {free / 1e9:.1f} GB are free. "
            "Shorten the text, or use a smaller model."
        )
