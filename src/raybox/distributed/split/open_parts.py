"""Parts of a scene: which of them a ray has to see, nearest first, and which are open in memory."""

import json
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from raybox.distributed.split.partition import BOUNDS, FACTS, NUMBERS, folder_of
from raybox.errors import InvalidInput, RayboxError
from raybox.hits.hits import AllHits
from raybox.io import scene_files
from raybox.scene.scene import Scene, state_of
from raybox.validation import Floats, Ints


class Part(NamedTuple):
    """A part that is open: its scene, and the numbers its rows have in the whole."""

    scene: Scene
    numbers: Ints

    @property
    def rows(self) -> Any:
        """The rows of its primitives, as kernels read them."""
        return state_of(self.scene)[0].rows


class OpenParts:
    """The parts in a folder, and those that are open; the one not asked for longest is closed first."""

    def __init__(self, folder: Path, memory: int | None) -> None:
        self.folder, self.memory = folder, memory
        self.facts, self.corners = _told(folder)
        self.bytes = [scene_files.size_of(folder_of(folder, part)) for part in range(len(self.corners))]
        self.open: OrderedDict[int, Part] = OrderedDict()
        self.opened = 0  # how often a part was opened
        self.most = 0  # bytes of the parts that were open together, at most
        check_memory(memory)
        largest = max(self.bytes, default=0)
        if memory is not None and memory < largest:
            raise InvalidInput(
                f"memory must hold the largest part, {largest:,} bytes; got {memory:,}. "
                "Split the scene into more parts."
            )

    def __len__(self) -> int:
        return len(self.corners)

    @property
    def scarce(self) -> bool:
        """Whether not all parts can be open together."""
        return self.memory is not None and sum(self.bytes) > self.memory

    def take(self, part: int) -> Part:
        """Return a part, open."""
        if part in self.open:
            self.open.move_to_end(part)
            return self.open[part]
        while self.memory is not None and self.open and self._held() + self.bytes[part] > self.memory:
            self.open.popitem(last=False)
        place = folder_of(self.folder, part)
        try:
            numbers = scene_files.mapped(place / NUMBERS)
        except (OSError, ValueError) as error:
            raise scene_files.refused(place, f"cannot be read ({error})") from error
        self.open[part] = Part(scene_files.found(place), numbers)
        self.opened += 1
        self.most = max(self.most, self._held())
        return self.open[part]

    def _held(self) -> int:
        return sum(self.bytes[part] for part in self.open)


def check_memory(memory: Any) -> None:
    """Raise `InvalidInput` unless memory is a number of bytes, or None."""
    if isinstance(memory, bool) or not (memory is None or hasattr(memory, "__index__")):
        raise InvalidInput(f"memory must be a whole number of bytes; got {memory!r}.")


def _told(folder: Path) -> tuple[dict[str, Any], Floats]:
    """Read what a folder holds."""
    try:
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        if facts["format"] != scene_files.FORMAT:
            raise scene_files.refused(folder, "was written by another version of raybox")
        corners: Floats = np.load(folder / BOUNDS, allow_pickle=False)
        if len(corners) != facts["parts"]:
            raise scene_files.refused(folder, "holds no whole split scene")
    except RayboxError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise scene_files.refused(
            folder, f"holds no whole split scene ({type(error).__name__}: {error})"
        ) from error
    return facts, corners


Visit = Callable[[Part, Ints], None]
Advance = Callable[[int], Any]


class Routes:
    """The ways of rays through the parts."""

    def __init__(self, entered: AllHits) -> None:
        self._part, self._entry = entered.index, entered.t
        self._next, self._end = entered.offsets[:-1].copy(), entered.offsets[1:]
        self._waiting: dict[int, list[Ints]] = {}
        self.visits = np.zeros(len(entered), np.int64)

    def go(self, parts: OpenParts, lock: Any, visit: Visit, limit: Floats, advance: Advance) -> None:
        """Have each ray visit its parts; it is done where the next one is entered later than its limit.

        `visit` asks a part for some rays, and may lower their limits.
        """
        advance(self._queue(np.arange(len(self.visits)), limit))
        while self._waiting:
            part = max(self._waiting, key=lambda k: (parts.scarce and k in parts.open, self._crowd(k)))
            rays = np.sort(np.concatenate(self._waiting.pop(part)))
            with lock:
                visit(parts.take(part), rays)
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
