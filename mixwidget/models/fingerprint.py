"""What a model is made of and set to, in short: what was found out about it holds as long as this
stays the same. A layer taken out, an adapter put in, another precision, implementation or window
are changes; other numbers in the same weights are not."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

from torch import nn

_SETTINGS = (bool, int, float, str, type(None))
_FUNCTIONS = (types.FunctionType, types.MethodType)  # patched `forward`s are such
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")
# What every module has and what says nothing of what it computes, `training` among it.
_COMMON = frozenset(vars(nn.Module())) - {"_parameters", *_HOOKS}


def fingerprint(model: nn.Module) -> int:
    """The same number as long as nothing but weights has changed."""
    return hash(tuple(_told(model)))


def _told(model: nn.Module) -> Iterator[Any]:
    configs: dict[int, Any] = {}
    for name, module in model.named_modules():
        yield name
        yield type(module)
        for key, value in list(vars(module).items()):  # it may be running meanwhile
            if key in _COMMON:
                continue
            if type(value) in _SETTINGS:
                yield key, value
            elif isinstance(value, _FUNCTIONS):
                yield key, id(value)
            elif key == "_parameters":
                yield tuple((k, None if p is None else p.dtype) for k, p in value.items())
            elif key in _HOOKS:
                yield len(value)
            elif hasattr(value, "_attn_implementation_internal"):
                configs[id(value)] = value
    for config in configs.values():
        yield from _settings(config)


def _settings(config: Any) -> Iterator[Any]:
    """Of a config and those within."""
    for key, value in list(vars(config).items()):
        if hasattr(value, "_attn_implementation_internal"):
            yield from _settings(value)
        else:
            yield key, repr(value)
