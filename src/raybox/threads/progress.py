"""Progress bars on stderr, after half a second."""

from types import TracebackType
from typing import Any


class HiddenBar:
    """Counts like a bar, and shows nothing.

    A hidden bar of tqdm would wait for the lock of its bars, which a process shares with its children: one
    that is killed meanwhile never frees it.
    """

    def __init__(self, total: int | None) -> None:
        self.total, self.n, self.initial = total, 0, 0

    def update(self, count: int) -> None:
        """Count more."""
        self.n += count

    def __enter__(self) -> "HiddenBar":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


def progress_bar(unit: str, total: int | None = None, *, shown: bool = False) -> Any:
    """Return a bar of tqdm with the rate and the time left, or a hidden one; total: None if unknown."""
    if not shown:
        return HiddenBar(total)
    from tqdm import tqdm

    return tqdm(total=total, unit=f" {unit}", unit_scale=True, delay=0.5)
