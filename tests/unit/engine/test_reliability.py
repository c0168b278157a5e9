"""Faults anywhere, odd texts and long use: nothing changes on the model, nothing leaks."""

from __future__ import annotations

import contextlib
import gc
import resource
import threading
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mixwidget import MixView, demo, explain
from mixwidget.engine import assemble, parts, prepare, start
from mixwidget.errors import CostError, InputError, MixwidgetError
from mixwidget.methods.registry import all_methods
from mixwidget.models import memory
from tests.lib import tiny
from tests.models.test_sacred import fingerprint

TEXT = "the film is not bad ."
FAMILIES = ("bert", "gpt2", "llama", "gemma2", "gpt_neox", "deberta-v2")
METHODS = [entry.id for entry in all_methods()]
quiet = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,  # the same examples on every machine
)


class Fault(Exception):
    pass


@cache
def loaded(family):
    model = tiny.model(family, "SequenceClassification")
    model.train()
    return model


def results(model, method):
    run = start(prepare(model, TEXT, tokenizer=tiny.tokenizer()), method)
    return assemble(run, list(parts(run)))


@quiet
@given(
    family=st.sampled_from(FAMILIES),
    method=st.sampled_from(METHODS),
    error=st.sampled_from([Fault, KeyboardInterrupt]),
    module=st.integers(0, 10_000),
    call=st.integers(1, 6),
    place=st.sampled_from(["before", "after"]),
)
def test_a_fault_in_any_module_leaves_no_trace(family, method, error, module, call, place):
    model = loaded(family)
    modules = [m for m in model.modules() if not list(m.children())]
    chosen, calls = modules[module % len(modules)], []

    def fail(*_):
        calls.append(1)
        if len(calls) == call:
            raise error

    register = (
        chosen.register_forward_pre_hook if place == "before" else chosen.register_forward_hook
    )
    handle = register(fail)
    before = fingerprint(model)
    with contextlib.suppress(error, MixwidgetError):
        results(model, method)
    assert fingerprint(model) == before
    handle.remove()


@quiet
@given(family=st.sampled_from(FAMILIES), method=st.sampled_from(METHODS), checks=st.integers(0, 12))
def test_cancel_at_any_check_leaves_no_trace(family, method, checks):
    model, asked = loaded(family), []
    before = fingerprint(model)

    def cancelled():
        asked.append(1)
        return len(asked) > checks

    case = prepare(model, TEXT, tokenizer=tiny.tokenizer())
    with contextlib.suppress(MixwidgetError):  # cancelled, or not defined for this family
        list(parts(start(case, method, cancelled=cancelled)))
        assert len(asked) <= checks
    assert fingerprint(model) == before


@quiet
@given(family=st.sampled_from(FAMILIES), method=st.sampled_from(METHODS), taken=st.integers(0, 3))
def test_a_stream_abandoned_anywhere_leaves_no_trace(family, method, taken):
    model = loaded(family)
    before = fingerprint(model)
    with contextlib.suppress(MixwidgetError):  # not defined for this family
        work = parts(start(prepare(model, TEXT, tokenizer=tiny.tokenizer()), method))
        for _ in range(taken):
            next(work, None)
            assert fingerprint(model) == before
        work.close()
    gc.collect()
    assert fingerprint(model) == before


@pytest.mark.parametrize("family", FAMILIES)
def test_same_numbers_again_and_on_another_thread(family):
    """No method keeps anything: the second run is the first, whatever ran between."""
    model = loaded(family)
    for method in METHODS:
        try:
            first = results(model, method)
        except MixwidgetError:
            continue
        np.testing.assert_array_equal(results(model, method).scores, first.scores, err_msg=method)


ODD = st.text(
    alphabet=st.one_of(
        st.characters(),
        st.sampled_from(list("<>&\"'/$\\`{}\0\x07\u200b\u200d\u202e\ufeff😀👩‍💻אبم́")),
    ),
    max_size=60,
)


def unless_refused(model, text, **options):
    """The explanation, or None after a refusal: any other exception is a failure."""
    with contextlib.suppress(InputError):
        return explain(model, text, **options)


