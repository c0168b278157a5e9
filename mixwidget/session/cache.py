"""What has been computed, kept while it fits."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Hashable
from typing import Any


class ByteCache:
    """Values with a size in bytes; those used longest ago go first. Safe on any thread.

    `pinned` keys stay whatever their size: what is on the screen must not vanish.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._pinned: frozenset[Hashable] = frozenset()
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        with self._lock:
            return sum(size for _, size in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def get(self, key: Hashable) -> Any:
        """The value, now the one used last; None if it is not there."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key][0]

    def put(self, key: Hashable, value: Any, nbytes: int) -> None:
        """Keep a value, or change its size; others may have to go."""
        with self._lock:
            self._entries[key] = value, nbytes
            self._entries.move_to_end(key)
            self._shrink(key)

    def drop(self, key: Hashable) -> None:
        with self._lock:
            self._entries.pop(key, None)

    def pin(self, keys: Collection[Hashable]) -> None:
        with self._lock:
            self._pinned = frozenset(keys)
            self._shrink(None)

    def trim(self) -> None:
        """Keep only what is pinned."""
        with self._lock:
            for key in [key for key in self._entries if key not in self._pinned]:
                del self._entries[key]

    def _shrink(self, newest: Hashable) -> None:
        total = sum(size for _, size in self._entries.values())
        for key in list(self._entries):
            if total <= self.limit:
                return
            if key not in self._pinned and key != newest:
                total -= self._entries.pop(key)[1]
