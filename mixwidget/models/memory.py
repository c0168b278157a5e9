"""What a recorded pass will hold, and whether there is room for it: asked before it is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ..errors import CostError
from .source import Source

# Vectors of d features that a layer's record keeps: input, values, attention's and the
# feed-forward's results, output.
_VECTORS = 6
# Bytes that are there, or nothing runs at all: asking the machine takes longer than a short text.
_ALWAYS = 2**24
_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


def recorded_bytes(source: Source, tokens: int) -> int:
    """Bytes that the record of one pass will take, in float32 at least."""
    config = source.model.config
    layers = _number(config, "num_hidden_layers")
    if source.decodes:  # a decoder layer is two blocks
        names = ("num_decoder_layers", "decoder_layers")
        layers += 2 * max(int(getattr(config, name, None) or 0) for name in names)
    heads = _number(config, "num_attention_heads")
    width = _number(config, "hidden_size")
    size = 8 if next(source.model.parameters()).dtype == torch.float64 else 4
    # The softmax of the layer at work needs its scores beside the weights.
    return size * (heads * tokens**2 * (layers + 2) + _VECTORS * width * tokens * layers)


def _number(config: Any, name: str) -> int:
    """An entry of a model's config, or of that of its text; 1 where nothing says, or where it is
    another one in each layer."""
    inner = config.get_text_config() if hasattr(config, "get_text_config") else config
    for one in (config, inner):
        try:
            value = getattr(one, name, None)
        except Exception:  # transformers refuses to name one number for layers of unlike shapes
            value = None
        if isinstance(value, int):
            return value
    return 1


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


def long_bytes(source: Source, tokens: int) -> int:
    """Bytes that a long text takes, a layer at a time: every layer's input and map, three times
    the attention of the layer at work, and the logits."""
    config = source.model.config
    layers, heads = (
        _number(config, f"num_{name}") for name in ("hidden_layers", "attention_heads")
    )
    width, words = _number(config, "hidden_size"), _number(config, "vocab_size")
    size = 8 if next(source.model.parameters()).dtype == torch.float64 else 4
    square = tokens**2 * (layers * 4 + 3 * heads * size)
    return square + size * tokens * (layers * width + 2 * words)


def check_long(source: Source, tokens: int) -> None:
    """Refuse a long text that would not fit even a layer at a time."""
    needed, free = long_bytes(source, tokens), available_bytes(source.device)
    if free is not None and needed > free:
        raise CostError(
            f"{tokens} tokens through this model take about {needed / 1e9:.1f} GB even a layer at "
            f"a time, and {free / 1e9:.1f} GB are free. Shorten the text, take attn_lrp or "
            "gradient_x_input, which need no maps, or use a smaller model."
        )


def check_memory(source: Source, tokens: int) -> None:
    """Refuse a text whose recorded pass would not fit, before anything is allocated."""
    needed = recorded_bytes(source, tokens)
    if needed < _ALWAYS:
        return
    free = available_bytes(source.device)
    if free is not None and needed > free:
        raise CostError(
            f"Recording {tokens} tokens through this model takes about {needed / 1e9:.1f} GB "
            f"(attention weights of every head and layer), and {free / 1e9:.1f} GB are free. "
            "Shorten the text, or use a smaller model."
        )
