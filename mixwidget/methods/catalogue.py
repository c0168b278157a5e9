"""The registry as a table, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .registry import Method, all_methods

if TYPE_CHECKING:
    import pandas as pd


def methods() -> pd.DataFrame:
    """Every method: id, title, family, what it yields and needs, paper, BibTeX, formula, options.

    >>> from mixwidget import methods
    >>> methods().set_index("id").loc["alti", "year"].item()
    2022
    """
    import pandas as pd

    rows = [
        {
            "id": entry.id,
            "title": entry.title,
            "family": entry.family,
            "yields": entry.yields,
            "needs": ", ".join(entry.needs),
            "signed": entry.signed,
            "class_specific": entry.class_specific,
            "paper": entry.paper,
            "year": entry.year,
            "link": entry.link,
            "bibtex": bibtex(entry),
            "measures": entry.measures,
            "formula": entry.formula,
            "ignores": entry.ignores,
            "options": ", ".join(f"{param.name}={param.default!r}" for param in entry.params),
        }
        for entry in all_methods()
    ]
    return pd.DataFrame(rows)


def bibtex(entry: Method) -> str:
    """The paper of a method as a BibTeX entry; empty for one that has none."""
    authors, colon, title = entry.paper.partition(": ")
    if not colon or not entry.link:
        return ""
    names = authors.replace(" et al.", " and others")
    return (
        f"@misc{{{entry.id}{entry.year},\n  author = {{{names}}},\n  title = {{{{{title}}}}},\n"
        f"  year = {{{entry.year}}},\n  url = {{{entry.link}}},\n}}"
    )
