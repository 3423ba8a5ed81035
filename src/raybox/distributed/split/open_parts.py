"""Parts of a scene: which of them are open in memory, and which each ray visits, nearest first."""

import shutil
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from raybox.distributed.split.partition import BOUNDS, FACTS, NUMBERS, part_folder
from raybox.errors import InvalidInput
from raybox.geometry import ObjectRows, Rows
from raybox.hits import AllHits
from raybox.io import manifest, scene_files
from raybox.io.manifest import Layout, Manifest, SceneFacts, folder_error
from raybox.scene.scene import Scene, state_of
from raybox.threads.chunks import Advance
from raybox.validation import Floats, Ints


class OpenPart(NamedTuple):
    """A part that is open.

    The scene of the part, and the numbers of its rows in the whole scene.
    """

    scene: Scene
    numbers: Ints

    @property
    def rows(self) -> Rows:
        """The rows of its primitives, as kernels read them."""
        return state_of(self.scene).part.rows


class OpenParts:
    """The parts in a folder, and those that are open.

    The least recently used is closed first.
    """

    def __init__(self, folder: Path, memory: int | None) -> None:
        self.folder, self.memory = folder, memory
        self.facts, self.corners, self.objects = _read_facts(folder)
        self._manifests = [
            _open_part(folder, part, self.facts, checksum)
            for part, checksum in enumerate(self.facts["parts"])
        ]
        if sum(part.facts["size"] for part in self._manifests) != self.facts["size"]:
            raise folder_error(folder, "has parts of another number of rows than its manifest lists")
        self.bytes = [part.bytes for part in self._manifests]
        # the identity of the files of a part when its data was checked
        self._checked: dict[int, tuple[tuple[int, ...], ...]] = {}
        self.open: OrderedDict[int, OpenPart] = OrderedDict()
        self.opened = 0  # number of times a part was opened
        self.most_bytes = 0  # largest total of parts that were open together
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
    def memory_is_short(self) -> bool:
        """Whether not all parts can be open together."""
        return self.memory is not None and sum(self.bytes) > self.memory

    def get(self, part: int) -> OpenPart:
        """Return a part; open it if it is not."""
        if part in self.open:
            self.open.move_to_end(part)
            return self.open[part]
        while self.memory is not None and self.open and self._bytes_open() + self.bytes[part] > self.memory:
            self.open.popitem(last=False)
        self.open[part] = self._map(part)
        self.opened += 1
        self.most_bytes = max(self.most_bytes, self._bytes_open())
        return self.open[part]

    def _map(self, part: int) -> OpenPart:
        """Return a part, mapped; its data is checked unless it was, and its files are the same."""
        opened = self._manifests[part]
        identity = opened.identity()
        check = self._checked.get(part) != identity
        scene = scene_files.map_scene(opened, check=check)
        numbers = opened.map(NUMBERS, Layout(np.int64, 1), check=check)
        if len(numbers) != len(scene) or (check and not _are_ascending(numbers, self.facts["size"])):
            raise folder_error(opened.folder / NUMBERS, "does not number the rows of the part")
        self._checked[part] = identity
        return OpenPart(scene, numbers)

    def _bytes_open(self) -> int:
        return sum(self.bytes[part] for part in self.open)


def check_memory(memory: int | None) -> None:
    """Raise `InvalidInput` unless memory is a number of bytes, or None."""
    if isinstance(memory, bool) or not (memory is None or hasattr(memory, "__index__")):
        raise InvalidInput(f"memory must be a whole number of bytes; got {memory!r}.")


def _read_facts(folder: Path) -> tuple[SceneFacts, Floats, ObjectRows]:
    """Return the facts of a folder, the bounds of its parts, (parts, 2, D), and the objects of its rows."""
    opened = manifest.read(folder / FACTS)
    opened.check_headers()
    corners: Floats = opened.map(BOUNDS, Layout(np.float64, 3), check=True)
    facts = opened.facts
    types = {"kind": str, "size": int, "parts": list, "dimension": int, "digest": str}
    if not all(isinstance(facts.get(name), kind) for name, kind in types.items()):
        raise folder_error(folder / FACTS, "is the manifest of no scene in parts")
    if corners.shape != (len(facts["parts"]), 2, facts["dimension"]):
        raise folder_error(folder, "has bounds of another number of parts")
    return facts, corners, scene_files.read_attributes(opened, facts["size"], check=True)


def _open_part(folder: Path, part: int, facts: SceneFacts, checksum: str) -> Manifest:
    """Return the manifest of a part; raise `FileFormatError` unless it belongs to the folder."""
    opened = scene_files.open_folder(part_folder(folder, part))
    if opened.checksum != checksum or opened.facts["kind"] != facts["kind"]:
        raise folder_error(opened.folder / scene_files.FACTS, "belongs to another scene")
    return opened


def _are_ascending(numbers: Ints, size: int) -> bool:
    """Return whether numbers of rows ascend, and are rows of the whole scene."""
    inside = not len(numbers) or (numbers[0] >= 0 and numbers[-1] < size)
    return bool(inside and (np.diff(numbers) > 0).all())


Lock = AbstractContextManager[object]
Visit = Callable[[OpenPart, Ints], None]


class Routes:
    """The parts that each ray enters, nearest first."""

    def __init__(self, entered: AllHits) -> None:
        self._part, self._entry = entered.index, entered.t
        self._next, self._end = entered.offsets[:-1].copy(), entered.offsets[1:]
        self._waiting: dict[int, list[Ints]] = {}
        self.visits = np.zeros(len(entered), np.int64)

    def visit_all(self, parts: OpenParts, lock: Lock, visit: Visit, limit: Floats, advance: Advance) -> None:
        """Visit the parts of all rays.

        A ray is done if it enters its next part after its limit.

        `visit` merges the results of a part for some rays, and may lower their limits.
        """
        advance(self._queue(np.arange(len(self.visits), dtype=np.int64), limit))
        while self._waiting:
            part = max(
                self._waiting,
                key=lambda k: (parts.memory_is_short and k in parts.open, self._waiting_rays(k)),
            )
            rays = np.sort(np.concatenate(self._waiting.pop(part)))
            with lock:
                visit(parts.get(part), rays)
            self.visits[rays] += 1
            self._next[rays] += 1
            advance(self._queue(rays, limit))

    def _waiting_rays(self, part: int) -> int:
        return sum(map(len, self._waiting[part]))

    def _queue(self, rays: Ints, limit: Floats) -> int:
        """Queue rays for their next part; return how many are done."""
        more = rays[self._next[rays] < self._end[rays]]
        more = more[self._entry[self._next[more]] <= limit[more]]
        parts = self._part[self._next[more]]
        order = np.argsort(parts, kind="stable")
        parts, more = parts[order], more[order]
        for group in np.split(more, np.flatnonzero(np.diff(parts)) + 1) if len(more) else ():
            self._waiting.setdefault(int(self._part[self._next[group[0]]]), []).append(group)
        return len(rays) - len(more)


def remove_folder(folder: Path, attributes: dict[str, object]) -> None:
    """Close the parts of a scene that is no longer used, and remove their folder."""
    attributes.clear()
    shutil.rmtree(folder, ignore_errors=True)
