"""Divide boxes among parts along a Hilbert curve: neighbours in space are neighbours in a part.

Boxes are read three times, a block at a time: to fit the curve, to count them by its cells, and to write
them. A box's rank along the curve (within a cell, its number) decides its part. Within a part, boxes stay in
the order of their numbers, so that ties resolve as in the whole scene.
"""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from raybox.bvh.build import Quality
from raybox.bvh.hilbert_curve import BITS, Curve, fit_curve
from raybox.errors import InvalidInput
from raybox.geometry import Bounded, Boxes, Grid, Mesh
from raybox.geometry.boxes import restored
from raybox.geometry.labels import Attributes, joined_attributes
from raybox.io import manifest, scene_files
from raybox.primitives.table import bounds
from raybox.scene.scene import Scene
from raybox.split.grid_blocks import block_of, blocks_of
from raybox.store.checksum import Checksum
from raybox.validation import Floats, Ints

FACTS, BOUNDS, NUMBERS = "split.json", "bounds.npy", "numbers.npy"
_PARTS = 8  # by default
BLOCK_BOXES = 1 << 20  # boxes that are in memory together
_SAMPLE = 1 << 16  # boxes to which the curve is fitted
_FINEST = 24  # bits of a cell: 16 million counts


class TreeOptions(NamedTuple):
    """How the trees of parts are built."""

    quality: Quality
    workers: int

    def build(self, geometry: Boxes | Mesh) -> Scene:
        """Return the scene of a part."""
        return Scene(geometry, quality=self.quality, workers=self.workers)


Assigned = Iterator[tuple[int, Ints]]
"""Parts, and the numbers of some boxes in them."""


class Partition(NamedTuple):
    """Which part each box belongs to.

    `size` boxes in a row along the curve.
    """

    curve: Curve
    shift: np.uint64
    ends: Ints
    """The number of boxes in each cell and all before it."""
    size: int


def part_folder(folder: Path, part: int) -> Path:
    """Return the folder of a part."""
    return folder / f"part-{part:05}"


class PartFacts(NamedTuple):
    """The bounds of a part, (2, D), and the checksum of its manifest."""

    corners: Floats
    checksum: str


def divide(
    geometry: Bounded | Grid | Iterable[Boxes], folder: Path, size: Callable[[int], int], trees: TreeOptions
) -> None:
    """Write a geometry, or an iterable of boxes, into a folder, in parts of up to `size(total)` rows each."""
    if not isinstance(geometry, Boxes | Mesh | Grid):
        geometry = _spool(geometry, folder)
    names = scene_files.write_attributes(folder, geometry)
    facts: manifest.SceneFacts = {"size": len(geometry)}
    digest = Checksum()
    if isinstance(geometry, Grid):
        facts |= {"kind": "grid", "dimension": geometry.ndim_space}
        names += scene_files.write_edges(folder, geometry)
        parts = _divide_grid(geometry, folder, max(1, size(len(geometry))), trees, digest)
    else:
        kind = "mesh" if isinstance(geometry, Mesh) else "boxes"
        facts |= {"kind": kind, "dimension": geometry.ndim_space}
        count = _write_parts(geometry, folder, max(1, size(len(geometry))))
        del geometry  # views of spool files, which Windows does not remove while mapped
        parts = [_build(part_folder(folder, part), kind, trees, digest) for part in range(count)]
    corners = [part.corners for part in parts]
    np.save(folder / BOUNDS, np.array(corners).reshape(-1, 2, facts["dimension"]))
    for spool in folder.glob("spool-*"):
        spool.unlink()
    facts |= {"parts": [part.checksum for part in parts], "digest": digest.text()}
    manifest.write(folder / FACTS, facts, [BOUNDS, *names])


