"""`intersect`: rays against primitives row by row, no tree."""

import sys
from collections.abc import Iterable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from raybox.compiler.float_environment import in_default_environment
from raybox.errors import InvalidInput
from raybox.geometry import BoxRows, Cull, Geometry, RayRows, Rays, facing
from raybox.hits import Hits
from raybox.hits.hit_ids import Source
from raybox.primitives import small_batch
from raybox.primitives.exact_table import rows_of
from raybox.primitives.status import UNDECIDED_INDEX
from raybox.threads.chunks import check_workers, run_chunks
from raybox.validation import Floats, Ints, freeze

_SWEPT = 1 << 15  # pairs for which laying boxes out for a sweep pays (it takes 0.2 ms)
_SWEPT_SHORT = 1 << 11  # the same, for fewer boxes than are decided at a time otherwise
_SHORT = 8  # pairs that are decided at a time
_ALONE = 1 << 16  # pairs that are done sooner than threads are started, or a bar drawn
_LENGTH = 512  # pairs of a run, where few boxes are repeated
_SHARED = 1024  # boxes from which on a thousand rays are work for several threads
_PARTS = 16


class _Asked(NamedTuple):
    """Pairs, answers; k is ray ``k // inner * row + k % inner * column`` with ``k % inner * step``."""

    rays: RayRows
    rows: Any
    pairing: tuple[int, int, int, int]  # inner, row, column, step
    index: Ints  # type: ignore[assignment]  # of tuples, where nobody looks for it
    t: Floats


