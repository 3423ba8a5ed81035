"""Call a function when Numba first compiles in this process."""

from collections.abc import Callable
from typing import Any

from numba.core import event


class _FirstCompilation(event.Listener):
    def __init__(self, announce: Callable[[], None]) -> None:
        self._announce = announce
        self._announced = False

    def on_start(self, event: Any) -> None:
        """Announce the first compilation."""
        if not self._announced:
            self._announced = True
            self._announce()

    def on_end(self, event: Any) -> None:
        """Do nothing: Numba calls both methods."""


def on_first_compilation(announce: Callable[[], None]) -> None:
    """Register a function that is called once, before Numba first compiles."""
    event.register("numba:compile", _FirstCompilation(announce))
