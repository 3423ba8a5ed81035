"""`intersect`: rays against primitives row by row, no tree."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from raybox.compiler.float_environment import in_default_environment
from raybox.errors import InvalidInput
from raybox.geometry import BoxRows, Cull, Geometry, PrimitiveRows, RayRows, Rays, facing, object_rows
from raybox.hits import Hits
from raybox.hits.hit_ids import SceneRows, Source
from raybox.primitives import box_pairs
from raybox.primitives.exact_table import rows_of
from raybox.primitives.pairs import Pairing, intersect_pairs
from raybox.primitives.status import UNDECIDED_INDEX
from raybox.threads.chunks import check_workers, run_chunks
from raybox.validation import Floats, Ints, freeze

_MIN_ALL_PAIRS = 1 << 15  # pairs for which boxes are put in blocks (0.2 ms)
_MIN_ALL_PAIRS_SHORT = 1 << 11  # the same, for fewer boxes than a vector has lanes
_LANES = 8  # pairs that are decided at a time
_MIN_SHARED = 1 << 16  # fewer pairs are done before threads are started or a progress bar is drawn
_MIN_RUN = 512  # shorter lists of boxes are repeated, for longer runs
_MIN_SPLIT = 1024  # with more boxes, even a thousand rays are split among threads
_PARTS = 16  # a ray then counts as so many units of a chunk


class _How(NamedTuple):
    """How chunks of pairs are run."""

    workers: int
    progress: bool


class _PairTask(NamedTuple):
    """Pairs of rays and rows, and their results."""

    rays: RayRows
    rows: PrimitiveRows
    pairing: Pairing
    index: Ints  # type: ignore[assignment]  # not the method of tuples
    t: Floats

    @property
    def boxes(self) -> BoxRows:
        """The rows of a geometry of boxes."""
        assert isinstance(self.rows, BoxRows)
        return self.rows


@in_default_environment
def intersect(
    rays: Rays, geometry: Geometry, *, cull: Cull = None, workers: int = -1, progress: bool = False
) -> Hits:
    """Return where rays hit boxes, planes or triangles, pair by pair.

    The rays' shape is broadcast against ``(M,)``: row against row, one against many, or, with
    ``rays[..., None]``, every ray against every primitive. For many rays and many boxes, `raybox.Scene` is
    faster. No memory is used but that of the result: 16 bytes a pair.

    Parameters
    ----------
    rays : Rays
        Of any shape.
    geometry : Boxes, Planes or Mesh
        M rows of the same D as the rays.
    cull : None or "back"
        "back" (planes and meshes) drops rays that come from behind, along the normal: n . d >= 0. The
        normal of a triangle is (b - a) x (c - a): from the front its corners run counterclockwise.
    workers : int
        Threads; -1 for all cores. The result does not depend on it.
    progress : bool
        Show a progress bar on stderr when it takes long.

    Returns
    -------
    Hits
        Of the broadcast shape; index is the row of the primitive that is hit, -1 for a miss.

    Raises
    ------
    InvalidInput
        If shapes do not broadcast, D differs, or ``cull`` is unknown.

    Notes
    -----
    Slab method: Kay and Kajiya 1986; decided exactly, see `raybox.exact.predicate`. A ray that lies in
    a plane, or in a triangle's, has no single crossing and is a miss.

    Examples
    --------
    >>> import raybox as rb
    >>> rays = rb.Rays([[0, 0], [5, 0]], [1, 0])
    >>> hits = rb.intersect(rays, rb.Boxes([2, -1], [3, 1]))
    >>> hits.hit, hits.t
    (array([ True, False]), array([ 2., inf]))
    """
    rows = _check(rays, geometry)
    check_workers(workers)
    shape = _shape(rays, len(geometry))
    total = prod(shape)
    last = rays.shape[-1] if rays.shape else 1
    row = last if len(rays.shape) > 1 else 0
    rows = facing(geometry, rows, cull)
    scene = SceneRows((rows,), objects=(object_rows(geometry),))
    source = Source(rays, scene, max(shape[-1], 1), row, int(last > 1))
    index, t = np.empty(total, np.int64), np.empty(total)
    step = int(len(geometry) != 1)
    pairing = Pairing(source.inner, source.row, source.column, step)
    task = _PairTask(rays._rows(), rows, pairing, index, t)
    _run_kernels(task, _How(workers, progress))
    return Hits(index.reshape(shape), t.reshape(shape), source)


def _check(rays: object, geometry: Geometry) -> PrimitiveRows:
    """Return the rows of a geometry; refuse arguments of wrong types or dimensions."""
    if not isinstance(rays, Rays):
        raise InvalidInput(
            f"rays must be raybox.Rays; got {type(rays).__name__}. Make some: Rays(origins, directions)."
        )
    rows: PrimitiveRows | None = rows_of(geometry)
    if rows is None:
        raise InvalidInput(
            f"geometry must be Boxes, Planes or Mesh; got {type(geometry).__name__}. "
            "Make some: Boxes(lower, upper)."
        )
    if rays.ndim_space != geometry.ndim_space:
        raise InvalidInput(
            f"rays and geometry must have the same dimensions; got D = {rays.ndim_space} "
            f"and D = {geometry.ndim_space}. Add or drop a coordinate."
        )
    return rows


def _shape(rays: Rays, rows: int) -> tuple[int, ...]:
    """Return the broadcast shape of rays and rows."""
    if rays.shape[-1:] == (rows,):
        return rays.shape  # the most common case: NumPy would take 2 us
    try:
        return np.broadcast_shapes(rays.shape, (rows,))
    except ValueError as error:
        raise InvalidInput(
            f"rays of shape {rays.shape} do not broadcast against {rows} rows. "
            "Pass equal lengths for row against row, or rays[..., None] for all pairs."
        ) from error


def _run_kernels(task: _PairTask, how: _How) -> None:
    """Write the results of pairs by compiled loops."""
    if isinstance(task.rows, BoxRows) and task.index.size >= _LANES:
        _run_box_kernels(task, how)
        return

    def work(begin: int, end: int) -> None:
        intersect_pairs(task.rays, task.rows, task.pairing, (begin, end), task.index, task.t)

    run_chunks(work, task.index.size, **how._asdict())


def _run_box_kernels(task: _PairTask, how: _How) -> None:
    """Write the results of many pairs with boxes: in runs, or in blocks for every ray with every box."""
    inner, row, column, step = task.pairing
    total = task.index.size
    if step == 0:
        task = task._replace(pairing=Pairing(total, 0, 1, 0))
    elif row and not column and total >= (_MIN_ALL_PAIRS if inner >= _LANES else _MIN_ALL_PAIRS_SHORT):
        _run_all_pairs(task, how)
        return
    elif row and column and inner < _MIN_RUN:
        _run_repeated(task, how)
        return
    if total < _MIN_SHARED:
        _decide_span(task, 0, total)
        return
    run_chunks(lambda begin, end: _decide_span(task, begin, end), total, **how._asdict())


def _decide_span(task: _PairTask, begin: int, end: int) -> None:
    """Write the results of a span of pairs, in runs of one ray, one box, or neighbours in both."""
    work = box_pairs.make_work(task.rays, task.boxes, task.pairing)
    if box_pairs.decide_runs(work, (begin, end), task.index, task.t):
        _decide_undecided(task, begin, end)


def _decide_undecided(task: _PairTask, begin: int, end: int) -> None:
    """Decide the undecided pairs of a span exactly."""
    which = begin + np.flatnonzero(task.index[begin:end] == UNDECIDED_INDEX)
    work = box_pairs.make_work(task.rays, task.boxes, task.pairing)
    box_pairs.decide_undecided(work, which, task.index, task.t)


def _run_repeated(task: _PairTask, how: _How) -> None:
    """Write the results of rays, row against row with boxes that are repeated for longer runs."""
    box_count = task.pairing.inner
    times = _MIN_RUN // box_count
    repeated = BoxRows(*(np.tile(corner, (times, 1)) for corner in task.boxes))
    freeze(*repeated)
    task = task._replace(rows=repeated, pairing=Pairing(times * box_count, times * box_count, 1, 1))

    def work(begin: int, end: int) -> None:
        _decide_span(task, begin, end)
        part = task.index[begin:end]
        np.remainder(part, box_count, out=part, where=part >= 0)

    run_chunks(work, task.index.size, **how._asdict())


def _run_all_pairs(task: _PairTask, how: _How) -> None:
    """Write the results of every ray with every box."""
    from raybox.scene import all_pairs

    rays, index, t, box_count = task.rays, task.index, task.t, task.pairing.inner
    boxes = all_pairs.make_task(rays, task.boxes)
    parts = _PARTS if box_count > _MIN_SPLIT else 1

    def work(begin: int, end: int) -> None:
        begin, end = -(-begin // parts), -(-end // parts)
        if begin == end:
            return
        index[begin * box_count : end * box_count], t[begin * box_count : end * box_count] = -1, np.inf
        out = all_pairs.make_results(end - begin, index, t)
        all_pairs.intersect_all_pairs(boxes, (begin, end), all_pairs.make_workspace(), out)
        if out.undecided_count[0]:
            _decide_undecided(task, begin * box_count, end * box_count)
        for ray in out.single_rays[: out.single_count[0]].tolist():
            _decide_span(task, ray * box_count, (ray + 1) * box_count)

    run_chunks(work, len(rays.directions) * parts, **how._asdict())