@in_default_environment
def intersect(
    rays: Rays, geometry: Geometry, *, cull: Cull = None, workers: int = -1, progress: bool = False
) -> Hits:
    """Tell where rays meet boxes, planes or triangles, pair by pair.

    The rays' shape is broadcast against ``(M,)``: row against row, one against many, or, with
    ``rays[..., None]``, every ray against every primitive. A question about many rays and many boxes
    is answered faster by `raybox.Scene`; this answers about pairs, in no memory but the answer's
    (16 bytes a pair).

    Parameters
    ----------
    rays : Rays
        Of any shape.
    geometry : Boxes, Planes or Mesh
        M rows of the same D as the rays.
    cull : None or "back"
        "back" (planes and meshes) drops rays that come from behind, along the normal: n . d >= 0. A
        triangle's is (b - a) x (c - a): its corners run counterclockwise for whom it is not culled.
    workers : int
        Threads; -1 for all cores. The answer does not depend on it.
    progress : bool
        Show a bar on stderr when it takes long.

    Returns
    -------
    Hits
        Of the broadcast shape; index is the row of the primitive met, -1 for a miss.

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
    source = Source(rays, (rows,), (0,), max(shape[-1], 1), row, int(last > 1))
    index, t = np.empty(total, np.int64), np.empty(total)
    step = int(len(geometry) != 1)
    asked = _Asked(rays.rows(), rows, (source.inner, source.row, source.column, step), index, t)
    if small_batch.is_small(rows, total) and not _is_ready(rows, total):
        _by_hand(asked, range(total))
    else:
        _by_kernel(asked, workers=workers, progress=progress)
    return Hits(index.reshape(shape), t.reshape(shape), source)


def _check(rays: Any, geometry: Any) -> Any:
    """Return the rows of a geometry; refuse what cannot be asked."""
    if not isinstance(rays, Rays):
        raise InvalidInput(
            f"rays must be raybox.Rays; got {type(rays).__name__}. Make some: Rays(origins, directions)."
        )
    rows = rows_of(geometry)
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
    """Return the shape of the answer."""
    if rays.shape[-1:] == (rows,):
        return rays.shape  # the most asked for: NumPy takes 2 us
    try:
        return np.broadcast_shapes(rays.shape, (rows,))
    except ValueError as error:
        raise InvalidInput(
            f"rays of shape {rays.shape} do not broadcast against {rows} rows. "
            "Ask row by row with equal lengths, or all pairs with rays[..., None]."
        ) from error


def _is_ready(rows: Any, total: int) -> bool:
    """Tell whether a compiled loop for these few pairs is at hand: from eight on it is faster."""
    return total >= _SHORT and isinstance(rows, BoxRows) and "raybox.primitives.box_pairs" in sys.modules


def _by_hand(asked: _Asked, which: Iterable[int]) -> None:
    """Do a handful of pairs in rational arithmetic."""
    inner, row, column, step = asked.pairing
    for k in which:
        ray, i = k // inner * row + k % inner * column, k % inner * step
        met = small_batch.first_contact(asked.rows, small_batch.ray_at(asked.rays, ray), i)
        asked.index[k], asked.t[k] = (-1, np.inf) if met is None else (i, met.crossing.t)


def _by_kernel(asked: _Asked, **how: Any) -> None:
    """Do many pairs in compiled loops."""
    from raybox.primitives import pairs

    if isinstance(asked.rows, BoxRows):
        _boxes_by_kernel(asked, **how)
        return
    pairing = pairs.Pairing(*asked.pairing)

    def work(begin: int, end: int) -> None:
        pairs.intersect_pairs(asked.rays, asked.rows, pairing, (begin, end), asked.index, asked.t)

    run_chunks(work, asked.index.size, **how)


def _boxes_by_kernel(asked: _Asked, **how: Any) -> None:
    """Do many pairs with boxes: eight pairs at a time, or, when all rays meet all boxes, in a sweep."""
    inner, row, column, step = asked.pairing
    total = asked.index.size
    if step == 0:
        asked = asked._replace(pairing=(total, 0, 1, 0))
    elif row and not column and total >= (_SWEPT if inner >= _SHORT else _SWEPT_SHORT):
        _sweep(asked, **how)
        return
    elif row and column and inner < _LENGTH:
        _repeat(asked, **how)
        return
    if total < _ALONE:
        _decide(asked, 0, total)
        return
    run_chunks(lambda begin, end: _decide(asked, begin, end), total, **how)


def _decide(asked: _Asked, begin: int, end: int) -> None:
    """Do a span of pairs, in runs of one ray, one box, or neighbours in both."""
    from raybox.primitives import box_pairs

    work = box_pairs.make_work(asked.rays, asked.rows, asked.pairing)
    if box_pairs.decide_runs(work, (begin, end), asked.index, asked.t):
        _settle(asked, begin, end)


def _settle(asked: _Asked, begin: int, end: int) -> None:
    """Decide exactly the pairs of a span for which floats could not tell."""
    from raybox.primitives import box_pairs

    which = begin + np.flatnonzero(asked.index[begin:end] == UNDECIDED_INDEX)
    if which.size <= small_batch.MAX_PAIRS:  # the exact kernel takes seconds to compile the first time
        _by_hand(asked, which.tolist())
    else:
        work = box_pairs.make_work(asked.rays, asked.rows, asked.pairing)
        box_pairs.decide_undecided(work, which, asked.index, asked.t)


def _repeat(asked: _Asked, **how: Any) -> None:
    """Do many rays, row against row with few boxes, as if there were more boxes: runs are then longer."""
    number = asked.pairing[0]
    times = _LENGTH // number
    longer = BoxRows(*(np.tile(corner, (times, 1)) for corner in asked.rows))
    freeze(*longer)
    asked = asked._replace(rows=longer, pairing=(times * number, times * number, 1, 1))

    def work(begin: int, end: int) -> None:
        _decide(asked, begin, end)
        part = asked.index[begin:end]
        np.remainder(part, number, out=part, where=part >= 0)

    run_chunks(work, asked.index.size, **how)


def _sweep(asked: _Asked, **how: Any) -> None:
    """Do every ray with every box."""
    from raybox.scene import all_pairs

    rays, rows, (number, *_), index, t = asked
    task = all_pairs.make_task(rays, rows)
    parts = _PARTS if number > _SHARED else 1  # chunks are of so many parts of a ray

    def work(begin: int, end: int) -> None:
        begin, end = -(-begin // parts), -(-end // parts)
        if begin == end:
            return
        index[begin * number : end * number], t[begin * number : end * number] = -1, np.inf
        out = all_pairs.make_results(end - begin, index, t)
        all_pairs.intersect_all_pairs(task, (begin, end), all_pairs.make_workspace(), out)
        if out.state[0]:
            _settle(asked, begin * number, end * number)
        for ray in out.single_rays[: out.state[1]].tolist():
            _decide(asked, ray * number, (ray + 1) * number)

    run_chunks(work, len(rays.origins) * parts, **how)
