"""Which parts a ray has to see: those whose bounds it enters, nearest first, as long as they can matter.

A part's bounds hold its boxes, so no box of it is met before they are entered; and rounding is monotone. So
where the next part is entered at a later reported time than a ray's last contact that counts, the ray is
done. Rays that wait for one part are asked together, and the part that most wait for is asked next; where not
all can be open, one that is.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from raybox.hits import AllHits
from raybox.split.shelf import Part, Shelf
from raybox.validate import Floats, Ints

Visit = Callable[[Part, Ints], None]
Advance = Callable[[int], Any]


class Routes:
    """The ways of rays through the parts."""

    def __init__(self, entered: AllHits) -> None:
        self._part, self._entry = entered.index, entered.t
        self._next, self._end = entered.offsets[:-1].copy(), entered.offsets[1:]
        self._waiting: dict[int, list[Ints]] = {}
        self.visits = np.zeros(len(entered), np.int64)

    def go(self, shelf: Shelf, lock: Any, visit: Visit, limit: Floats, advance: Advance) -> None:
        """Have each ray visit its parts; it is done where the next one is entered later than its limit.

        `visit` asks a part for some rays, and may lower their limits.
        """
        advance(self._queue(np.arange(len(self.visits)), limit))
        while self._waiting:
            part = max(self._waiting, key=lambda k: (shelf.scarce and k in shelf.open, self._crowd(k)))
            rays = np.sort(np.concatenate(self._waiting.pop(part)))
            with lock:
                visit(shelf.take(part), rays)
            self.visits[rays] += 1
            self._next[rays] += 1
            advance(self._queue(rays, limit))

    def _crowd(self, part: int) -> int:
        return sum(map(len, self._waiting[part]))

    def _queue(self, rays: Ints, limit: Floats) -> int:
        """Let rays wait for their next part; return how many are done."""
        more = rays[self._next[rays] < self._end[rays]]
        more = more[self._entry[self._next[more]] <= limit[more]]
        parts = self._part[self._next[more]]
        order = np.argsort(parts, kind="stable")
        parts, more = parts[order], more[order]
        for group in np.split(more, np.flatnonzero(np.diff(parts)) + 1) if len(more) else ():
            self._waiting.setdefault(int(self._part[self._next[group[0]]]), []).append(group)
        return len(rays) - len(more)
