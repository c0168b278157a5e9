"""`make bench`: every measurement there is."""

from __future__ import annotations

from benchmarks import metrics, speed

speed.main()
metrics.main([])
