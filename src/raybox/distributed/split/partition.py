"""Divide boxes among parts along a Hilbert curve: neighbours in space are neighbours in a part.

Boxes are read three times, a piece at a time: to fit_curve the curve and count them by cells of it, and to
deal them out. Their rank along the curve, those of one cell in the order they came, says which part they
belong to; within a part they keep that order, so that the lowest number of a part is the lowest of the scene.
"""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from raybox.bvh.hilbert_curve import BITS, Curve, fit_curve
from raybox.errors import InvalidInput
from raybox.geometry import Boxes, Mesh
from raybox.geometry.boxes import restored
from raybox.io import scene_files
from raybox.primitives.table import bounds
from raybox.scene.scene import Scene
from raybox.validation import Floats, Ints

FACTS, BOUNDS, NUMBERS = "split.json", "bounds.npy", "numbers.npy"
_PARTS = 8  # if nobody says how many
PIECE = 1 << 20  # boxes looked at together
_SAMPLE = 1 << 16
_FINEST = 24  # bits of a cell: 16 million counts

Build = Callable[[Boxes | Mesh], Scene]


class Plan(NamedTuple):
    """Which part each box belongs to: `size` in a row along the curve."""

    curve: Curve
    shift: Any
    ends: Ints  # how many boxes the cells up to each hold
    size: int


def folder_of(folder: Path, part: int) -> Path:
    """Return where a part is kept."""
    return folder / f"part-{part:05}"


def divide(geometry: Any, folder: Path, size: Callable[[int], int], build: Build) -> None:
    """Write boxes, a mesh or pieces of boxes into a folder, in parts of `size(total)` each."""
    if isinstance(geometry, Mesh):
        total, lower, upper = len(geometry), *bounds(geometry.rows())
    elif isinstance(geometry, Boxes):
        total, lower, upper = len(geometry), geometry.lower, geometry.upper
    else:
        total, lower, upper = _spooled(geometry, folder)
    plan = _plan(lower, upper, max(1, size(total)))
    starts = list(range(0, total, plan.size))
    lengths = [min(plan.size, total - start) for start in starts]
    for part in range(len(starts)):
        folder_of(folder, part).mkdir()
    deal = _deal_mesh if isinstance(geometry, Mesh) else _deal_boxes
    deal(folder, geometry, plan, (lower, upper), lengths)
    corners = np.empty((len(starts), 2, lower.shape[1]))
    digest = blake2b(digest_size=16)
    kind = "mesh" if isinstance(geometry, Mesh) else "boxes"
    for part in range(len(starts)):
        corners[part] = _build(folder_of(folder, part), kind, build, digest)
    np.save(folder / BOUNDS, corners)
    for spool in folder.glob("spool-*"):
        spool.unlink()
    facts = {"format": scene_files.FORMAT, "kind": kind, "size": total, "parts": len(starts)}
    told = json.dumps(facts | {"dimension": lower.shape[1], "digest": digest.hexdigest()})
    (folder / FACTS).write_text(told, encoding="utf-8")


def _spooled(pieces: Iterable[Boxes], folder: Path) -> tuple[int, Floats, Floats]:
    """Write pieces to disk one behind the other, and map them."""
    total, dimension = 0, 0
    names = [folder / f"spool-{side}" for side in ("lower", "upper")]
    with names[0].open("wb") as low, names[1].open("wb") as high:
        for piece in pieces:
            if not isinstance(piece, Boxes) or dimension not in (0, piece.ndim_space):
                raise InvalidInput(
                    f"pieces of a scene must be Boxes of one D; got {piece!r}. "
                    "Give Boxes, a Mesh, or an iterable of Boxes."
                )
            piece.lower.tofile(low)
            piece.upper.tofile(high)
            total, dimension = total + len(piece), piece.ndim_space
    shape = (total, dimension or 3)
    if not total:
        return 0, np.empty(shape), np.empty(shape)
    lower, upper = (np.asarray(np.memmap(name, np.float64, "r", shape=shape)) for name in names)
    return total, lower, upper


def _pieces(lower: Floats, upper: Floats) -> Iterator[tuple[int, Floats, Floats]]:
    """Give boxes some at a time, in three dimensions."""
    for start in range(0, len(lower), PIECE):
        rows = restored(lower[start : start + PIECE], upper[start : start + PIECE]).rows()
        yield start, rows.lower, rows.upper


