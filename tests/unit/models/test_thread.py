"""The caller's thread is as it was, whatever a function leaves behind."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import torch

from benchmarks.safety import thread_state
from mixwidget.models.thread import Mode, as_it_was


class Passing(Mode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def putting_back(mode: Passing) -> Any:
    """As torch takes a mode off for the length of a call."""
    torch._C._pop_torch_function_stack()
    try:
        yield
    finally:
        torch._C._push_on_torch_function_stack(mode)


def leave_all_behind() -> None:
    torch._C._set_grad_enabled(not torch.is_grad_enabled())
    torch.autocast("cpu", torch.float16).__enter__()
    torch._C._vmapmode_increment_nesting()
    torch.set_autocast_cache_enabled(False)
    Passing().__enter__()
    Passing().__enter__()


CALLERS = [
    contextlib.nullcontext,
    torch.no_grad,
    torch.inference_mode,
    lambda: torch.autocast("cpu", torch.bfloat16),
    Passing,
]


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_what_a_function_leaves_behind_is_put_back(caller: Any, error: Any) -> None:
    @as_it_was
    def work() -> None:
        assert not torch.is_inference_mode_enabled()
        assert not torch.is_autocast_enabled("cpu")
        assert not torch.ones(1).is_inference()
        leave_all_behind()
        if error:
            raise error

    with caller():
        before = thread_state()
        with pytest.raises(error) if error else contextlib.nullcontext():
            work()
        assert thread_state() == before


def test_modes_of_the_caller_that_were_taken_off_are_put_back() -> None:
    with Passing():
        before = thread_state()
        as_it_was(torch._C._pop_torch_function_stack)()
        assert thread_state() == before


def test_a_manager_that_an_interrupt_left_half_way_does_not_act_later() -> None:
    """Its generator would put a mode back when the traceback that holds it is let go."""
    mode = Passing()

    class Interrupted(contextlib._GeneratorContextManager):  # type: ignore[type-arg]
        pass

    def interrupted() -> None:
        with mode:
            manager = putting_back(mode)
            exit_ = type(manager).__exit__
            code = compile("def __exit__(self, *error):\n    raise KeyboardInterrupt",
                           contextlib.__file__, "exec")  # fmt: skip
            scope: dict[str, Any] = {}
            exec(code, scope)
            kind = type("Half", (Interrupted,), {"__exit__": scope["__exit__"]})
            manager.__class__ = kind
            assert exit_ is not kind.__exit__
            with manager:
                del manager

    before = thread_state()
    with pytest.raises(KeyboardInterrupt) as caught:
        as_it_was(interrupted)()
    assert thread_state() == before
    del caught
    assert thread_state() == before


def test_an_interrupt_that_torch_falls_over_is_still_an_interrupt() -> None:
    """Half way into `vmap`, torch takes back a level that it has not entered yet: an error."""

    def interrupted() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            torch._C._functorch._vmap_decrement_nesting()

    before = thread_state()
    with pytest.raises(KeyboardInterrupt):
        as_it_was(interrupted)()
    assert thread_state() == before


def test_an_interrupt_that_the_caller_handles_hides_no_error() -> None:
    def failing() -> None:
        raise ValueError("of the call itself")

    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        with pytest.raises(ValueError, match="of the call itself"):
            as_it_was(failing)()


def test_only_the_outermost_puts_back() -> None:
    seen = []

    @as_it_was
    def inner() -> None:
        torch._C._set_grad_enabled(False)

    @as_it_was
    def outer() -> None:
        inner()
        seen.append(torch.is_grad_enabled())

    outer()
    assert seen == [False]
    assert torch.is_grad_enabled()
    inner()
    assert torch.is_grad_enabled()
