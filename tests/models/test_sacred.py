"""The user's model is as before: after success, error, interrupt and an abandoned stream."""

from __future__ import annotations

import copy
import threading

import numpy as np
import pytest
import torch

from mixwidget import explain, stream
from mixwidget.engine import prepare, start
from mixwidget.errors import CancelledError
from tests.lib import tiny

TEXT = "the film is not bad ."


def fingerprint(model):
    """Everything about a model that we must not change."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return {
        "weights": [
            (p.data_ptr(), p._version, p.requires_grad, p.grad) for p in model.parameters()
        ],
        "modes": [module.training for module in model.modules()],
        "hooks": [len(getattr(m, h)) for m in model.modules() for h in hooks],
        "attention": model.config._attn_implementation,
        "config": model.config.to_json_string(),
        "random": torch.get_rng_state().tolist(),
        "grad": torch.is_grad_enabled(),
        "forwards": [m.__dict__.get("forward") for m in model.modules()],
    }


class Stop(Exception):
    pass


@pytest.fixture(params=["bert", "gpt2", "llama"])
def model(request):
    model = tiny.model(request.param)
    model.train()  # as a user in the middle of training would have it
    next(model.children()).eval()  # and partly frozen
    model.set_attn_implementation("sdpa")
    next(model.parameters()).requires_grad_(False)
    return model


@pytest.mark.parametrize("method", ["raw_attention", "attention_rollout"])
def test_after_success(model, method):
    before = fingerprint(model)
    explain(model, TEXT, method=method, tokenizer=tiny.tokenizer())
    assert fingerprint(model) == before


@pytest.mark.parametrize("error", [Stop, KeyboardInterrupt])
@pytest.mark.parametrize("where", ["layer", "projection"])
def test_after_an_error_inside(model, error, where):
    modules = dict(model.named_modules())
    endings = (".1",) if where == "layer" else ("dense", "c_proj", "o_proj")
    name = next(n for n in modules if n.endswith(endings))

    def fail(*_):
        raise error

    handle = modules[name].register_forward_hook(fail)
    before = fingerprint(model)
    with pytest.raises(error):
        explain(model, TEXT, method="raw_attention", tokenizer=tiny.tokenizer())
    assert fingerprint(model) == before
    handle.remove()
    assert explain(model, TEXT, method="raw_attention", tokenizer=tiny.tokenizer()).maps is not None


def test_after_an_abandoned_stream(model):
    before = fingerprint(model)
    parts = stream(model, TEXT, method="raw_attention", tokenizer=tiny.tokenizer())
    assert next(parts).layer == 0
    assert fingerprint(model) == before  # between two parts, too
    parts.close()
    assert fingerprint(model) == before


def test_after_cancel_during_the_pass(model):
    before = fingerprint(model)
    calls = []

    def cancelled():
        calls.append(1)
        return len(calls) > 2

    case = prepare(model, TEXT, tokenizer=tiny.tokenizer())
    with pytest.raises(CancelledError):
        start(case, "raw_attention", cancelled=cancelled)
    assert fingerprint(model) == before
    assert not case.recorded


def test_users_pass_on_another_thread_stays_right():
    """While one thread records, another runs the model: its numbers and our records hold."""
    model, tokenizer = tiny.model("bert"), tiny.tokenizer()
    ids = tokenizer("it was a deep film", return_tensors="pt")
    with torch.no_grad():
        expected = model(**ids).logits
    wrong, stop = [], threading.Event()

    def user():
        with torch.no_grad():
            while not stop.is_set():
                if not torch.allclose(model(**ids).logits, expected, atol=1e-5):
                    wrong.append(1)

    thread = threading.Thread(target=user)
    thread.start()
    try:
        results = [
            explain(model, TEXT, method="raw_attention", tokenizer=tokenizer) for _ in range(30)
        ]
    finally:
        stop.set()
        thread.join()
    assert not wrong
    for one in results:
        assert one.maps.shape == (3, 8, 8)
        assert (one.maps == results[0].maps).all()


def test_two_threads_explain_one_model():
    model, tokenizer = tiny.model("gpt2"), tiny.tokenizer()
    texts = ["the film is not bad .", "a deep and good plot", "we saw it"] * 4
    alone = [explain(model, t, method="raw_attention", tokenizer=tokenizer).maps for t in texts]
    got = {}

    def work(which):
        for i in which:
            got[i] = explain(model, texts[i], method="raw_attention", tokenizer=tokenizer).maps

    threads = [threading.Thread(target=work, args=(range(k, 12, 2),)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((got[i] == alone[i]).all() for i in range(12))


@pytest.mark.parametrize("method", ["alti", "gradient", "deeplift", "attcat", "lrp", "mask_lrp"])
def test_inference_mode_of_the_caller(method):
    """It changes no number, and is as before between two parts and after the last."""
    model, tokenizer = tiny.model("bert"), tiny.tokenizer()
    expected = explain(model, TEXT, method=method, tokenizer=tokenizer).scores
    with torch.inference_mode():
        for _ in stream(model, TEXT, method=method, tokenizer=tokenizer):
            assert torch.is_inference_mode_enabled()
        assert not torch.is_grad_enabled()
        scores = explain(model, TEXT, method=method, tokenizer=tokenizer).scores
    assert (scores == expected).all()


@pytest.mark.parametrize("method", ["alti", "gradient", "gae", "lrp", "deeplift"])
def test_weights_made_in_inference_mode(method):
    """A shadow's tensors are ordinary ones over the same storage: gradients work."""
    with torch.inference_mode():
        model = copy.deepcopy(tiny.model("bert"))
    tokenizer = tiny.tokenizer()
    expected = explain(tiny.model("bert"), TEXT, method=method, tokenizer=tokenizer).scores
    found = explain(model, TEXT, method=method, tokenizer=tokenizer).scores
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("method", ["alti", "gradient", "gae", "lrp", "blank_out"])
def test_autocast_of_the_caller_rounds_nothing(method):
    model, tokenizer = tiny.model("bert"), tiny.tokenizer()
    expected = explain(model, TEXT, method=method, tokenizer=tokenizer).scores
    with torch.autocast("cpu", torch.float16):
        for _ in stream(model, TEXT, method=method, tokenizer=tokenizer):
            assert torch.is_autocast_enabled("cpu")
        scores = explain(model, TEXT, method=method, tokenizer=tokenizer).scores
    assert (scores == expected).all()
