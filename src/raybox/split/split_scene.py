"""`SplitScene`: a scene in parts on disk, and its queries."""

from __future__ import annotations

import os
import shutil
import traceback
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Unpack, final

import numpy as np

from raybox.bvh.build import QUALITIES, Quality
from raybox.compiler.float_environment import guard_class, in_default_environment
from raybox.compiler.fork import fork_safe_lock, only_here
from raybox.errors import FileFormatError, InvalidInput, RayboxError
from raybox.geometry import (
    Bounded,
    Boxes,
    Cull,
    Grid,
    Mesh,
    Rays,
    facing,
    row_mask,
)
from raybox.geometry.boxes import restored
from raybox.geometry.cell_bits import FULL
from raybox.geometry.file_facts import Up
from raybox.geometry.grid import of_bits
from raybox.hits.hit_ids import SceneRows, Source
from raybox.io.formats.common import missing_file, path_of
from raybox.queries.query import FileQuery, Opt, PartMerger, Public, Query, Res, RunOptions, Target
from raybox.queries.table import QUERIES, QueryMethods, file_queries
from raybox.scene.scene import Scene, check_rays
from raybox.split.open_parts import OpenCells, OpenPart, OpenParts, Routes, check_memory, remove_folder
from raybox.split.partition import TreeOptions, check_kind, divide, make_folder, part_size
from raybox.threads.chunks import bar, check_workers
from raybox.validation import Floats, Ints, MaskInput

_EMPTY: dict[str, Bounded] = {
    "boxes": Boxes(np.empty((0, 3)), np.empty((0, 3))),
    "grid": Boxes(np.empty((0, 3)), np.empty((0, 3))),
    "mesh": Mesh(np.empty((0, 3)), []),
}
"""Nothing, of the kind whose rows hits of parts carry: cells are boxes."""


