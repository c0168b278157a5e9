"""The registry as a table, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .registry import all_methods

if TYPE_CHECKING:
    import pandas as pd


def methods() -> pd.DataFrame:
    """Every method: id, title, family, what it yields and needs, paper, formula, options."""
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
            "measures": entry.measures,
            "formula": entry.formula,
            "ignores": entry.ignores,
            "options": ", ".join(f"{param.name}={param.default!r}" for param in entry.params),
        }
        for entry in all_methods()
    ]
    return pd.DataFrame(rows)
