"""`segments`: the partition of each ray by the cells of a grid."""

from __future__ import annotations

from functools import partial
from typing import Never

from raybox.compiler.decorators import device, inlined, yes
from raybox.errors import InvalidInput
from raybox.geometry import GridRows, RayRows, Rays
from raybox.geometry.ray_rows import ray_count
from raybox.hits import AllHits
from raybox.hits.hit_ids import Source
from raybox.hits.runs import offsets_of
from raybox.primitives.ray import Ray
from raybox.queries.all_hits.file_columns import file_columns
from raybox.queries.all_hits.run import AllResults, ExactRows, RowRoom, join_rows, rows_of
from raybox.queries.per_ray import select_rays
from raybox.queries.query import Query, Target
from raybox.queries.scheduler import EXACT_CHUNK
from raybox.threads.chunks import chunk_runner
from raybox.traversal.job import Job
from raybox.traversal.plane_slabs import Way
from raybox.traversal.protocol import SegmentHooks, register
from raybox.traversal.segments import cut_rays
from raybox.traversal.slab_segments import write_segments


@device
def _begin(_recorder: RowRoom, _k: int) -> int:
    """Return the number of a ray's cells so far."""
    return 0


@inlined
def _record(recorder: RowRoom, count: int, _ray: Ray, cell: int, t_enter: float, _t_exit: float) -> int:
    place = recorder.used[0] + count
    if place < recorder.hits.index.size:
        recorder.hits.index[place], recorder.hits.t[place] = cell, t_enter
    return count + 1


@inlined
def _record_way(recorder: RowRoom, _count: int, way: Way) -> tuple[bool, int]:
    count = write_segments(way, recorder.hits.index, recorder.hits.t, recorder.used[0])
    return count > 0, count


@device
def _end(recorder: RowRoom, count: int, k: int) -> bool:
    recorder.counts[k] = count
    if recorder.used[0] + count > recorder.hits.index.size:
        return False
    recorder.used[0] += count
    return True


def _run(job: Job, rays: RayRows, options: None, workers: int, progress: bool) -> AllResults:
    """Return the cells of all rays, in order along each ray."""
    total, job = ray_count(rays), job._replace(rays=rays)
    with chunk_runner(total, workers=workers, progress=progress) as threads:
        parts = threads(
            lambda begin, end: _rows(select_rays(job, slice(begin, end))), total, min_chunk=EXACT_CHUNK
        )
    return _results([row for rows in parts for row in rows])


def _rows(job: Job) -> list[ExactRows]:
    """Return the cells of the rays of a job, in parts."""
    return rows_of(len(job.rays.directions), partial(cut_rays, job))


def _results(parts: list[ExactRows]) -> AllResults:
    counts, index, t = join_rows(parts)
    return AllResults(offsets_of(counts), index, t)


def cut(job: Job) -> AllResults:
    """Return the cells of the rays of a job, by one thread."""
    return _results(_rows(job))


def _prepare(_options: None, _rays: Rays, target: Target) -> None:
    """Raise `InvalidInput` unless the scene is one of a single grid."""
    if len(target.rows) != 1 or not isinstance(target.rows[0], GridRows):
        found = "several geometries" if len(target.rows) != 1 else "another geometry"
        raise InvalidInput(
            f"segments needs a Scene of one Grid, whose cells part a ray; got {found}. Make a Scene of the "
            "Grid alone: Scene(grid). Boxes may overlap: use all, and its lengths."
        )


def _present(results: AllResults, _shape: tuple[int, ...], source: Source, _options: None) -> AllHits:
    return AllHits(results.offsets, results.index, results.t, source)


def _merge_geometries(*_arguments: object) -> Never:
    raise AssertionError("several geometries, which `_prepare` refuses")


QUERY: Query[None, AllResults, AllHits] = Query(
    name="segments",
    hooks=(SegmentHooks(RowRoom, _begin, _record, _end, record_way=_record_way, has_exact_times=yes),),
    run=_run,
    merge_geometries=_merge_geometries,
    present=_present,
    columns=file_columns("segments"),
    prepare=_prepare,
)
register(*QUERY.hooks)