@final
@guard_class("folder", "parts", "memory", "kind", "digest", "ndim_space")
class SplitScene(QueryMethods):
    """Boxes, triangles or the cells of a grid in parts on disk.

    Results equal those of one `Scene`, bit for bit, those of ``deposit(..., reproducible=True)`` included;
    other sums (`integrate`, `deposit`) are within their bounds.

    Boxes are divided along a Hilbert curve, a grid into blocks of cells: a part is a region of space, with a
    tree of its own. A ray visits the parts whose bounds it enters, nearest first, but none that it enters
    after its nearest hit. Files are mapped: pages in use are in memory, as long as there is room. When a part
    is first opened, its files are read once, to compare them with their checksums.

    Results have the ids, labels and objects of the geometry, which the folder stores.

    Parameters
    ----------
    geometry : Boxes, Mesh, Grid, or iterable of Boxes
        The primitives. Cells of a grid have their numbers. Boxes of an iterable, say of the row groups of a
        file, are numbered in their order; one item is in memory at a time, and the ids and labels of all.
    parts : int, optional
        Number of parts, of equal numbers of boxes; 8 if neither this nor `max_boxes` is given. A grid has at
        least as many: blocks of no more cells than that.
    max_boxes : int, optional
        Largest number of boxes in a part, instead: a part occupies about 100 bytes a box, and a byte a cell.
    folder : path, optional
        Where to write the parts, new or empty; `open` opens it again, on any machine that sees it. By default
        a temporary one, removed with the scene.
    memory : int, optional
        Bytes that open parts may occupy together; by default all stay open, and the system reclaims pages.
    quality, workers
        As for `Scene`; one part is built at a time.

    Raises
    ------
    InvalidInput
        If the geometry is of another type, an argument out of range, or `memory` below the largest part.
    FileFormatError
        If the folder cannot be written.

    Examples
    --------
    >>> import raybox as rb
    >>> boxes = rb.Boxes([[2, -1, -1], [5, -1, -1], [8, -1, -1]], [[3, 1, 1], [6, 1, 1], [9, 1, 1]])
    >>> scene = rb.SplitScene(boxes, max_boxes=1)
    >>> rays = rb.Rays([0, 0, 0], [[1, 0, 0], [-1, 0, 0]])
    >>> scene.nearest(rays).index, scene.occluded(rays)
    (array([ 0, -1]), array([ True, False]))
    >>> scene.visits(rays)
    array([1, 0])
    """

    def __init__(
        self,
        geometry: Bounded | Grid | Iterable[Boxes],
        *,
        parts: int | None = None,
        max_boxes: int | None = None,
        folder: str | os.PathLike[str] | None = None,
        memory: int | None = None,
        quality: Quality = "balanced",
        workers: int = -1,
    ) -> None:
        size = part_size(parts, max_boxes)
        if quality not in QUALITIES:
            raise InvalidInput(f"quality must be one of {', '.join(map(repr, QUALITIES))}; got {quality!r}.")
        trees = TreeOptions(quality, check_workers(workers))
        check_kind(geometry)
        check_memory(memory)
        path = make_folder(folder)
        if folder is None:
            weakref.finalize(self, only_here(remove_folder), path, vars(self))
        try:
            divide(geometry, path, size, trees)
        except BaseException as error:
            traceback.clear_frames(error.__traceback__)  # their maps of files, which Windows does not remove
            shutil.rmtree(path, ignore_errors=True)
            if isinstance(error, OSError):
                problem = f"cannot be written ({error.strerror or error})"
                raise FileFormatError(f"{path}: {problem}; make room, or give another folder") from error
            raise
        self._open_folder(path, memory)

    @classmethod
    def open(cls, folder: str | os.PathLike[str], *, memory: int | None = None) -> SplitScene:
        """Return the scene in a folder that an earlier `SplitScene` has written.

        Parameters
        ----------
        folder : path
            The folder given to `SplitScene`.
        memory : int, optional
            As for `SplitScene`.

        Raises
        ------
        FileFormatError
            If the folder is missing (then it is a FileNotFoundError, too), holds no whole split scene of
            this version of raybox, or a file in it is damaged.

        Examples
        --------
        >>> import raybox as rb, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> _ = rb.SplitScene(rb.Boxes([[2, -1], [5, -1]], [[3, 1], [6, 1]]), parts=2, folder=folder)
        >>> rb.SplitScene.open(folder).nearest(rb.Rays([4, 0], [1, 0])).index
        array(1)
        """
        place = path_of(folder)
        if not place.exists():
            raise missing_file(place)
        scene = object.__new__(cls)
        scene._open_folder(place, memory)
        return scene

    def _open_folder(self, folder: Path, memory: int | None) -> None:
        self._open_parts = OpenParts(folder, memory)
        self._objects = self._open_parts.objects
        edges = self._open_parts.edges
        self._like: Bounded | Grid = of_bits(edges, FULL) if edges else _EMPTY[self.kind]
        self._lock = fork_safe_lock()
        corners = self._open_parts.corners
        lower, upper = (np.ascontiguousarray(corners[:, side]) for side in (0, 1))
        self._part_bounds = Scene(restored(lower, upper), workers=1)

    @property
    def folder(self) -> Path:
        """The folder of the parts."""
        return self._open_parts.folder

    @property
    def parts(self) -> int:
        """The number of parts."""
        return len(self._open_parts)

    @property
    def memory(self) -> int | None:
        """Bytes that open parts may occupy together; None: no limit."""
        return self._open_parts.memory

    @property
    def kind(self) -> str:
        """What the scene is made of: "boxes", "mesh" or "grid"."""
        return str(self._open_parts.facts["kind"])

    @property
    def skipped(self) -> Mapping[str, int]:
        """What the reader of the geometry's file left out: counts by reason, read-only."""
        return self._objects.attributes.facts.skipped

    @property
    def units(self) -> str | None:
        """The unit of lengths of the geometry's file, as :attr:`Mesh.units`."""
        return self._objects.attributes.facts.units

    @property
    def up(self) -> Up | None:
        """The axis that is up in the geometry's file, "y" or "z"; None: not stated."""
        return self._objects.attributes.facts.up

    @property
    def digest(self) -> str:
        """A checksum of all parts: scenes of equal checksums have equal results."""
        return str(self._open_parts.facts["digest"])

    @property
    def ndim_space(self) -> int:
        """D, the dimensions of space: 2 or 3."""
        return int(self._open_parts.facts["dimension"])

    @property
    def bounds(self) -> Floats:
        """The corners of the box round everything, shape (2, D).

        +inf and -inf for an empty scene.
        """
        return self._part_bounds.bounds

    def __len__(self) -> int:
        return int(self._open_parts.facts["size"])

    def __repr__(self) -> str:
        rows = "cells" if self.kind == "grid" else self.kind
        return f"SplitScene({len(self)} {rows}, D={self.ndim_space}, {self.parts} parts)"

    def visits(self, rays: Rays, query: FileQuery = "nearest", **options: Any) -> Ints:
        """Return how many parts each ray visits: int64, of the rays' shape.

        For `nearest`, those whose bounds it enters no later than its nearest hit; for `occluded`, those up to
        its first hit; for all other queries, every part that it enters.

        Parameters
        ----------
        rays : Rays
            Of any shape, of the scene's D.
        query : {"nearest", "occluded", "count", "all", "segments", "integrate", "deposit"}
            The query.
        workers, progress, where, cull
            As for `Scene.nearest`.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.SplitScene(rb.Boxes([[2, -1], [5, -1]], [[3, 1], [6, 1]]), parts=2)
        >>> rays = rb.Rays([[0, 0], [4, 0]], [1, 0])
        >>> scene.visits(rays), scene.visits(rays, "all")
        (array([1, 1]), array([2, 1]))
        """
        if query not in file_queries():
            raise InvalidInput(f"query must be one of {', '.join(file_queries())}; got {query!r}.")
        prepared = self._prepared(QUERIES[query], rays, QUERIES[query].defaults, -1)
        _, visits = self._visit_parts(QUERIES[query], rays, prepared, **options)
        return visits.reshape(rays.shape)

    def check(self) -> None:
        """Raise `RayboxError` unless all trees are valid, and each box is in exactly one part."""
        self._part_bounds.check()
        found = np.zeros(len(self), np.int64)
        for number in range(self.parts):
            with self._lock:
                part = self._open_parts.get(number)
                part.scene.check()
                in_order = part.count_rows(found)
                inside = part.bounds == self._open_parts.corners[number]
            if not inside.all() or not in_order:
                raise RayboxError(f"part {number} of {self.folder} is damaged; split the scene again.")
        if not (found == 1).all():
            raise RayboxError(f"{self.folder} does not hold each box once; split the scene again.")

    @in_default_environment
    def _run(
        self,
        query: Query[Opt, Res, Public],
        rays: Rays,
        options: Any = None,
        **how: Unpack[RunOptions],
    ) -> Public:
        """Return the public results of a query for all rays."""
        options = self._prepared(query, rays, options, how.get("workers", -1))
        merger, _ = self._visit_parts(query, rays, options, **how)
        results, rows = merger.results()
        parts = () if rows is None else (rows,)
        scene = SceneRows(parts, sizes=(len(self),), objects=(self._objects,), picked=True)
        return query.present(results, rays.shape, Source(rays, scene), options)

    def _prepared(self, query: Query[Opt, Res, Public], rays: Rays, options: Any, workers: int) -> Any:
        """Return the options of a query, checked."""
        check_rays(rays, self.ndim_space)
        target = Target((self._like._rows(),), (len(self),), is_list=False, workers=workers)
        return query.prepare(options, rays, target) if query.prepare else options

    def _visit_parts(
        self,
        query: Query[Opt, Res, Public],
        rays: Rays,
        options: Opt,
        *,
        workers: int = -1,
        progress: bool = False,
        where: MaskInput = None,
        cull: Cull = None,
    ) -> tuple[PartMerger[Res], Ints]:
        """Visit parts until every ray has its result; return the results, and each ray's number of visits."""
        threads = check_workers(workers)
        shape = getattr(self._like, "shape", None)
        allowed = None if where is None else row_mask(where, self._objects, len(self), shape)
        facing(self._like, self._like._rows(), cull)
        flat = rays.reshape(-1)
        merger = query.part_merger(flat._rows(), _EMPTY[self.kind]._rows(), options)

        def visit(part: OpenPart | OpenCells, which: Ints) -> None:
            mask = None if allowed is None else allowed[part.numbers]
            merger.visit(part, which, {"rays": flat[which], "workers": threads, "where": mask, "cull": cull})

        routes = Routes(self._part_bounds.all(flat, workers=threads))
        with bar(len(flat), progress) as advance:
            routes.visit_all(self._open_parts, self._lock, visit, merger.limit, advance)
        return merger, routes.visits
