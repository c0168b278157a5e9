"""A wrapped model gives what the plain one gives, or is refused in words; it stays as it was."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch

from mixwidget import explain
from mixwidget.errors import UnsupportedModelError
from tests.lib import tiny
from tests.lib.wrapped import METHODS, TEXT, all_wrapped, distance, tried

EQUAL = {name: one for name, one in all_wrapped().items() if not one.refused}
REFUSED = {name: one for name, one in all_wrapped().items() if one.refused}


@cache
def _pair(name: str) -> Any:
    return EQUAL[name].wrap()


def _state(model: Any) -> Any:
    """All that a model is made of, by identity."""
    tables = [name for name, v in vars(torch.nn.Module()).items() if isinstance(v, dict)]
    return [
        {
            "class": type(module),
            "training": module.training,
            "own": {k: id(v) for k, v in vars(module).items() if k not in tables},
            "tables": {k: [(n, id(v)) for n, v in vars(module)[k].items()] for k in tables},
            "config": dict(vars(getattr(module, "config", None) or object)),
        }
        for module in model.modules()
        if not isinstance(module, torch.jit.ScriptModule)
    ] + [(p.data_ptr(), p.dtype, p.requires_grad, p.grad) for p in model.parameters()]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", EQUAL)
def test_a_wrapped_model_equals_the_plain_one_and_stays_as_it_was(name: str, method: str) -> None:
    model, plain = _pair(name)
    before = _state(model)
    found, expected = tried(model, method), tried(plain, method)
    if isinstance(found, str) or isinstance(expected, str):
        assert found == expected  # refused for the family, not for the wrapping
    else:
        assert distance(found, expected) <= EQUAL[name].tolerance
    assert _state(model) == before


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_explained_is_refused_in_words(name: str) -> None:
    model, _ = REFUSED[name].wrap()
    before = _state(model)
    with pytest.raises(UnsupportedModelError, match=REFUSED[name].refused):
        explain(model, TEXT, tokenizer=tiny.tokenizer())
    assert _state(model) == before
