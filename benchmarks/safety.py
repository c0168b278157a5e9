"""Is the user's model left alone? Interrupted, forked from, trained and switched while explained.

python -m benchmarks.safety                all three, long
python -m benchmarks.safety interrupts     2,000 that land
python -m benchmarks.safety forks          20 children
python -m benchmarks.safety training       300 explanations beside a thread that trains
python -m benchmarks.safety training=10    fewer of them
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from mixwidget import explain, stream
from tests.lib import tiny

TEXT = "the film is not bad ."
METHODS: dict[str, dict[str, Any]] = {
    "raw_attention": {},
    "alti": {},
    "value_zeroing": {},
    "hta": {"samples": 2},
    "gradient": {},
    "integrated_gradients": {"steps": 3},
    "deeplift": {},
    "gae": {},
    "lrp": {},
    "attn_lrp": {},
    "logit": {},
    "blank_out": {},
}
FAMILIES = ("bert", "llama", "bloom")
_TABLES = [name for name, value in vars(torch.nn.Module()).items() if isinstance(value, dict)]


def model_state(model: Any) -> Any:
    """All that a model is: modules and what they hold, hooks, configs, weights."""
    return [
        (
            type(module),
            module.training,
            {k: id(v) for k, v in vars(module).items() if k not in _TABLES},
            [(name, key, id(v)) for name in _TABLES for key, v in vars(module)[name].items()],
            repr(vars(module.config)) if hasattr(module, "config") else None,
        )
        for module in model.modules()
    ] + [
        (p.data_ptr(), p._version, p.dtype, p.requires_grad, p.grad is None)
        for p in model.parameters()
    ]


def thread_state() -> Any:
    """All that torch keeps for the thread that asks."""
    levels = []
    for deeper, back in (
        (torch.autocast_increment_nesting, torch.autocast_decrement_nesting),
        (torch._C._vmapmode_increment_nesting, torch._C._vmapmode_decrement_nesting),
    ):
        levels.append(deeper() - 1)
        back()
    modes = range(torch._C._len_torch_function_stack())
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.get_autocast_dtype("cpu"),
        torch.is_autocast_cache_enabled(),
        levels,
        [id(torch._C._get_function_stack_at(place)) for place in modes],
        torch._C._len_torch_dispatch_stack(),
        torch._C._functorch.get_dynamic_layer_stack_depth(),
    )


def _streamed(model: Any, text: str, method: str, **options: Any) -> None:
    for _ in stream(model, text, method, **options):
        pass


def _callers() -> list[Callable[[], Any]]:
    """What the caller may have switched on his thread."""
    return [
        contextlib.nullcontext,
        torch.no_grad,
        torch.inference_mode,
        lambda: torch.autocast("cpu", torch.float16),
    ]


def interrupts(landing: int, seed: int = 0) -> Counter[str]:
    """Interrupts at random points of explanations: how many landed, and what they changed."""
    drawn, counts = random.Random(seed), Counter[str]()
    models = {family: _half_trained(tiny.model(family)) for family in FAMILIES}
    tokenizer = tiny.tokenizer()
    armed = False

    def interrupt(*_: Any) -> None:
        if armed:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    usual = {}
    try:
        while counts["landed"] < landing:
            family, method = drawn.choice(FAMILIES), drawn.choice(list(METHODS))
            if family != "bert" and method == "lrp":  # not defined there
                continue
            run = drawn.choice([explain, _streamed])
            given = {"method": method, "tokenizer": tokenizer, **METHODS[method]}
            model, caller = models[family], drawn.choice(_callers())
            begin = time.perf_counter()
            if (family, method) not in usual:
                run(model, TEXT, **given)
                begin = time.perf_counter()
                run(model, TEXT, **given)
                usual[family, method] = time.perf_counter() - begin
            was, seconds = model_state(model), usual[family, method]
            with caller():
                thread = thread_state()
                armed = True
                try:
                    signal.setitimer(signal.ITIMER_REAL, drawn.uniform(1e-5, seconds))
                    run(model, TEXT, **given)
                except KeyboardInterrupt:
                    counts["landed"] += 1
                finally:
                    armed = False
                    signal.setitimer(signal.ITIMER_REAL, 0)
                counts["runs"] += 1
                if (now := thread_state()) != thread:
                    counts["changed the thread"] += 1
                    print(family, method, caller, thread, now)
            if model_state(model) != was:
                counts["changed the model"] += 1
                models[family] = _half_trained(tiny.model(family))
    finally:
        signal.signal(signal.SIGALRM, before)
    return counts


def _half_trained(model: Any) -> Any:
    model.train()
    next(model.children()).eval()
    next(model.parameters()).requires_grad_(False)
    return model


def forks(children: int, seed: int = 0, patience: float = 60) -> Counter[str]:
    """Children forked while another thread explains: do they hang, is their model another?

    With one torch thread: a fork after torch has used several hangs by itself, in OpenMP.
    """
    assert torch.get_num_threads() == 1
    drawn, counts = random.Random(seed), Counter[str]()
    model, tokenizer = _half_trained(tiny.model("bert")), tiny.tokenizer()
    inputs = tokenizer(TEXT, return_tensors="pt")
    was, stop = model_state(model), threading.Event()

    def work() -> None:
        while not stop.is_set():
            for method, options in METHODS.items():
                explain(model, TEXT, method, tokenizer=tokenizer, **options)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        time.sleep(1)
        for _ in range(children):
            time.sleep(drawn.uniform(0.005, 0.1))
            child = os.fork()
            if child == 0:
                same = model_state(model) == was
                model(**inputs)
                explain(model, TEXT, "alti", tokenizer=tokenizer)
                explain(model, TEXT, "gradient", tokenizer=tokenizer)
                os._exit(0 if same and model_state(model) == was else 1)
            counts[_ended(child, patience)] += 1
    finally:
        stop.set()
        thread.join()
    return counts


def _ended(child: int, patience: float) -> str:
    until = time.monotonic() + patience
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return "unchanged" if status == 0 else "changed"
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hung"


def training(explanations: int, seed: int = 0) -> Counter[str]:
    """Explanations beside a thread that trains the model and switches its modes.

    The learning rate is zero, so that what is explained stays the same.
    """
    model, tokenizer = tiny.model("bert", hidden_dropout_prob=0.5), tiny.tokenizer()
    inputs = tokenizer(TEXT, return_tensors="pt")
    expected = {
        method: explain(model, TEXT, method, tokenizer=tokenizer, **options).scores
        for method, options in METHODS.items()
    }
    with torch.no_grad():
        quiet = model(**inputs).logits
    counts, stop = Counter[str](), threading.Event()

    def user() -> None:
        drawn, optimizer = random.Random(seed), torch.optim.SGD(model.parameters(), lr=0.0)
        while not stop.is_set():
            mode = drawn.random() < 0.5
            model.train(mode)
            logits = model(**inputs).logits
            same = torch.allclose(logits, quiet, atol=1e-5)
            counts["passes of the user"] += 1
            counts["passes without dropout in training, or with it in evaluation"] += same is mode
            logits.square().sum().backward()
            counts["passes without gradients"] += any(p.grad is None for p in model.parameters())
            optimizer.step()
            optimizer.zero_grad()
            counts["modes lost"] += any(m.training is not mode for m in model.modules())

    thread = threading.Thread(target=user)
    thread.start()
    try:
        for number in range(explanations):
            method = list(METHODS)[number % len(METHODS)]
            found = explain(model, TEXT, method, tokenizer=tokenizer, **METHODS[method]).scores
            counts["explanations"] += 1
            counts["wrong explanations"] += not np.array_equal(found, expected[method])
    finally:
        stop.set()
        thread.join()
    return counts


LONG: dict[str, tuple[Callable[[int], Counter[str]], int]] = {
    "interrupts": (interrupts, 2000),
    "forks": (forks, 20),
    "training": (training, 300),
}

if __name__ == "__main__":
    torch.set_num_threads(1)
    for asked in sys.argv[1:] or LONG:
        name, _, count = asked.partition("=")
        measure, usual = LONG[name]
        print(json.dumps({name: measure(int(count or usual))}))
