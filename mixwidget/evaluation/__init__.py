"""`benchmark`: methods against metrics over datasets, in units of work that can run anywhere."""

from .evaluate import benchmark, cheap_methods
from .examples import column_of, rows_of_file
from .running import WorkerLostError
from .studied import Study
from .studying import study

__all__ = [
    "Study",
    "WorkerLostError",
    "benchmark",
    "cheap_methods",
    "column_of",
    "rows_of_file",
    "study",
]
