"""Parts of a scene: which of them are open in memory, and which each ray visits, nearest first."""

import shutil
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from raybox.errors import InvalidInput
from raybox.geometry import Grid, ObjectRows, Rows
from raybox.geometry.boxes import restored as boxes_of
from raybox.geometry.grid_cells import bounds_of
from raybox.hits import AllHits
from raybox.io import manifest, scene_files
from raybox.io.manifest import Layout, Manifest, SceneFacts, folder_error
from raybox.queries.merge import pick_rows
from raybox.scene.scene import Scene, state_of
from raybox.split.grid_blocks import Block, find_block, in_whole
from raybox.split.partition import BOUNDS, FACTS, NUMBERS, part_folder
from raybox.threads.chunks import Advance
from raybox.validation import Floats, Ints


class OpenPart(NamedTuple):
    """A part of boxes or triangles that is open.

    The scene of the part, and the numbers of its rows in the whole scene.
    """

    scene: Scene
    numbers: Ints

    @property
    def bounds(self) -> Floats:
        """The corners of the part, (2, D)."""
        return self.scene.bounds

    def in_whole(self, index: Ints) -> Ints:
        """Return the numbers that rows of the part have in the whole."""
        return self.numbers[index]

    def rows_of(self, index: Ints) -> Rows:
        """Return some rows, as kernels read them."""
        rows: Rows = pick_rows(state_of(self.scene).part.rows, index)
        return rows

    def count_rows(self, found: Ints) -> bool:
        """Add 1 for each row of the part; return whether their numbers ascend."""
        np.add.at(found, self.numbers, 1)
        return bool((np.diff(self.numbers) > 0).all())


class OpenCells(NamedTuple):
    """A part of a grid that is open: the scene of the whole grid, in which other cells are empty."""

    scene: Scene
    block: Block

    @property
    def numbers(self) -> "slice[None, None, None]":
        """All cells: they are numbered as in the whole."""
        return slice(None)

    @property
    def bounds(self) -> Floats:
        """The corners of the part, (2, D)."""
        edges = zip(self.scene.geometry.edges, self.block, strict=True)
        return np.array([[axis[cells.start], axis[cells.stop]] for axis, cells in edges]).T

    def in_whole(self, index: Ints) -> Ints:
        """Return the numbers of cells, which are those in the whole."""
        return index

    def rows_of(self, index: Ints) -> Rows:
        """Return some cells as boxes."""
        grid: Grid = self.scene.geometry
        return boxes_of(*bounds_of(grid.edges, np.unravel_index(index, grid.shape)))._rows()

    def count_rows(self, found: Ints) -> bool:
        """Add 1 for each cell of the part; return True, for a block is in order."""
        found.reshape(self.scene.geometry.shape)[self.block] += 1
        return True


class OpenParts:
    """The parts in a folder, and those that are open.

    The least recently used is closed first.
    """

    def __init__(self, folder: Path, memory: int | None) -> None:
        self.folder, self.memory = folder, memory
        self.facts, self.corners, self.objects, self.edges = _read_facts(folder)
        self._manifests = [
            _open_part(folder, part, self.facts, checksum)
            for part, checksum in enumerate(self.facts["parts"])
        ]
        if sum(part.facts["size"] for part in self._manifests) != self.facts["size"]:
            raise folder_error(folder, "has parts of another number of rows than its manifest lists")
        self.bytes = [part.bytes for part in self._manifests]
        # the identity of the files of a part when its data was checked
        self._checked: dict[int, tuple[tuple[int, ...], ...]] = {}
        self.open: OrderedDict[int, OpenPart | OpenCells] = OrderedDict()
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

    def get(self, part: int) -> OpenPart | OpenCells:
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

    def _map(self, part: int) -> OpenPart | OpenCells:
        """Return a part, mapped; its data is checked unless it was, and its files are the same."""
        opened = self._manifests[part]
        identity = opened.identity()
        check = self._checked.get(part) != identity
        made = self._map_cells(opened, check) if self.edges else self._map_rows(opened, check)
        self._checked[part] = identity
        return made

    def _map_rows(self, opened: Manifest, check: bool) -> OpenPart:
        scene = scene_files.map_scene(opened, check=check)
        numbers = opened.map(NUMBERS, Layout(np.int64, 1), check=check)
        if len(numbers) != len(scene) or (check and not _are_ascending(numbers, self.facts["size"])):
            raise folder_error(opened.folder / NUMBERS, "does not number the rows of the part")
        return OpenPart(scene, numbers)

    def _map_cells(self, opened: Manifest, check: bool) -> OpenCells:
        part = scene_files.map_grid(opened, check=check)
        block = find_block(part, self.edges)
        if block is None:
            raise folder_error(opened.folder, "holds no block of the grid")
        return OpenCells(Scene(in_whole(part, self.edges, block)), block)

    def _bytes_open(self) -> int:
        return sum(self.bytes[part] for part in self.open)


def check_memory(memory: int | None) -> None:
    """Raise `InvalidInput` unless memory is a number of bytes, or None."""
    if isinstance(memory, bool) or not (memory is None or hasattr(memory, "__index__")):
        raise InvalidInput(f"memory must be a whole number of bytes; got {memory!r}.")


class WholeFacts(NamedTuple):
    """What a folder says about the whole scene."""

    facts: SceneFacts
    corners: Floats
    """the bounds of the parts, (parts, 2, D)"""
    objects: ObjectRows
    edges: tuple[Floats, ...]
    """those of a grid; empty for boxes and triangles"""


def _read_facts(folder: Path) -> WholeFacts:
    """Return the facts of a folder, checked."""
    opened = manifest.read(folder / FACTS)
    opened.check_headers()
    corners: Floats = opened.map(BOUNDS, Layout(np.float64, 3), check=True)
    facts = opened.facts
    types = {"kind": str, "size": int, "parts": list, "dimension": int, "digest": str}
    if not all(isinstance(facts.get(name), kind) for name, kind in types.items()):
        raise folder_error(folder / FACTS, "is the manifest of no scene in parts")
    if corners.shape != (len(facts["parts"]), 2, facts["dimension"]):
        raise folder_error(folder, "has bounds of another number of parts")
    edges: tuple[Floats, ...] = ()
    if facts["kind"] == "grid":
        edges = scene_files.map_edges(opened, facts["dimension"], facts["size"], check=True)
    objects = scene_files.read_attributes(opened, facts["size"], check=True)
    return WholeFacts(facts, corners, objects, edges)


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
Visit = Callable[[OpenPart | OpenCells, Ints], None]


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
