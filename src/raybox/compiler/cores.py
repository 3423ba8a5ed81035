"""How many cores a process may use: its affinity, and the limit that a container sets.

The limit is that of Linux control groups, versions 1 and 2.
"""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


def cores() -> int:
    """Return how many threads this process may run at once, by its affinity and its control group."""
    if hasattr(os, "sched_getaffinity"):
        number = len(os.sched_getaffinity(0))
    else:
        number = getattr(os, "process_cpu_count", os.cpu_count)() or 1
    limit = cpu_limit()
    return number if limit is None else min(number, limit)


@cache
def cpu_limit() -> int | None:
    """Return how many cores the control groups of this process allow; None without a limit."""
    return read_limit(_GROUPS, _OWN)


def read_limit(groups: Path, own: Path) -> int | None:
    """Return the least limit of a group and those above it, in whole cores, rounded up.

    groups: where the control groups are mounted; own: the file that lists those of the process.
    """
    limits = [limit for folder in _folders(groups, own) if (limit := _limit_of(folder)) is not None]
    return min(limits, default=None)


def _folders(groups: Path, own: Path) -> Iterator[Path]:
    """Yield the folders of the process's groups, and of those above them.

    A container may see only its own group, mounted in place of the topmost one.
    """
    for line in _text_of(own).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        mounts = [groups / controllers, groups / "cpu"] if controllers else [groups]
        parts = [part for part in path.split("/") if part not in ("", "..")]
        for mount in mounts:
            yield from (mount.joinpath(*parts[:k]) for k in range(len(parts), -1, -1))


def _limit_of(folder: Path) -> int | None:
    """Return the cores that one group may use; None without a limit."""
    words = _text_of(folder / "cpu.max").split()  # version 2
    if not words:
        words = [_text_of(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
    if len(words) != 2 or not all(word.isdecimal() and int(word) for word in words):
        return None  # "max", "-1" or no such file
    quota, period = map(int, words)
    return -(-quota // period)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""
