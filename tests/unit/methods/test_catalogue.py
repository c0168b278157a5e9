"""The table of methods for people: papers to cite, ids that editors complete, citing mixwidget."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import get_args, get_type_hints
from xml.etree import ElementTree

import mixwidget
from mixwidget import methods
from mixwidget.methods import MethodId, Options, all_methods, formula_lines

ROOT = Path(__file__).resolve().parents[3]


def test_every_paper_has_its_bibtex() -> None:
    table = methods().set_index("id")
    for entry in all_methods():
        text = table.loc[entry.id, "bibtex"]
        if not entry.link or ": " not in entry.paper:
            assert text == ""
            continue
        assert text.count("{") == text.count("}")
        assert f"year = {{{entry.year}}}" in text
        assert f"url = {{{entry.link}}}" in text
        assert "et al." not in text.partition("title =")[0]
    given = table.loc[table["bibtex"] != "", "bibtex"]
    keys = [re.match(r"@misc\{(\w+),", text).group(1) for text in given]  # type: ignore[union-attr]
    assert len(set(keys)) == len(keys) > 20


def test_the_citation_names_the_version() -> None:
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"version: {mixwidget.__version__}\n" in text
    assert "cff-version: 1.2.0" in text


def test_editors_complete_every_id() -> None:
    own = [entry.id for entry in all_methods() if entry.run.__module__.startswith("mixwidget.")]
    assert list(get_args(MethodId)) == own
    for function in (mixwidget.explain, mixwidget.stream, mixwidget.explain_frame):
        assert "MethodId" in function.__annotations__["method"]


def test_editors_complete_every_option() -> None:
    own = [entry for entry in all_methods() if entry.run.__module__.startswith("mixwidget.")]
    params = [param for entry in own for param in entry.params]
    known = get_type_hints(Options)
    named = inspect.signature(mixwidget.explain).parameters
    assert set(known) == {param.name for param in params} - set(named)
    for param in params:
        of = get_args(known.get(param.name))
        if param.choices and not isinstance(param.default, bool):
            assert set(param.choices) <= set(of), param.name


def test_every_method_says_what_its_scores_are() -> None:
    says = {one.id: one.says for one in all_methods()}
    wanted = {
        "alti": "made", "globenc": "made", "raw_attention": "attention", "gae": "weight",
        "gradient_x_input": "slope", "attcat": "adds", "shapley": "adds",
        "blank_out": "removal", "random": "nothing",
    }  # fmt: skip
    assert wanted.items() <= says.items()
    for one in all_methods():
        assert one.signed == (one.says in ("adds", "removal")), one.id


def test_every_formula_becomes_mathml() -> None:
    for entry in all_methods():
        if not entry.run.__module__.startswith("mixwidget."):
            continue
        lines = formula_lines(entry.formula)
        assert lines, entry.id
        for line in lines:
            tree = ElementTree.fromstring(line)
            assert tree.tag.endswith("}math")
            assert "\\" not in "".join(tree.itertext()), f"{entry.id}: TeX is left over"
    assert len(formula_lines(r"M = W, \quad R^l = M^l R^{l-1}")) == 2


def test_a_formula_that_cannot_be_read_stays_as_it_is_written() -> None:
    assert formula_lines("x_") == ()
    assert formula_lines("") == ()
    for words in ("<img src=x onerror=alert(1)>", '<img src="x"/>', "</mtext><script/>"):
        assert formula_lines(rf"\text{{{words}}}") == ()
