"""The bar of a cast on stderr."""

from collections.abc import Iterator
from contextlib import contextmanager

from raybox.cast.engine import Advance


@contextmanager
def progress(total: int | None, shown: bool) -> Iterator[Advance]:
    """Show a bar on stderr with the rate and the time left, after half a second of work.

    total: the number of rays; None: unknown.
    """
    if not shown:
        yield lambda _rays, _fraction: None
        return
    from tqdm import tqdm

    with tqdm(total=total, unit=" rays", unit_scale=True, delay=0.5) as bar:

        def advance(rays: int, fraction: float | None) -> None:
            if fraction:  # the number of rays is not known: it is estimated from the bytes read
                bar.total = max(bar.n + rays, round((bar.n + rays) / fraction))
            bar.update(rays)

        yield advance
