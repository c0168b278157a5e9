"""`benchmark`: methods against metrics over datasets, in units of work that can run anywhere."""

from .evaluate import benchmark, cheap_methods
from .examples import column_of, rows_of_file
from .running import WorkerLostError

__all__ = ["WorkerLostError", "benchmark", "cheap_methods", "column_of", "rows_of_file"]
