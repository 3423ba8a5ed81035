"""The bar on stderr that says how many kernels are compiled."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

DELAY = 1.0  # seconds of compilation before it is shown
_GAP = 1.0  # seconds without compilation, after which another query compiles
_REFRESH = 0.2
_FORMAT = "compiling kernels, once: {n_fmt} of {total_fmt} |{bar:20}| {elapsed}"

Counts = Callable[[], tuple[int, int]]
"""() -> how many kernels are compiled, and how many there are to compile with these"""


class _Spent:
    """The seconds of the compilations of a query, which follow each other closely."""

    seconds, ended = 0.0, -_GAP


_SPENT = _Spent()
_hidden = 0


@contextmanager
def hidden() -> Iterator[None]:
    """Show no bar meanwhile."""
    global _hidden  # noqa: PLW0603
    _hidden += 1
    try:
        yield
    finally:
        _hidden -= 1


def is_shown() -> bool:
    """Return whether stderr is a terminal or a notebook, and the bar is not hidden."""
    if _hidden or sys.stderr is None:
        return False
    return sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel.")


@contextmanager
def shown(counts: Counts) -> Iterator[None]:
    """Show the bar during a compilation, once those of a query have taken a second."""
    started = time.monotonic()
    if started - _SPENT.ended > _GAP:
        _SPENT.seconds = 0.0
    ended, thread = Event(), None
    if is_shown():
        thread = Thread(target=_draw, args=(counts, ended, DELAY - _SPENT.seconds), daemon=True)
        thread.start()
    try:
        yield
    finally:
        ended.set()
        _SPENT.ended = time.monotonic()
        _SPENT.seconds += _SPENT.ended - started
        if thread:
            thread.join()


def _draw(counts: Counts, ended: Event, delay: float) -> None:
    if ended.wait(max(0.0, delay)):
        return
    from tqdm import tqdm

    with tqdm(bar_format=_FORMAT, leave=False, file=sys.stderr, total=1) as bar:
        while True:
            bar.n, bar.total = counts()
            bar.refresh()
            if ended.wait(_REFRESH):
                return
