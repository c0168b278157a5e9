"""The caller's thread, left as it was: grad and inference mode, autocast and torch's other modes.

torch keeps these per thread, and switches them in Python code (`no_grad`, `autocast`, ...), which
an interrupt may leave half way. Everything of ours that computes is therefore called through
`as_it_was`, which puts all of it back in a `finally` that no interrupt can skip: Python looks for
signals between bytecodes only, so what a single call into C does is never cut in two. All steps of
putting back are such calls, prepared beforehand and carried out by one.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import copy_context
from functools import partial
from itertools import takewhile
from typing import Any, ParamSpec, TypeVar

import torch
from torch.overrides import TorchFunctionMode

P = ParamSpec("P")
T = TypeVar("T")
Step = Callable[[], Any]

_C: Any = torch._C
_DEVICES = tuple(d for d in ("cpu", "cuda", "mps", "xpu") if _C._is_autocast_available(d))
_NEVER = object()
_here = threading.local()
# (deeper, back) of what is counted in levels; each tells the level it has come to.
_LEVELS: tuple[tuple[Step, Step], ...] = (
    (torch.autocast_increment_nesting, torch.autocast_decrement_nesting),
    (_C._vmapmode_increment_nesting, _C._vmapmode_decrement_nesting),
)


def as_it_was(function: Callable[P, T]) -> Callable[P, T]:
    """Call a function outside of inference mode and autocast, and leave the thread as it was:
    after success, error and interrupt alike."""

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        if getattr(_here, "entered", False):  # whoever has entered puts all of it back
            return function(*args, **kwargs)
        outside: list[Any] = []
        handled = sys.exc_info()[1]  # by the caller: not of this call
        steps = _steps(outside)
        try:
            _here.entered = True
            if torch.is_inference_mode_enabled():
                outside.append(_C._InferenceMode(False))  # it holds as long as it lives
            for device in _DEVICES:
                if torch.is_autocast_enabled(device):  # it would round what is computed
                    torch.set_autocast_enabled(device, False)
            return copy_context().run(function, *args, **kwargs)
        except BaseException as error:
            raised = _chain(error, handled)
            _end_managers(raised)
            if any(isinstance(one, KeyboardInterrupt) for one in raised[1:]):
                raise KeyboardInterrupt from error  # torch fell over it, half way into a mode
            raise
        finally:
            deque(steps, 0)  # one call: an interrupt comes before it, or after

    return called


class Mode(TorchFunctionMode):
    """A function mode that an interrupt may have taken off the stack already, and that may be
    begun and ended within a pass."""

    def start(self) -> None:
        """On the stack from here, until `stop`."""
        stack = map(_C._get_function_stack_at, range(_C._len_torch_function_stack()))
        if not any(mode is self for mode in stack):
            _C._push_on_torch_function_stack(self)

    def stop(self) -> None:
        """Off the stack, unless another mode has come on top of it since."""
        self.__exit__(None, None, None)

    def __exit__(self, *error: Any) -> None:
        size = _C._len_torch_function_stack()
        if size and _C._get_function_stack_at(size - 1) is self:
            super().__exit__(*error)


def _chain(error: BaseException, handled: BaseException | None) -> list[BaseException]:
    """An error and what it was raised from, up to what the caller was handling already."""
    chain: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and one is not handled and one not in chain:
        chain.append(one)
        one = one.__cause__ or one.__context__
    return chain


def _end_managers(raised: list[BaseException]) -> None:
    """End the context managers that an interrupt has left half way: torch has some that put a
    mode back, and they would do so when the traceback that holds them is let go."""
    for error in raised:
        place = error.__traceback__
        while place is not None:
            if place.tb_frame.f_code.co_filename == contextlib.__file__:
                with contextlib.suppress(RuntimeError):  # it still runs, somewhere above
                    place.tb_frame.clear()
            place = place.tb_next


def _steps(outside: list[Any]) -> Iterator[Any]:
    """What puts the thread back into the state it is in now, step by step as it is iterated."""
    steps: list[partial[Any]] = [partial(setattr, _here, "entered", False)]
    for deeper, back in _LEVELS:
        level = _all([partial(deeper), partial(back)])[-1]
        # One deeper, then back until the level is reached: nothing happens if it is.
        steps.append(partial(deeper))
        steps.append(partial(deque, takewhile(level.__lt__, iter(back, _NEVER)), 0))
    depth = _C._functorch.get_dynamic_layer_stack_depth()
    steps.append(partial(_C._functorch.pop_dynamic_layer_stack_and_undo_to_depth, depth))
    steps.extend(_function_modes())
    for device in _DEVICES:
        steps.append(partial(torch.set_autocast_enabled, device, torch.is_autocast_enabled(device)))
        steps.append(partial(torch.set_autocast_dtype, device, torch.get_autocast_dtype(device)))
    steps.append(partial(torch.set_autocast_cache_enabled, torch.is_autocast_cache_enabled()))
    steps.append(partial(outside.clear))
    steps.append(partial(_C._set_grad_enabled, torch.is_grad_enabled()))
    return map(partial.__call__, steps)


def _function_modes() -> Iterator[partial[Any]]:
    """All of the stack off, then those that are on it now."""
    size, pop = _C._len_torch_function_stack, _C._pop_torch_function_stack
    filled = takewhile((0).__lt__, iter(size, _NEVER))
    yield partial(deque, zip(filled, iter(pop, _NEVER), strict=False), 0)
    for place in range(size()):
        yield partial(_C._push_on_torch_function_stack, _C._get_function_stack_at(place))


def _all(steps: list[partial[Any]]) -> list[Any]:
    """The results of steps that are carried out in one call."""
    made = map(partial.__call__, steps)
    return list(made)