@settings(deadline=None, max_examples=150, derandomize=True)
@given(text=ODD, pair=st.none() | ODD)
def test_odd_texts_work_or_are_refused_in_words(text, pair):
    model, tokenizer = embedded()
    e = unless_refused(model, text, method="raw_attention", tokenizer=tokenizer, text_pair=pair)
    if e is None:
        return
    assert np.isfinite(e.maps).all()
    for token in e.tokens:
        if token.start is not None:
            source = text if token.segment == 0 else pair
            assert 0 <= token.start <= token.end <= len(source)


@cache
def embedded():
    return demo.load()


@pytest.mark.parametrize(
    "text",
    [
        "x" * 10_000,
        "<img src=x onerror=alert(1)> </script> film",
        "[CLS] [SEP] [PAD]",
        "\u202egood\u202c film",
        "👩‍💻" * 20,
        "a\tb\r\nc\x00d\x1b[31m",
        "שלום عالم film",
    ],
)
def test_hostile_texts(text):
    model, tokenizer = embedded()
    e = unless_refused(model, text, method="alti", tokenizer=tokenizer)
    assert e is None or np.isfinite(e.scores).all()


def resident() -> int:
    """Bytes of memory held by this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("method", ["alti", "value_zeroing", "attcat", "gradient"])
def test_200_explanations_leave_memory_flat(method):
    model, tokenizer = embedded()
    for _ in range(40):  # caches of torch and of the allocator fill up
        explain(model, demo.SENTENCE, method=method, tokenizer=tokenizer)
    gc.collect()
    before = resident()
    for _ in range(200):
        explain(model, demo.SENTENCE, method=method, tokenizer=tokenizer)
    gc.collect()
    assert resident() < 1.05 * before


def test_what_would_not_fit_is_refused_before_anything_is_allocated(monkeypatch):
    """Estimated beforehand; the model does not run."""
    model = tiny.model("llama", "CausalLM")
    case = prepare(model, TEXT, tokenizer=tiny.tokenizer())
    monkeypatch.setattr(memory, "_ALWAYS", 0)  # below that nobody asks the machine
    monkeypatch.setattr(memory, "available_bytes", lambda device: 10_000)
    monkeypatch.setattr(model, "forward", None)
    with pytest.raises(CostError, match=r"8 tokens.*GB are free"):
        case.trace()


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_the_estimate_is_what_the_record_takes(family):
    model = tiny.model(family, "")
    case = prepare(model, " ".join(["film"] * 50), tokenizer=tiny.tokenizer())
    estimate = memory.recorded_bytes(case.source, len(case.encoding.tokens))
    assert 0.6 * estimate < case.trace().nbytes() < 1.2 * estimate


def test_memory_that_is_free_can_be_asked_for():
    free = memory.available_bytes(torch.device("cpu"))
    assert free is None or 2**20 < free < 2**50
    assert memory.available_bytes(torch.device("meta")) is None


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_4096_tokens_within_the_stated_memory():
    """A Llama-like model of 4,096 tokens runs the cheap methods in little more than its record."""
    model = tiny.model("llama", "CausalLM", max_position_embeddings=4096, num_hidden_layers=2)
    tokenizer = tiny.tokenizer()
    tokenizer.model_max_length = 4096
    case = prepare(model, " ".join(["film is"] * 2047), tokenizer=tokenizer)
    assert len(case.encoding.tokens) == 4096
    stated = memory.recorded_bytes(case.source, 4096)
    before = resident()
    for method in ("raw_attention", "attn_norm", "globenc"):
        for part in parts(start(case, method)):
            assert part.map.shape == (4096, 4096)
            assert resident() - before < 1.5 * stated


def test_threads_grad_mode_is_left_alone():
    with torch.no_grad():
        results(loaded("bert"), "gradient")
        assert not torch.is_grad_enabled()
    results(loaded("bert"), "raw_attention")
    assert torch.is_grad_enabled()


def test_50_widgets_in_one_notebook():
    """All of them answer, with one model between them; closed, none leaves a thread."""
    model, tokenizer = embedded()
    before = threading.active_count()
    texts = [f"{demo.SENTENCE} {'really ' * (number % 5)}" for number in range(50)]
    views = [MixView(model, text, tokenizer=tokenizer) for text in texts]
    for view, text in zip(views, texts, strict=True):
        e = view.wait(60).explanation
        alone = explain(model, text, method="alti", tokenizer=tokenizer)
        np.testing.assert_allclose(e.scores, alone.scores, atol=1e-6)
    for view in views:
        view.close()
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threading.active_count() <= before
