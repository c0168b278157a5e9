"""The tap of a model that is proved looks at its attentions alone."""

from __future__ import annotations

import pytest
import torch

from mixwidget import explain
from mixwidget.engine import prepare
from mixwidget.models.recorder import SpecRecorder
from mixwidget.models.tap import Watching
from tests.lib import tiny

TEXT, OTHER = "the film is not bad .", "a good old film"


def seen_functions(case: object, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    whole = Watching.__torch_function__

    def noted(self, func, types, args=(), kwargs=None):
        names.append(func.__name__)
        return whole(self, func, types, args, kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(Watching, "__torch_function__", noted)
        case.trace()
    return names


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5"])
def test_a_proved_model_is_watched_only_where_it_attends(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, tokenizer = tiny.model(family), tiny.tokenizer()
    options = {"tokenizer": tokenizer, "text_pair": OTHER if family == "t5" else None}
    first, second = (prepare(model, TEXT, **options) for _ in range(2))
    whole = seen_functions(first, monkeypatch)
    part = seen_functions(second, monkeypatch)
    assert 0 < len(part) < 0.75 * len(whole)
    assert part.count("softmax") == whole.count("softmax")
    for layer in range(len(first.trace())):
        assert torch.equal(first.trace().weights(layer), second.trace().weights(layer))
    assert torch._C._len_torch_function_stack() == 0


def test_a_layer_that_fails_leaves_nobody_watching(monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = tiny.model("bert"), tiny.tokenizer()
    explain(model, TEXT, "raw_attention", tokenizer=tokenizer)
    left: list[int] = []

    def broken(self: SpecRecorder, found: object) -> None:
        raise ValueError("within an attention")

    finished = Watching.stop

    def noted(self: Watching) -> None:
        finished(self)
        left.append(torch._C._len_torch_function_stack())

    monkeypatch.setattr(SpecRecorder, "attention", broken)
    monkeypatch.setattr(Watching, "stop", noted)
    with pytest.raises(ValueError, match="within an attention"):
        explain(model, TEXT, "raw_attention", tokenizer=tokenizer)
    assert left == [0]


def test_watching_may_be_begun_twice_and_ended_under_another() -> None:
    watching = Watching(lambda found: None, {3})
    other = Watching(lambda found: None, {3})
    watching.start()
    watching.start()
    assert torch._C._len_torch_function_stack() == 1
    with other:
        watching.stop()  # another has come on top: it stays until that is gone
        assert torch._C._len_torch_function_stack() == 2
    watching.stop()
    watching.stop()
    assert torch._C._len_torch_function_stack() == 0
