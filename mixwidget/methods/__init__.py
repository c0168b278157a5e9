"""The methods, one module per family. The registry finds them by importing these modules.

Calling this package, `mixwidget.methods()`, gives the registry as a table: the package and
the public function share a name, and importing a package puts it over any function.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from .catalogue import methods
from .context_cite import logits_of, removals
from .defined import check_defined
from .formulas import formula_lines, mathml
from .head_masks import head_masks
from .ids import MethodId, Options
from .masks import HeadMasks
from .recommended import first_choices, recommended
from .registry import ONE_BACK, Method, all_methods, get_method
from .run import Run

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "ONE_BACK",
    "HeadMasks",
    "Method",
    "MethodId",
    "Options",
    "Run",
    "all_methods",
    "check_defined",
    "first_choices",
    "formula_lines",
    "get_method",
    "head_masks",
    "logits_of",
    "mathml",
    "methods",
    "recommended",
    "removals",
]


class _CallablePackage(ModuleType):
    def __call__(self) -> pd.DataFrame:
        return methods()


sys.modules[__name__].__class__ = _CallablePackage
