"""The list of kernels that a library has: a line for each entry point and the kinds of its arguments."""

import re
from collections.abc import Iterable
from pathlib import Path

from raybox.compiler.jit.lines import expanded
from raybox.compiler.kinds import without_marks

_ARRAY = re.compile(r"(:\d)(r?)")


def read(path: Path) -> list[str]:
    """Return the lines of a list."""
    return expanded(path.read_text(encoding="utf-8"))


def merge(lines: Iterable[str]) -> list[str]:
    """Return lines, sorted, without those that differ from others in marks of read-only arrays alone.

    Machine code is the same for these. The line that stays marks each array that is marked in any: where
    Numba compiles it, the kernel is proven not to write to that array.
    """
    merged: dict[str, list[str]] = {}
    for line in lines:
        marks = [mark for _, mark in _ARRAY.findall(line)]
        known = merged.setdefault(without_marks(line), marks)
        known[:] = map(max, known, marks)
    return sorted(map(_marked, merged, merged.values()))


def _marked(line: str, marks: list[str]) -> str:
    left = iter(marks)
    return _ARRAY.sub(lambda found: found[1] + next(left), line)
