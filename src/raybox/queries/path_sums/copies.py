"""Sums of primitives that several threads add to: a copy for each thread, or one that they share."""

from math import prod
from typing import Any

from raybox.compiler import huge_pages

MAX_COPIED = 1 << 20  # numbers: larger sums are shared, and added to atomically


class Copies:
    """Zeroed arrays, as many as threads use at once."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, threads: int) -> None:
        self._shape, self._dtype = shape, dtype
        self.shared = threads > 1 and prod(shape) > MAX_COPIED
        self._all = [self._make()]
        self._free = list(self._all)

    def _make(self) -> Any:
        return huge_pages.zeros(self._shape, self._dtype)

    def take(self) -> Any:
        """Return an array that no other thread has, or the one that all share."""
        if self.shared:
            return self._all[0]
        try:
            return self._free.pop()
        except IndexError:
            made = self._make()
            self._all.append(made)
            return made

    def put_back(self, memory: Any) -> None:
        """Store an array for the next chunk of rays."""
        if not self.shared:
            self._free.append(memory)

    def total(self) -> Any:
        """Return the sum of all arrays, added in the order in which they were made."""
        total, *others = self._all
        for other in others:
            total += other
        return total
