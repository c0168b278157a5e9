"""Values that lead to a module, bound anew to its twin; all other values stay what they are.

A module is held in many ways: by bound methods, partials and closures (patched `forward`s keep
such), by the globals of a function written in a notebook, by lists, dicts and objects (the hooks
of accelerate). Whatever leads there is made again; what does not is shared.
"""

from __future__ import annotations

import copy
import functools
import sys
import types
import weakref
from collections import deque
from collections.abc import Iterator
from typing import Any

_ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes, type, types.ModuleType})
# Objects of these packages are not looked into, nor are the globals of their functions: they do
# not keep the user's modules, and they keep a great deal else.
_CLOSED = frozenset({"torch", "numpy", "transformers", "tokenizers", *sys.stdlib_module_names})
_OPEN = frozenset({"__main__"})
_MAPPED = (list, set, frozenset, deque)


class Rebinder:
    """Twins of values. Subclasses say what the roots are and how they are made."""

    def __init__(self) -> None:
        self.made: dict[int, Any] = {}
        self._kept: list[Any] = []  # an id is a name only as long as its object lives
        self._apart: set[int] = set()  # what is known to lead nowhere

    def is_root(self, value: Any) -> bool:
        raise NotImplementedError

    def root(self, value: Any) -> Any:
        raise NotImplementedError

    def rebound(self, value: Any) -> Any:
        """What stands for a value that leads to no root: itself, unless a subclass knows better."""
        return value

    def remember(self, value: Any, twin: Any) -> Any:
        self.made[id(value)] = twin
        self._kept.append(value)
        return twin

    def twin(self, value: Any) -> Any:
        """What stands in the shadow for a value."""
        if type(value) in _ATOMS:
            return value
        if id(value) in self.made:
            return self.made[id(value)]
        if self.is_root(value):
            return self.root(value)
        compiled = getattr(value, "_torchdynamo_orig_callable", None)
        if compiled is not None and isinstance(value, types.FunctionType):
            return self.twin(compiled)
        return self._again(value) if self._leads(value) else self.rebound(value)

    def _leads(self, value: Any) -> bool:
        """Whether a root can be reached from a value."""
        seen: dict[int, Any] = {id(value): value}
        open_: list[Any] = [value]
        while open_:
            for held in _held(open_.pop()):
                if type(held) in _ATOMS or id(held) in seen or id(held) in self._apart:
                    continue
                if id(held) in self.made or self.is_root(held):
                    return True
                seen[id(held)] = held
                open_.append(held)
        self._apart.update(seen)
        self._kept.extend(seen.values())
        return False

    def _again(self, value: Any) -> Any:
        """A value that leads to a root, made anew."""
        if isinstance(value, types.MethodType):
            return types.MethodType(self.twin(value.__func__), self.twin(value.__self__))
        if isinstance(value, functools.partial):
            return self._partial(value)
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, weakref.ref):
            return weakref.ref(self.twin(value()))
        if isinstance(value, tuple):
            return tuple.__new__(type(value), map(self.twin, value))
        if isinstance(value, dict):
            new = self.remember(value, copy.copy(value))
            new.clear()
            new.update((self.twin(k), self.twin(v)) for k, v in value.items())
            return new
        if isinstance(value, frozenset):
            return type(value)(map(self.twin, value))
        if isinstance(value, _MAPPED):
            new = self.remember(value, copy.copy(value))
            new.clear()
            (new.update if isinstance(value, set) else new.extend)(map(self.twin, value))
            return new
        return self._object(value)

    def _partial(self, value: functools.partial[Any]) -> functools.partial[Any]:
        new = functools.partial(
            self.twin(value.func),
            *map(self.twin, value.args),
            **{k: self.twin(v) for k, v in value.keywords.items()},
        )
        vars(new).update({k: self.twin(v) for k, v in vars(value).items()})
        return new

    def _function(self, value: types.FunctionType) -> types.FunctionType:
        """A function whose closure, defaults or globals lead to a root (patched `forward`s are
        such). Cells that do not stay the user's: what is counted in them is counted."""
        cells = value.__closure__ or ()
        leading = [cell for cell in cells if id(cell) not in self.made and self._leads(cell)]
        for cell in leading:
            self.remember(cell, types.CellType())
        new = types.FunctionType(
            value.__code__,
            self._globals(value),
            value.__name__,
            None,
            tuple(self.made.get(id(cell), cell) for cell in cells),
        )
        self.remember(value, new)
        for cell in leading:
            self.made[id(cell)].cell_contents = self.twin(cell.cell_contents)
        new.__defaults__ = self.twin(value.__defaults__)
        new.__kwdefaults__ = self.twin(value.__kwdefaults__)
        new.__qualname__, new.__doc__ = value.__qualname__, value.__doc__
        vars(new).update({k: self.twin(v) for k, v in vars(value).items()})
        return new

    def _globals(self, value: types.FunctionType) -> dict[str, Any]:
        named = dict(_named_globals(value))
        leading = {k for k, v in named.items() if id(v) in self.made or self.is_root(v)}
        leading |= {k for k, v in named.items() if type(v) not in _ATOMS and self._leads(v)}
        if not leading:
            return value.__globals__
        return _Globals(value.__globals__, {k: self.twin(named[k]) for k in leading})

    def _object(self, value: Any) -> Any:
        try:
            new = object.__new__(type(value))
        except TypeError:  # made in C: it cannot be taken apart
            return value
        self.remember(value, new)
        for name, held in _attributes(value):
            object.__setattr__(new, name, self.twin(held))
        return new


class _Globals(dict[str, Any]):
    """A function's globals, some of them overruled."""

    def __init__(self, original: dict[str, Any], overruled: dict[str, Any]) -> None:
        super().__init__(overruled, __builtins__=original.get("__builtins__", {}))
        self.original = original

    def __missing__(self, name: str) -> Any:
        return self.original[name]


def _held(value: Any) -> Iterator[Any]:
    """What a value holds, as far as it is looked into."""
    if isinstance(value, types.MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values(), *vars(value).values())
    elif isinstance(value, types.CellType):
        yield from _contents(value)
    elif isinstance(value, types.FunctionType):
        yield from value.__closure__ or ()
        yield from (value.__defaults__ or (), value.__kwdefaults__ or {}, vars(value))
        for _, held in _named_globals(value):
            yield held
    elif isinstance(value, weakref.ref):
        yield value()
    elif isinstance(value, dict):
        yield from (*value.keys(), *value.values())
    elif isinstance(value, tuple | list | set | frozenset | deque):
        yield from value
    else:
        for _, held in _attributes(value):
            yield held


def _contents(cell: types.CellType) -> Iterator[Any]:
    try:
        yield cell.cell_contents
    except ValueError:  # not filled yet
        return


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Of an object of a class that is looked into."""
    kind = type(value)
    if isinstance(value, type) or not _looked_into(kind.__module__):
        return
    yield from list(getattr(value, "__dict__", {}).items())
    for base in kind.__mro__:
        slots = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                yield name, getattr(value, name)


def _looked_into(module: str) -> bool:
    return module in _OPEN or module.partition(".")[0] not in _CLOSED


def _named_globals(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """The globals that a function names, if it is the user's."""
    if not _looked_into(function.__module__ or ""):
        return
    known = function.__globals__
    for name in _names(function.__code__):
        if name in known:
            yield name, known[name]


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:  # comprehensions, lambdas
        if isinstance(inner, types.CodeType):
            yield from _names(inner)
