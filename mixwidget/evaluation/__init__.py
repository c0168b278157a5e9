"""`benchmark`: methods against metrics over datasets, in units of work that can run anywhere."""

from .evaluate import WorkerLostError, benchmark, cheap_methods

__all__ = ["WorkerLostError", "benchmark", "cheap_methods"]
