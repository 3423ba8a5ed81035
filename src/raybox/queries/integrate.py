"""`integrate`: for each ray the sum, over the boxes or cells that it is in, of value times length inside."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from raybox.geometry import GridRows, Rays
from raybox.hits.file_columns import Argument, ChunkResults, Columns, FileColumns
from raybox.hits.hit_ids import Source
from raybox.queries.columns import RAY, sum_columns, sum_dtypes
from raybox.queries.path_sums import arguments, cells, packet, stream
from raybox.queries.path_sums.listed import listed_hits
from raybox.queries.path_sums.sums import RaySums
from raybox.queries.per_ray import PerRay, ResultArray, Speed
from raybox.queries.query import Query, Request, RunOne, Target
from raybox.queries.scheduler import run
from raybox.traversal.job import Job
from raybox.traversal.protocol import register
from raybox.validation import Floats


class IntegrateOptions(NamedTuple):
    """What is integrated: of each geometry, values (M, C), or (0, 1) for ones."""

    values: tuple[Floats, ...]
    reproducible: bool
    channels: int | None
    """None: results have no axis of channels"""

    @property
    def width(self) -> int:
        """How many numbers each ray has."""
        return self.channels or 1

    def of(self, geometry: int) -> IntegrateOptions:
        """Return the options of one geometry alone."""
        return self._replace(values=(self.values[geometry],))


class IntegrateResults(NamedTuple):
    """The sums of each ray, (rays, C)."""

    sums: Floats


class _Integrate(PerRay[IntegrateResults, IntegrateOptions]):
    """Sums of rays; those of the single-ray traversal are of hits that are listed first."""

    def run_exact(self, job: Job, options: IntegrateOptions) -> IntegrateResults:
        """Return the sums of all rays of a job, which the stream traversal leaves out."""
        results = self.allocate(len(job.rays.directions), options)
        if isinstance(job.rows, GridRows):
            cells.add_cells(job, RaySums(results.sums, options.values[0], results.sums))
            return IntegrateResults(*results)
        for hits in listed_hits(job):
            rows = results.sums[hits.begin : hits.begin + len(hits.counts)]
            memory = np.empty((len(rows), options.width))
            sums = RaySums(memory, options.values[0], rows)
            stream.add_listed(sums, np.arange(len(rows)), hits.counts, hits.pairs.item, hits.lengths)
        return IntegrateResults(*results)


def _recorder(
    results: IntegrateResults, size: int, options: IntegrateOptions
) -> stream.PathRecorder[RaySums]:
    memory = np.empty((size, options.width))
    sums = RaySums(memory, options.values[0], results.sums)
    return stream.make_recorder(size, sums, options.reproducible)


PER_RAY = _Integrate(
    results=IntegrateResults,
    arrays=(ResultArray(np.float64, 0.0),),
    recorder=_recorder,
    exact_recorder=None,  # type: ignore[arg-type]  # see `run_exact`
    write_hits=None,  # type: ignore[arg-type]  # likewise
    shape=lambda options: (options.width,),
    speed=Speed(group_widths=(4, 4, 4, 4)),
    packets=lambda options: options.width == 1 and not options.reproducible,
    grow=stream.grown,
    release=stream.released,
)


def _prepare(options: tuple[Any, bool], _rays: Rays, target: Target) -> IntegrateOptions:
    arguments.check_scene(target, "integrate")
    values, channels = arguments.check_values(options[0], target)
    return IntegrateOptions(values, arguments.check_flag(options[1], "reproducible"), channels)


def _merge_geometries(
    request: Request, run_one: RunOne[IntegrateOptions, IntegrateResults], options: IntegrateOptions
) -> IntegrateResults:
    first, *others = request.jobs
    (sums,) = run_one(first, request.rays, options.of(0))
    for k, job in enumerate(others, start=1):
        sums += run_one(job, request.rays, options.of(k)).sums
    return IntegrateResults(sums)


def _present(
    results: IntegrateResults, shape: tuple[int, ...], _source: Source, options: IntegrateOptions
) -> Floats:
    return results.sums.reshape(shape if options.channels is None else (*shape, options.channels))


def _dtypes(_dimension: int, _ids: Any, values: Any = None) -> dict[str, np.dtype[Any]]:
    return {**RAY, **sum_dtypes("integral", np.shape(values)[1:])}


def _chunks(
    scene: Any, rays: Rays, first: int, workers: int, values: Any = None, **how: Any
) -> Iterator[ChunkResults]:
    # reproducible: a cast that was interrupted continues to the same bytes
    sums = scene.integrate(rays, values, workers=workers, reproducible=True, **how)
    columns: Columns = {"ray": range(first, first + len(sums)), **sum_columns("integral", sums)}
    hit = np.count_nonzero(sums.reshape(len(sums), -1).any(axis=1))
    yield ChunkResults(int(hit), lambda _: columns)


QUERY = Query(
    name="integrate",
    hooks=(stream.HOOKS, packet.HOOKS, cells.HOOKS, cells.RAY_SUM_HOOKS),
    run=partial(run, PER_RAY),
    merge_geometries=_merge_geometries,
    present=_present,
    columns=FileColumns(_dtypes, _chunks, arguments={"values": Argument.PER_PRIMITIVE}),
    prepare=_prepare,
)
register(*QUERY.hooks)
