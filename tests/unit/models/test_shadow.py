"""A shadow shares storage and nothing else."""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn

from benchmarks.safety import model_state
from mixwidget.errors import UnsupportedModelError
from mixwidget.models import shadow
from mixwidget.models.shadowable import check_module, check_tensor
from tests.lib import tiny


def test_storage_is_shared_and_all_else_is_not() -> None:
    model = tiny.model("bert").train()
    made = shadow(model)
    for (name, one), (other_name, other) in zip(
        model.named_parameters(), made.named_parameters(), strict=True
    ):
        assert name == other_name
        assert one is not other
        assert one.data_ptr() == other.data_ptr()
        assert not other.requires_grad
    assert {id(m) for m in model.modules()}.isdisjoint(id(m) for m in made.modules())
    assert not any(m.training for m in made.modules())
    assert made.config is not model.config
    assert type(made) is type(model)


def test_what_is_done_to_it_the_model_does_not_see() -> None:
    model = tiny.model("gpt2", "CausalLM").train()
    before = model_state(model)
    made = shadow(model)
    made.double().requires_grad_(True).train()
    made.register_forward_hook(lambda *_: None)
    made.config.use_cache = False
    made.transformer.h[0] = nn.Identity()
    made.register_buffer("more", torch.ones(1))
    made.add_module("other", nn.Linear(2, 2))
    assert model_state(model) == before
    assert model.config.use_cache


def test_a_step_of_training_is_seen_and_disturbs_no_gradient() -> None:
    model, x = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1)), torch.randn(2, 3)
    made, leaf = shadow(model), x.clone().requires_grad_()
    result = made(leaf).sum()
    with torch.no_grad():
        model[0].weight.mul_(1.0)  # counted as a change, as a step of an optimizer is
    torch.autograd.grad(result, leaf)
    with torch.no_grad():
        model[2].bias += 1
    assert torch.equal(made(x), model(x))


class Pair(NamedTuple):
    first: Any
    second: Any


class Slotted:
    __slots__ = ("held",)


class Plain:
    pass


def test_all_that_leads_to_a_module_leads_to_its_twin() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    part = model[0]
    slotted, plain = Slotted(), Plain()
    slotted.held = {"in": [part]}
    plain.me, plain.part = plain, part  # type: ignore[attr-defined]
    model.held = [
        (part,), Pair(1, part), {part: "key"}, {part}, frozenset({part}), deque([part], 3),
        OrderedDict(a=part), slotted, plain, weakref.ref(part), part.forward, part.weight,
    ]  # fmt: skip
    made = shadow(model)
    own = made[0]
    (one,), pair, key, some, fixed, queue, order, slots, attributes, ref, method, weight = made.held
    assert one is own
    assert isinstance(pair, Pair)
    assert pair == Pair(1, own)
    assert list(key) == [own]
    assert some == {own} == fixed == set(queue)
    assert queue.maxlen == 3
    assert type(order) is OrderedDict
    assert order["a"] is own
    assert slots.held["in"] == [own]
    assert attributes.me is attributes
    assert attributes.part is own
    assert ref() is own
    assert method.__self__ is own
    assert weight is own.weight
    assert model.held[0] == (part,)
    assert plain.part is part  # type: ignore[attr-defined]


def test_functions_that_lead_to_no_module_stay_the_users() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    calls = []
    count = 0

    def hook(module: Any, args: Any, result: Any) -> None:
        nonlocal count
        count += 1
        calls.append(module)

    model.register_forward_hook(hook)
    made = shadow(model)
    made(torch.ones(1, 2))
    assert count == 1
    assert calls == [made]


def test_a_closure_over_itself_and_a_module() -> None:
    model = nn.Sequential(nn.Linear(2, 2))

    def forward(x: Any, again: bool = True) -> Any:
        assert not model.training
        return forward(x, False) if again else model[0](x)

    model.forward = forward  # type: ignore[method-assign]
    model.train()
    x = torch.ones(1, 2)
    assert torch.equal(shadow(model)(x), model[0](x))


def test_what_a_module_keeps_of_our_passes_is_the_shadows() -> None:
    class Caching(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cache: dict[int, Any] = {}
            self.seen: list[Any] = ["before"]

        def forward(self, x: Any) -> Any:
            self.cache[len(x)] = x
            self.seen.append(x)
            return x

    model = nn.Sequential(Caching())
    shadow(model)(torch.ones(2))
    assert model[0].cache == {}
    assert model[0].seen == ["before"]


def test_stand_ins() -> None:
    model, other = nn.Sequential(nn.Linear(2, 2), nn.ReLU()), nn.Identity()
    made = shadow(model, {model[0]: other})
    assert made[0] is other
    assert isinstance(made[1], nn.ReLU)


def test_tied_parameters_stay_tied_and_shared_modules_one() -> None:
    part = nn.Linear(2, 2)
    model = nn.ModuleDict({"a": part, "b": part, "c": nn.Linear(2, 2)})
    model["c"].weight = part.weight
    made = shadow(model)
    assert made["a"] is made["b"]
    assert made["c"].weight is made["a"].weight


def test_sharded_weights_are_refused() -> None:
    sharded = type("DTensor", (torch.Tensor,), {})
    with pytest.raises(UnsupportedModelError, match="sharded"):
        check_tensor(torch.ones(1).as_subclass(sharded))
    gathered = nn.Parameter(torch.empty(0))
    gathered.ds_id = 3  # type: ignore[attr-defined]
    with pytest.raises(UnsupportedModelError, match="sharded"):
        check_tensor(gathered)
    wrapped = type("FullyShardedDataParallel", (nn.Module,), {})
    with pytest.raises(UnsupportedModelError, match="FSDP"):
        check_module(wrapped)


def test_weights_that_were_never_made_are_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="never initialised"):
        shadow(nn.Sequential(nn.LazyLinear(2)))
    with pytest.raises(UnsupportedModelError, match="not in memory"):
        shadow(nn.Linear(2, 2, device="meta"))