def _write_parts(geometry: Bounded, folder: Path, size: int) -> int:
    """Write boxes or triangles to the folders of their parts; return how many there are."""
    if isinstance(geometry, Boxes):
        lower, upper = geometry.lower, geometry.upper
    else:
        lower, upper = bounds(geometry._rows())
    partition = _plan(lower, upper, size)
    lengths = [min(size, len(lower) - start) for start in range(0, len(lower), size)]
    for part in range(len(lengths)):
        part_folder(folder, part).mkdir()
    assigned = _assign(partition, lower, upper)
    if isinstance(geometry, Mesh):
        _write_mesh(folder, geometry, assigned, len(lengths))
    else:
        _write_boxes(folder, lower, upper, assigned, lengths)
    return len(lengths)


def _divide_grid(
    grid: Grid, folder: Path, size: int, trees: TreeOptions, digest: Checksum
) -> list[PartFacts]:
    """Write each block of a grid's cells into the folder of its part."""
    parts = []
    for number, block in enumerate(blocks_of(grid.shape, size)):
        place, part = part_folder(folder, number), block_of(grid, block)
        place.mkdir()
        checksum = scene_files.write_grid(place, part, trees.quality)
        _update(digest, place)
        parts.append(PartFacts(part.bounds, checksum))
    return parts


def _spool(blocks: Iterable[Boxes], folder: Path) -> Boxes:
    """Write boxes to disk one behind the other; return them, mapped, with ids and labels."""
    counts, dimension, attributes = list[int](), 0, list[Attributes]()
    names = [folder / f"spool-{side}" for side in ("lower", "upper")]
    with names[0].open("wb") as low, names[1].open("wb") as high:
        for block in blocks:
            if not isinstance(block, Boxes) or dimension not in (0, block.ndim_space):
                raise InvalidInput(
                    f"every item of an iterable must be Boxes of one D; got {block!r}. "
                    "Give Boxes, a Mesh, or an iterable of Boxes."
                )
            block.lower.tofile(low)
            block.upper.tofile(high)
            dimension = block.ndim_space
            counts.append(len(block))
            attributes.append(block._attributes)
    shape = (sum(counts), dimension or 3)
    joined = joined_attributes(attributes, counts)
    if not shape[0]:
        return restored(np.empty(shape), np.empty(shape), joined)
    lower, upper = (np.asarray(np.memmap(name, np.float64, "r", shape=shape)) for name in names)
    return restored(lower, upper, joined)


def _blocks(lower: Floats, upper: Floats) -> Iterator[tuple[int, Floats, Floats]]:
    """Yield the number of the first box and the bounds of each block, in three dimensions."""
    for start in range(0, len(lower), BLOCK_BOXES):
        rows = restored(lower[start : start + BLOCK_BOXES], upper[start : start + BLOCK_BOXES])._rows()
        yield start, rows.lower, rows.upper


def _plan(lower: Floats, upper: Floats, size: int) -> Partition:
    """Fit the curve, and count the boxes in its cells."""
    step = max(1, len(lower) // _SAMPLE)
    sample = restored(lower[::step].copy(), upper[::step].copy())._rows()
    curve = fit_curve(sample.lower, sample.upper)
    bits = min(max(len(lower).bit_length() + 2, 6), _FINEST)
    shift = np.uint64(BITS - bits)
    counts = np.zeros(1 << bits, np.int64)
    for _, low, high in _blocks(lower, upper):
        counts += np.bincount((curve.places(low, high) >> shift).view(np.int64), minlength=len(counts))
    return Partition(curve, shift, np.cumsum(counts), size)


def _assign(partition: Partition, lower: Floats, upper: Floats) -> Assigned:
    """Yield parts and the numbers of boxes in them.

    Each part's numbers ascend.
    """
    next_rank = np.concatenate([[0], partition.ends[:-1]])  # of each cell: the rank of its next box
    for start, low, high in _blocks(lower, upper):
        cells = (partition.curve.places(low, high) >> partition.shift).view(np.int64)
        order = np.argsort(cells, kind="stable")
        among, first, counts = np.unique(cells[order], return_index=True, return_counts=True)
        ranks = np.empty(len(cells), np.int64)
        ranks[order] = np.arange(len(cells)) - np.repeat(first, counts) + np.repeat(next_rank[among], counts)
        next_rank[among] += counts
        parts = ranks // partition.size
        order = np.argsort(parts, kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(parts[order])) + 1):
            yield int(parts[group[0]]), start + group