def _plan(lower: Floats, upper: Floats, size: int) -> Plan:
    """Lay the curve and count boxes by cells of it."""
    step = max(1, len(lower) // _SAMPLE)
    sample = restored(lower[::step].copy(), upper[::step].copy()).rows()
    curve = fit_curve(sample.lower, sample.upper)
    bits = int(np.clip(np.log2(max(1, len(lower))) + 3, 6, _FINEST))
    shift = np.uint64(BITS - bits)
    counts = np.zeros(1 << bits, np.int64)
    for _, low, high in _pieces(lower, upper):
        counts += np.bincount((curve.places(low, high) >> shift).view(np.int64), minlength=len(counts))
    return Plan(curve, shift, np.cumsum(counts), size)


def _dealt(plan: Plan, of: tuple[Floats, Floats]) -> Iterator[tuple[int, Ints]]:
    """Give parts and numbers of boxes that belong to them, in the boxes' order."""
    seen = np.concatenate([[0], plan.ends[:-1]])  # ranks that the next box of each cell gets
    for start, low, high in _pieces(*of):
        cells = (plan.curve.places(low, high) >> plan.shift).view(np.int64)
        order = np.argsort(cells, kind="stable")
        among, first, counts = np.unique(cells[order], return_index=True, return_counts=True)
        ranks = np.empty(len(cells), np.int64)
        ranks[order] = np.arange(len(cells)) - np.repeat(first, counts) + np.repeat(seen[among], counts)
        seen[among] += counts
        parts = ranks // plan.size
        order = np.argsort(parts, kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(parts[order])) + 1):
            yield int(parts[group[0]]), start + group


def _deal_boxes(folder: Path, _: Any, plan: Plan, of: tuple[Floats, Floats], lengths: list[int]) -> None:
    """Write each box into the files of its part."""
    filled = np.zeros(len(lengths), np.int64)
    shapes = {"lower": of[0].shape[1:], "upper": of[1].shape[1:], "numbers": ()}
    kinds = {"lower": np.float64, "upper": np.float64, "numbers": np.int64}
    for part, length in enumerate(lengths):
        for name, shape in shapes.items():
            path = folder_of(folder, part) / f"{name}.npy"
            np.lib.format.open_memmap(path, "w+", kinds[name], (length, *shape))
    for part, numbers in _dealt(plan, of):
        begin, end = filled[part], filled[part] + len(numbers)
        for name, given in (("lower", of[0][numbers]), ("upper", of[1][numbers]), ("numbers", numbers)):
            np.load(folder_of(folder, part) / f"{name}.npy", mmap_mode="r+")[begin:end] = given
        filled[part] = end


def _deal_mesh(folder: Path, mesh: Mesh, plan: Plan, of: tuple[Floats, Floats], lengths: list[int]) -> None:
    """Write triangles into the files of their part, with the vertices that it needs."""
    shares: list[list[Ints]] = [[] for _ in lengths]
    for part, numbers in _dealt(plan, of):
        shares[part].append(numbers)
    for part, share in enumerate(shares):
        numbers = np.concatenate(share)
        used, faces = np.unique(mesh.faces[numbers], return_inverse=True)
        place = folder_of(folder, part)
        scene_files.keep_geometry(place, Mesh(mesh.vertices[used], faces.reshape(-1, 3)))
        np.save(place / NUMBERS, numbers)


def _build(place: Path, kind: str, build: Build, digest: Any) -> Floats:
    """Build the tree of a part; return its bounds."""
    scene = build(scene_files.geometry_of(place, kind))
    scene_files.keep_tree(place, scene)
    for path in sorted(place.glob("*.npy")):
        with path.open("rb") as file:
            for data in iter(partial(file.read, PIECE), b""):
                digest.update(data)
    return scene.bounds


def size_of(parts: Any, max_boxes: Any) -> Callable[[int], int]:
    """Return what tells how many boxes a part has."""
    if parts is not None and max_boxes is not None:
        raise InvalidInput(f"give parts or max_boxes, not both; got {parts!r} and {max_boxes!r}.")
    name, value = ("max_boxes", max_boxes) if parts is None and max_boxes is not None else ("parts", parts)
    value = _PARTS if value is None else value
    if isinstance(value, bool) or not hasattr(value, "__index__") or int(value) < 1:
        raise InvalidInput(f"{name} must be a whole number, at least 1; got {value!r}.")
    return (lambda total: -(-total // int(value))) if name == "parts" else (lambda _: int(value))


def make_folder(folder: Any) -> Path:
    """Return a folder that is new, or empty; a temporary one if none is given."""
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="raybox-split-"))
    return scene_files.new_folder(folder, "give another folder, or take up what is there: SplitScene.open")
