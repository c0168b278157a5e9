"""The examples in the docstrings of the public functions: each of them has one, and it holds."""

from __future__ import annotations

import doctest
import inspect
from importlib import import_module

import pytest

import mixwidget

PUBLIC = {
    "benchmark": mixwidget.benchmark,
    "demo.load": mixwidget.demo.load,
    "explain": mixwidget.explain,
    "explain_frame": mixwidget.explain_frame,
    "head_masks": mixwidget.head_masks,
    "methods": mixwidget.methods.catalogue.methods,
    "mixing_ratios": mixwidget.mixing_ratios,
    "plot_agreement": mixwidget.plot_agreement,
    "plot_curves": mixwidget.plot_curves,
    "plot_layers": mixwidget.plot_layers,
    "register_family": mixwidget.register_family,
    "stream": mixwidget.stream,
    "study": mixwidget.study,
}


def test_these_are_the_public_functions() -> None:
    named = {name for name in mixwidget.__all__ if inspect.isfunction(getattr(mixwidget, name))}
    assert named <= set(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_the_example_holds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "head_masks":
        pytest.importorskip("spacy", reason="spaCy is an optional extra")
    known = import_module("mixwidget.models.families")._FAMILIES
    monkeypatch.setitem(known, "my_model", None)  # gone again afterwards
    function = PUBLIC[name]
    (found,) = doctest.DocTestFinder(recurse=False).find(function, name, globs={})
    assert found.examples, f"{name} has no example"
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(optionflags=flags)
    told: list[str] = []
    runner.run(found, out=told.append)
    assert not runner.failures, "".join(told)
