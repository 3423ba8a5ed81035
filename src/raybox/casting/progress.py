"""The bar of a cast on stderr."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Progress:
    """Rays that are done, shown on a bar if there is one."""

    def __init__(self, bar: Any = None) -> None:
        self._bar = bar

    def skip(self, rays: int) -> None:
        """Count rays that were done before, which do not count for the rate."""
        if self._bar is not None:
            self._bar.initial = self._bar.n = rays

    def advance(self, rays: int, fraction: float | None) -> None:
        """Count rays; fraction: of the file that is done, if the number of its rays is unknown."""
        if self._bar is None:
            return
        if fraction:  # the number of rays is estimated from the bytes read
            self._bar.total = max(self._bar.n + rays, round((self._bar.n + rays) / fraction))
        self._bar.update(rays)


@contextmanager
def progress(total: int | None, shown: bool) -> Iterator[Progress]:
    """Show a bar on stderr with the rate and the time left, after half a second of work.

    total: the number of rays; None: unknown.
    """
    if not shown:
        yield Progress()
        return
    from tqdm import tqdm

    with tqdm(total=total, unit=" rays", unit_scale=True, delay=0.5) as bar:
        yield Progress(bar)
