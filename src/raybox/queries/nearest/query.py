"""`nearest`: the first hit of each ray; of several at exactly the same t, the lowest index."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple, Never

import numpy as np

from raybox.compiler.decorators import device, inlined, yes
from raybox.compiler.entry_points import entry
from raybox.geometry import Cull, RayRows, Rays, Rows
from raybox.hits import Hits
from raybox.hits.hit_ids import Source
from raybox.hits.tables import part_columns
from raybox.primitives.instance_ray import AnyRay
from raybox.primitives.ray import origin_row
from raybox.primitives.table import intersect
from raybox.queries.columns import ChunkResults, Columns, Scratch, Sparse, hit_dtypes
from raybox.queries.exact_fallback import OrderedHits
from raybox.queries.hit_sorting import is_before
from raybox.queries.merge import (
    comes_before,
)
from raybox.queries.nearest import packet, stream
from raybox.queries.nearest.stream import NearestRecorder
from raybox.queries.per_ray import PerRay, ResultArray
from raybox.queries.query import (
    FileColumns,
    Query,
    Request,
    RunOne,
    RunsQueries,
    refuse_more,
)
from raybox.queries.scheduler import run
from raybox.traversal.protocol import ExactHooks
from raybox.validation import Bools, Floats, Ints, MaskInput


@entry
def points_of(rays: RayRows, t: Floats, hit: Bools, points: tuple[Floats, ...]) -> int:
    """Write the points of first hits side by side; return how many there are.

    points: an array for each axis, in a tuple, over which loops are unrolled (two thirds of the time). A
    direction of zero stays, at any t.
    """
    at = 0
    for i in range(hit.size):
        origin = origin_row(rays, i)
        for k in range(
            len(points)
        ):  # of a miss, too, in the place of the next one: no branch is mispredicted
            step = rays.directions[i, k]
            points[k][at] = rays.origins[origin, k] + (0.0 if step == 0.0 else t[i] * step)
        at += hit[i]
    return at


class NearestResults(NamedTuple):
    """The first hit of each ray; index -1 and t +inf for a miss."""

    index: Ints  # type: ignore[assignment]  # not the method of tuples
    t: Floats


class ExactNearest(NamedTuple):
    """The first hit in the single-ray traversal: of all rays, or of one."""

    index: Ints  # type: ignore[assignment]  # not the method of tuples
    t: Floats


@device
def _start(recorder: ExactNearest, k: int) -> ExactNearest:
    return ExactNearest(recorder.index[k : k + 1], recorder.t[k : k + 1])


@inlined
def _resolve(recorder: ExactNearest, rows: Rows, ray: AnyRay, i: int) -> float:
    hit, t = intersect(rows, ray, i)
    j = recorder.index[0]
    if hit and (j < 0 or is_before(rows, ray, (i, t), (j, recorder.t[0]))):
        recorder.index[0] = i
        recorder.t[0] = t
    return recorder.t[0]


def _recorder(results: NearestResults, _size: int, _options: None) -> NearestRecorder:
    return tuple.__new__(NearestRecorder, results)  # in a third of the time of the class itself


def _write_hits(results: NearestResults, hits: OrderedHits) -> None:
    first = (hits.index[0], hits.t[0]) if hits.index.size else (-1, np.inf)
    results.index[hits.ray], results.t[hits.ray] = first


PER_RAY = PerRay(
    results=NearestResults,
    arrays=(ResultArray(np.int64, -1), ResultArray(np.float64, np.inf)),
    recorder=_recorder,
    exact_recorder=lambda results: ExactNearest(*results),
    write_hits=_write_hits,
    group_widths=(1, 4, 4, 4),
    grains=12.0,  # streams are as fast at 10 to 13; of voxels at 7, of fine meshes at 17
    triangle_grains=16.0,
)


def merge_geometries(
    request: Request, run_one: RunOne[None, NearestResults], _options: None
) -> NearestResults:
    """Return the first hits with several geometries."""
    first, *others = request.jobs
    index, t = run_one(first, request.rays)
    for job, start in zip(others, request.starts[1:], strict=True):
        # what comes after a hit that was found does not matter; its exact time may be half a unit later
        with np.errstate(over="ignore"):  # of a hit at the largest float
            ends = np.minimum(request.rays.t_max, np.nextafter(t, np.inf))
        ends.flags.writeable = False
        other, t_other = run_one(job, request.rays._replace(t_max=ends))
        found = other >= 0
        other[found] += start
        tied = np.flatnonzero(found & (index >= 0) & (t_other == t))
        found[tied] = [comes_before(request, int(k), int(other[k]), int(index[k])) for k in tied]
        found &= ~((index >= 0) & (t_other > t))
        index[found], t[found] = other[found], t_other[found]
    return NearestResults(index, t)


def _present(results: NearestResults, shape: tuple[int, ...], source: Source, _options: None) -> Hits:
    index, t = results
    if len(shape) != 1:
        index, t = index.reshape(shape), t.reshape(shape)
    return Hits(index, t, source)


def _chunks(
    scene: Any, rays: Rays, first: int, workers: int, where: MaskInput = None
) -> Iterator[ChunkResults]:
    hits = scene.nearest(rays, workers=workers, where=where)
    yield ChunkResults(int(np.count_nonzero(hits.hit)), partial(_columns, rays, hits, first))


def _columns(rays: Rays, hits: Hits, first: int, scratch: Scratch) -> Columns:
    """Lay out hits bit for bit, but column by column."""
    index, t, hit = hits.index, hits.t, hits.hit
    if len(scratch.get("points", [()])[0]) < len(t):
        scratch["points"] = np.empty((rays.ndim_space, len(t)))
    found = points_of(rays._rows(), t, hit, tuple(scratch["points"]))
    points = (Sparse(hit, numbers[:found]) for numbers in scratch["points"])
    columns: Columns = {"ray": range(first, first + len(t)), "index": index, "t": t}
    return columns | part_columns(hits._source, hits) | dict(zip("xyz", points, strict=False))


QUERY = Query(
    name="nearest",
    hooks=(
        stream.HOOKS,
        packet.HOOKS,
        ExactHooks(ExactNearest, _resolve, _start, takes_turns=yes, first_only=yes),
    ),
    run=partial(run, PER_RAY),
    merge_geometries=merge_geometries,
    present=_present,
    columns=FileColumns(lambda dimension, ids: hit_dtypes(ids, "xyz"[:dimension]), _chunks),
)


class NearestMethod(RunsQueries):
    """Gives a scene its method `nearest`."""

    def nearest(
        self,
        rays: Rays,
        *more: Never,
        workers: int = -1,
        progress: bool = False,
        where: MaskInput = None,
        cull: Cull = None,
    ) -> Hits:
        """Return the first hit of each ray.

        Parameters
        ----------
        rays : Rays
            Of any shape, of the scene's D.
        workers : int
            Threads; -1 for all cores.
        progress : bool
            Show a bar on stderr when it takes long.
        where : array_like of bool, shape (len(scene),), or str, optional
            Which primitives may be hit. Of `Instances`, a bool for each copy; of a `Grid`, a bool for each
            cell, in its shape or flat; of objects of a mesh, ``keep[mesh.objects]``. A str is an expression
            of labels, such as ``"ifc_class != 'IfcSpace' and storey in ('1', '2')"``: comparisons, ``in``,
            ``and``, ``or``, ``not``, names (in backquotes where they are no identifiers), constants, and ids
            as ``id``. A comparison with a missing value is False. Of several geometries: a list, with a
            mask, an expression or None for each, or one expression for all.
        cull : None or "back"
            "back" ignores hits from behind: of triangles along (b - a) x (c - a), of planes along their
            normal. Boxes have no such side.

        Raises
        ------
        InvalidInput
            If rays or masks do not fit; of an expression with the place in it, as where a label is missing or
            text is compared with numbers.

        Returns
        -------
        Hits
            Of the rays' shape. Of several first hits at exactly the same t: the lowest index; the lowest
            (geometry, index, primitive).

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([[2, -1], [5, -1]], [[3, 1], [6, 1]]))
        >>> scene.nearest(rb.Rays([0, 0], [1, 0])).t
        array(2.)
        >>> scene.nearest(rb.Rays([0, 0], [1, 0]), where=[False, True]).index
        array(1)
        >>> labels = {"kind": ["door", "wall"]}
        >>> scene = rb.Scene(rb.Boxes([[2, -1], [5, -1]], [[3, 1], [6, 1]], labels=labels))
        >>> scene.nearest(rb.Rays([0, 0], [1, 0]), where="kind == 'wall'").index
        array(1)
        """
        refuse_more(more, "nearest")
        return self._run(QUERY, rays, workers=workers, progress=progress, where=where, cull=cull)