def _write_boxes(folder: Path, lower: Floats, upper: Floats, assigned: Assigned, lengths: list[int]) -> None:
    """Write each box to the files of its part."""
    filled = np.zeros(len(lengths), np.int64)
    shapes = {"lower": lower.shape[1:], "upper": upper.shape[1:], "numbers": ()}
    kinds = {"lower": np.float64, "upper": np.float64, "numbers": np.int64}
    for part, length in enumerate(lengths):
        for name, shape in shapes.items():
            path = part_folder(folder, part) / f"{name}.npy"
            np.lib.format.open_memmap(path, "w+", kinds[name], (length, *shape))
    for part, numbers in assigned:
        begin, end = filled[part], filled[part] + len(numbers)
        for name, values in (("lower", lower[numbers]), ("upper", upper[numbers]), ("numbers", numbers)):
            np.load(part_folder(folder, part) / f"{name}.npy", mmap_mode="r+")[begin:end] = values
        filled[part] = end


def _write_mesh(folder: Path, mesh: Mesh, assigned: Assigned, parts: int) -> None:
    """Write each triangle to the files of its part, with the vertices that the part uses."""
    by_part: list[list[Ints]] = [[] for _ in range(parts)]
    for part, numbers in assigned:
        by_part[part].append(numbers)
    for part, of_part in enumerate(by_part):
        numbers = np.concatenate(of_part)
        used, faces = np.unique(mesh.faces[numbers], return_inverse=True)
        place = part_folder(folder, part)
        scene_files.write_geometry(place, Mesh(mesh.vertices[used], faces.reshape(-1, 3)))
        np.save(place / NUMBERS, numbers)


def _build(place: Path, kind: str, trees: TreeOptions, digest: Checksum) -> PartFacts:
    """Build the tree of a part, and update the digest."""
    scene = trees.build(scene_files.read_geometry(place, kind))
    checksum = scene_files.write_tree(place, scene)
    _update(digest, place)
    return PartFacts(scene.bounds, checksum)


def _update(digest: Checksum, place: Path) -> None:
    """Update a digest by all arrays of a folder."""
    for path in sorted(place.glob("*.npy")):
        with path.open("rb") as file:
            for data in iter(partial(file.read, BLOCK_BOXES), b""):
                digest.update(data)


def part_size(parts: int | None, max_boxes: int | None) -> Callable[[int], int]:
    """Return a function from the number of boxes to that of a part."""
    if parts is not None and max_boxes is not None:
        raise InvalidInput(f"give parts or max_boxes, not both; got {parts!r} and {max_boxes!r}.")
    name, value = ("max_boxes", max_boxes) if parts is None and max_boxes is not None else ("parts", parts)
    value = _PARTS if value is None else value
    if isinstance(value, bool) or not hasattr(value, "__index__") or int(value) < 1:
        raise InvalidInput(f"{name} must be a whole number, at least 1; got {value!r}.")
    return (lambda total: -(-total // int(value))) if name == "parts" else (lambda _: int(value))


def make_folder(folder: str | os.PathLike[str] | None) -> Path:
    """Return a folder that is new, or empty.

    A temporary one if none is given.
    """
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="raybox-split-"))
    return scene_files.new_folder(folder, "give another folder, or open what is there: SplitScene.open")


def check_kind(geometry: object) -> None:
    """Raise `InvalidInput` for a geometry that is not split."""
    if not isinstance(geometry, Boxes | Mesh | Grid | Iterable):
        raise InvalidInput(
            "a SplitScene is made of Boxes, a Mesh, a Grid or an iterable of Boxes; got "
            f"{type(geometry).__name__}. Make boxes of it, or a Scene."
        )
