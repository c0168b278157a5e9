"""A method of one's own takes a dozen lines, may be defined anew, and reaches worker processes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest

from mixwidget import benchmark, demo, explain, methods
from mixwidget.errors import InputError
from mixwidget.methods import get_method
from mixwidget.methods.registry import forget, method

CELL = '''
from mixwidget.methods.registry import method

@method("last_half")
def last_half(run, *, share: float = 0.5):
    """How much the second half of the heads attends.

    More words."""
    for layer in run.layers():
        weights = run.trace.weights(layer)
        yield run.part(layer, map=weights[int(len(weights) * share):].mean(0))
'''


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    yield
    for id in ("last_half", "from_a_module"):
        forget(id)
    sys.modules.pop("tests.lib.own_method", None)


def test_a_dozen_lines() -> None:
    assert len(CELL.strip().splitlines()) <= 12
    exec(CELL, {"__name__": "__main__"})
    e = explain(demo.load()[0], "not bad", "last_half", share=0.25)
    assert e.params == {"share": 0.25}
    row = methods().set_index("id").loc["last_half"]
    assert row["title"] == "Last half"
    assert row["measures"] == "How much the second half of the heads attends."
    assert row["options"] == "share=0.5"
    assert not any(str(cell) == "" for cell in (row["paper"], row["year"], row["needs"]))
    e.plot("text")
    e._repr_html_()


def test_a_cell_that_runs_again_replaces_it_with_a_note(caplog: pytest.LogCaptureFixture) -> None:
    exec(CELL, {"__name__": "__main__"})
    assert not caplog.records
    exec(CELL.replace("0.5", "0.75"), {"__name__": "__main__"})
    assert "'last_half' is defined anew" in caplog.text
    assert get_method("last_half").params[0].default == 0.75


def test_ids_of_others_are_refused() -> None:
    exec(CELL, {"__name__": "__main__"})
    for id, owner in (("alti", "mixwidget.methods.alti"), ("last_half", "__main__")):
        with pytest.raises(InputError, match=f"already registered, by {owner}"):
            method(id)(lambda run: iter(()))
    assert get_method("alti").title == "ALTI"


def test_a_module_path_imports_the_method() -> None:
    model = demo.load()[0]
    e = explain(model, "not bad", "tests.lib.own_method:from_a_module")
    assert e.method == "from_a_module"
    np.testing.assert_allclose(e.maps, explain(model, "not bad", "raw_attention").maps, atol=1e-6)
    with pytest.raises(InputError, match="'no_such_module' of a method cannot be imported"):
        get_method("no_such_module:x")


@pytest.mark.slow
def test_a_spawned_worker_knows_it() -> None:
    model, tokenizer = demo.load()
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        table: Any = benchmark(
            model,
            ["not bad"],
            ["tests.lib.own_method:from_a_module"],
            ["comprehensiveness"],
            pool,
            tokenizer=tokenizer,
            progress=False,
        )
    assert table["n"].tolist()[0] == 1, table.to_string()
