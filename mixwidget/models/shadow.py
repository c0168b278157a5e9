"""The shadow: a model's tree of modules made anew over the same tensors.

Every pass of ours runs on a shadow. It shares the storage of each parameter and buffer with the
user's model, and owns its modules, `Parameter` objects, modes, hooks and configs: what is done to
it, the model never sees. So nothing has to be put back, no lock is needed, an interrupt leaves
nothing behind, and the model may run or be trained at the same time.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from . import tap
from .rebind import Rebinder
from .shadowable import check_module, check_tensor

M = TypeVar("M", bound=nn.Module)

# The tables of a module (hooks of all kinds), which a shadow keeps copies of.
_TABLES = frozenset(name for name, value in vars(nn.Module()).items() if isinstance(value, dict))
_PLAIN = frozenset({type(None), bool, int, float, str, torch.dtype, torch.device, torch.Size})
# What would run the model it was compiled from.
_COMPILED = ("_compiled_call_impl",)
# Wrappers that are called as what they hold: by torch.compile, by checkpointing.
_WRAPPERS = {"OptimizedModule": "_orig_mod", "CheckpointWrapper": "_checkpoint_wrapped_module"}
_CONTAINERS = (list, dict, set)


def shadow(
    model: M,
    instead: Mapping[nn.Module, nn.Module] = MappingProxyType({}),
    *,
    as_it_is: bool = False,
) -> M:
    """The same modules as new objects over the same tensors, in evaluation, attending through
    the tap. Raises `UnsupportedModelError` where weights are not in memory or out of reach.

    Args:
        instead: modules that are not made anew, and what stands in their place.
        as_it_is: attend by the model's own implementation instead.
    """
    maker = _Maker(None if as_it_is else tap.NAME)
    for module, other in instead.items():
        maker.remember(module, other)
    made: M = maker.module(model)
    return made


class _Maker(Rebinder):
    """Makes modules anew; by id, so that one used in several places (ALBERT's layers) stays one."""

    def __init__(self, attention: str | None) -> None:
        super().__init__()
        self.attention = attention  # the implementation that configs name; None leaves theirs

    def is_root(self, value: Any) -> bool:
        return isinstance(value, nn.Module | nn.Parameter)

    def root(self, value: Any) -> Any:
        if isinstance(value, nn.Module):
            return self.module(value)
        return self.parameter(value)

    def module(self, module: Any) -> Any:
        """Its twin; all modules below are made before any of them is filled."""
        if id(module) in self.made:
            return self.made[id(module)]
        below = [module]
        fresh: list[tuple[nn.Module, _Kind]] = []
        wrappers: list[nn.Module] = []
        for one in below:  # grows while it is walked
            if id(one) in self.made:
                continue
            kind = _kind(type(one))
            if kind.scripted:
                self.remember(one, _script(one))
                continue
            below.extend(child for child in one._modules.values() if child is not None)
            if kind.wraps:
                wrappers.append(one)
            else:
                self.remember(one, object.__new__(type(one)))
                fresh.append((one, kind))
        for one in reversed(wrappers):  # one may hold another
            self.remember(one, self.made[id(_inside(one))])
        for one, kind in fresh:
            self._fill(self.made[id(one)], one, kind)
        for one in wrappers:
            _add_hooks(self.made[id(one)], self._hooks(one))
        return self.made[id(module)]

    def _fill(self, new: nn.Module, module: nn.Module, kind: _Kind) -> None:
        own = vars(new)
        for name, value in vars(module).items():
            if name in _TABLES:
                own[name] = self._table(name, value) if value else type(value)()
            elif type(value) in _PLAIN:
                own[name] = value
            elif type(value) in _CONTAINERS:
                own[name] = self._container(value)
            elif name not in _COMPILED:
                own[name] = self.twin(value)
        own["training"] = False
        if "gradient_checkpointing" in own:
            own["gradient_checkpointing"] = False
        if kind.forward is not None and "forward" not in own:
            own["forward"] = kind.forward.__get__(new)

    def _container(self, value: Any) -> Any:
        """A list, dict or set of a module's own: what a pass of ours keeps there stays ours."""
        made = self.twin(value) if value else value
        return self.remember(value, value.copy()) if made is value else made

    def _table(self, name: str, table: Any) -> Any:
        if name == "_modules":
            return {k: None if m is None else self.made[id(m)] for k, m in table.items()}
        if name == "_parameters":
            return {k: None if p is None else self.parameter(p) for k, p in table.items()}
        if name == "_buffers":
            return {k: None if b is None else self.buffer(b) for k, b in table.items()}
        return type(table)((k, self.twin(v)) for k, v in table.items())

    def _hooks(self, module: nn.Module) -> dict[str, Any]:
        return {
            name: self._table(name, table)
            for name in _TABLES
            if "hook" in name and (table := vars(module).get(name))
        }

    def parameter(self, parameter: nn.Parameter) -> Any:
        """The same numbers under an object of its own: `to`, `half` and the like replace what a
        parameter object holds. Tied parameters stay tied."""
        if id(parameter) not in self.made:
            check_tensor(parameter)
            new = Tensor._make_subclass(type(parameter), _alias(parameter), False)
            if type(parameter) is not nn.Parameter:  # a quantised one tells here how to read it
                vars(new).update(vars(parameter))
            self.remember(parameter, new)
        return self.made[id(parameter)]

    def buffer(self, buffer: Tensor) -> Tensor:
        if id(buffer) not in self.made:
            check_tensor(buffer)
            self.remember(buffer, _alias(buffer))
        return self.made[id(buffer)]

    def rebound(self, value: Any) -> Any:
        """What stands in the shadow for a value that leads to no module."""
        if isinstance(value, Tensor):  # weight norm keeps the product it has computed
            return _alias(value) if value.requires_grad or value.is_inference() else value
        if hasattr(value, "_attn_implementation_internal"):
            return self._config(value)
        return value

    def _config(self, config: Any) -> Any:
        new = object.__new__(type(config))
        self.remember(config, new)
        for name, value in vars(config).items():
            nested = hasattr(value, "_attn_implementation_internal")
            vars(new)[name] = self.twin(value) if nested else value
        if self.attention is not None:
            vars(new)["_attn_implementation_internal"] = self.attention
        vars(new)["_experts_implementation_internal"] = "eager"
        if vars(new).get("use_cache"):  # passes of ours fill none
            vars(new)["use_cache"] = False
        return new


class _Kind(NamedTuple):
    """What is to be known of a class of modules."""

    scripted: bool
    wraps: str  # where it keeps the module that it is called as
    forward: Any  # its own, if it has been compiled


# By weak reference: some classes are made for one module (by torch.fx, by parametrizations).
_kinds: weakref.WeakKeyDictionary[type, _Kind] = weakref.WeakKeyDictionary()


def _kind(of: Any) -> _Kind:
    found = _kinds.get(of)
    if found is None:
        check_module(of)
        scripted = issubclass(of, torch.jit.ScriptModule)
        compiled = None if scripted else getattr(of.forward, "_torchdynamo_orig_callable", None)
        found = _kinds[of] = _Kind(scripted, _WRAPPERS.get(of.__name__, ""), compiled)
    return found


def _inside(module: nn.Module) -> Any:
    return module._modules[_kind(type(module)).wraps]


def _alias(tensor: Tensor) -> Tensor:
    """The same storage under another tensor, which takes no part in the user's graph. Not by
    `detach`: that shares the count of changes, and a step of training between our forward and
    backward pass would be an error."""
    if not tensor.is_inference():
        return tensor.data
    # Views of tensors made in inference mode are such, too, and rule out gradients.
    shared = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    layout = (tensor.storage_offset(), tensor.size(), tensor.stride())
    return shared.set_(tensor.untyped_storage(), *layout)


def _add_hooks(module: nn.Module, tables: dict[str, Any]) -> None:
    for name, table in tables.items():
        vars(module)[name].update(table)


class _Scripted(nn.Module):
    """A ScriptModule as a module that can be watched: it takes no hooks itself."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.scripted = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.scripted(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("scripted"), name)


def _script(module: Any) -> _Scripted:
    """Compiled code keeps its modules to itself: they are copied, and given the same tensors."""
    new = copy.deepcopy(module)
    for pairs in (
        zip(module.parameters(), new.parameters(), strict=True),
        zip(module.buffers(), new.buffers(), strict=True),
    ):
        for one, other in pairs:
            check_tensor(one)
            other.data = _alias(one)
    made = _Scripted(new).eval()
    return made
