"""`deposit`: for each box the sum, over the rays that hit it, of weight times length inside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, cast, get_args

import numpy as np

from raybox.compiler import huge_pages
from raybox.errors import InvalidInput
from raybox.geometry import GridRows, RayRows, Rays
from raybox.geometry.ray_rows import ray_count
from raybox.hits.file_columns import Argument, ChunkResults, Columns, FileColumns, index_dtypes
from raybox.hits.hit_ids import Source
from raybox.queries.batches import Recording, traverse_batch
from raybox.queries.columns import sum_columns, sum_dtypes
from raybox.queries.names import Per
from raybox.queries.path_sums import arguments, cells, fixed_point, stream
from raybox.queries.path_sums.copies import Copies
from raybox.queries.path_sums.fixed_point import FixedSums, TermLimits
from raybox.queries.path_sums.listed import listed_hits
from raybox.queries.path_sums.sums import FixedItemSums, ItemSums
from raybox.queries.per_ray import select_rays
from raybox.queries.query import GroupsInput, Query, Request, RunOne, RunsQueries, Target
from raybox.queries.scheduler import EXACT_CHUNK, batches_of, group_width, rays_each, write_all
from raybox.threads.chunks import chunk_runner
from raybox.traversal.job import Job
from raybox.traversal.protocol import register
from raybox.validation import Floats, Ints, MaskInput

_GROUP_WIDTHS = 4, 4, 4, 4
_MODES = get_args(Per)


class DepositOptions(NamedTuple):
    """What is deposited: weights of all rays, (N, C), or (0, 1) for ones."""

    weights: Floats
    per_hit: bool
    limits: TermLimits | None
    """of the terms of all rays whose sums are added in fixed point; None: in float64"""
    channels: int | None
    """None: results have no axis of channels"""
    counts: tuple[int, ...]
    """the length of each geometry"""
    is_list: bool

    @property
    def width(self) -> int:
        """How many numbers each primitive has."""
        return self.channels or 1

    def of(self, geometry: int) -> DepositOptions:
        """Return the options of one geometry alone."""
        return self._replace(counts=(self.counts[geometry],))


class DepositResults(NamedTuple):
    """The sums of the primitives of each geometry, (M, C)."""

    sums: tuple[Floats | FixedSums, ...]


class _Deposit:
    """The sums of one geometry, while threads add to them."""

    def __init__(self, job: Job, options: DepositOptions, threads: int) -> None:
        self.job, self.options = job, options
        shape: tuple[int, ...] = (options.counts[0], options.width)
        self._fixed = self._scales = None
        if options.limits is not None:
            self._fixed = fixed_point.fixed_point(job, options.limits, options.per_hit)
            self._scales = fixed_point.scales_of(self._fixed)
            shape = (*shape, 2)
        self.copies = Copies(shape, np.float64 if self._fixed is None else np.int64, threads)

    def sums(self, memory: Any, given: Floats, rays: int) -> ItemSums | FixedItemSums:
        """Return what paths of groups of up to so many rays are added to. given: the weights of all."""
        weights, shared = np.empty((rays, self.options.width)), self.copies.shared
        if self._fixed is None or self._scales is None:
            return ItemSums(weights, given, memory, self.options.per_hit, shared)
        unit = 2.0**self._fixed.bits
        return FixedItemSums(weights, given, memory, self._scales, unit, unit, self.options.per_hit, shared)

    def recorder(self, size: int) -> stream.PathRecorder[ItemSums | FixedItemSums]:
        """Return the recorder of groups of up to so many rays."""
        sums = self.sums(self.copies.take(), self.options.weights, size)
        return stream.make_recorder(size, sums, ordered=False)

    def release(
        self, recorder: stream.PathRecorder[ItemSums | FixedItemSums]
    ) -> stream.PathRecorder[ItemSums | FixedItemSums]:
        """Store the memory of a recorder for the next one."""
        sums = recorder.sums
        self.copies.put_back(sums.sums if isinstance(sums, ItemSums) else sums.words)
        return stream.released(recorder)

    def add_listed(self, rays: Ints | slice) -> None:
        """Add the paths of rays that the stream traversal leaves out."""
        part, weights = select_rays(self.job, rays), self.options.weights
        own, memory = weights[rays] if len(weights) else weights, self.copies.take()
        own.flags.writeable = False  # Numba compiles anew for arrays that can be written to
        if isinstance(part.rows, GridRows):
            cells.add_cells(part, self.sums(memory, own, len(part.rays.directions)))
        else:
            for hits in listed_hits(part):
                count = len(hits.counts)
                given = own[hits.begin : hits.begin + count]
                sums = self.sums(memory, given, count)
                stream.add_listed(sums, np.arange(count), hits.counts, hits.pairs.item, hits.lengths)
        self.copies.put_back(memory)

    def total(self) -> Floats | FixedSums:
        """Return the sums of all threads."""
        total = self.copies.total()
        return total if self._fixed is None else FixedSums(total, self._fixed)


def _run(job: Job, rays: RayRows, options: DepositOptions, workers: int, progress: bool) -> DepositResults:
    """Return the sums of one geometry's primitives."""
    total = ray_count(rays)
    with chunk_runner(total, workers=workers, progress=progress, least=rays_each(job)) as threads:
        deposit = _Deposit(job._replace(rays=rays), options, threads.threads)
        recording = Recording(
            deposit.recorder,
            write_misses=lambda _begin, _end: None,
            group_width=group_width(job, _GROUP_WIDTHS),
            grow=stream.grown,
            release=deposit.release,
        )
        if not job.frame:
            threads(lambda begin, end: deposit.add_listed(slice(begin, end)), total, min_chunk=EXACT_CHUNK)
            return DepositResults((deposit.total(),))
        for span in batches_of(total):
            with traverse_batch(job, rays, span, recording, threads) as traversed:
                write_all(threads, deposit.add_listed, span.begin + traversed.undecided)
    return DepositResults((deposit.total(),))


def _prepare(options: tuple[Any, Any, Any], rays: Rays, target: Target) -> DepositOptions:
    arguments.check_scene(target, "deposit")
    weights, per, reproducible = options
    if not isinstance(per, str) or per not in _MODES:
        raise InvalidInput(f"per must be one of {', '.join(map(repr, _MODES))}; got {per!r}.")
    given, channels = arguments.check_weights(weights, rays, target.workers)
    huge_pages.check_size(8 * sum(target.counts) * (channels or 1))
    limits = None
    if arguments.check_flag(reproducible, "reproducible"):
        limits = fixed_point.limits_of(rays._rows(), given, per == "hit")
    return DepositOptions(given, per == "hit", limits, channels, target.counts, target.is_list)


def _merge_geometries(
    request: Request, run_one: RunOne[DepositOptions, DepositResults], options: DepositOptions
) -> DepositResults:
    each = [run_one(job, request.rays, options.of(k)).sums[0] for k, job in enumerate(request.jobs)]
    return DepositResults(tuple(each))


def _present(
    results: DepositResults, _shape: tuple[int, ...], _source: Source, options: DepositOptions
) -> Floats | list[Floats]:
    each = [one.to_floats() if isinstance(one, FixedSums) else one for one in results.sums]
    sums = [one[:, 0] if options.channels is None else one for one in each]
    return sums if options.is_list else sums[0]


def _dtypes(_dimension: int, ids: Any, weights: Any = None, per: Per = "length") -> dict[str, np.dtype[Any]]:
    del per
    return {**index_dtypes(ids), **sum_dtypes("deposit", np.shape(weights)[1:])}


def _chunks(
    scene: Any,
    rays: Rays,
    _first: int,
    workers: int,
    *,
    weights: Any = None,
    per: Per = "length",
    **how: Any,
) -> Iterator[ChunkResults]:
    # reproducible: a cast that was interrupted continues to the same bytes
    fixed = per == "hit" or bool(np.isfinite(scene.bounds).all())
    sums = scene.deposit(rays, weights, per=per, workers=workers, reproducible=fixed, **how)
    columns: Columns = {"index": range(len(sums)), **sum_columns("deposit", sums)}
    yield ChunkResults(0, lambda _: columns)


QUERY = Query(
    name="deposit",
    hooks=(stream.HOOKS, cells.HOOKS, cells.CELL_SUM_HOOKS),
    run=_run,
    merge_geometries=_merge_geometries,
    present=_present,
    columns=FileColumns(
        _dtypes,
        _chunks,
        rows="primitives",
        arguments={"weights": Argument.PER_RAY, "per": Argument.OPTION},
    ),
    prepare=_prepare,
)
register(*QUERY.hooks)


_PARTIAL: Query[DepositOptions, DepositResults, DepositResults] = Query(
    name="deposit",
    hooks=QUERY.hooks,
    run=_run,
    merge_geometries=_merge_geometries,
    present=lambda results, _shape, _source, _options: results,
    prepare=lambda options, _rays, target: options._replace(counts=target.counts, is_list=target.is_list),
)
"""The query of `partial_sums`: results as they are, of options that are checked."""


def partial_sums(
    scene: RunsQueries,
    rays: Rays,
    weights: Any,
    *,
    limits: TermLimits,
    per: Per = "length",
    workers: int = -1,
    where: MaskInput = None,
    groups: GroupsInput = None,
) -> FixedSums:
    """Return the sums of some rays in fixed point, to be added to those of others.

    Parameters
    ----------
    scene : Scene
        Of one geometry.
    rays : Rays
        Some of the rays.
    weights, per, workers, where, groups
        As for `Scene.deposit`, of these rays.
    limits : TermLimits
        Those of all rays: sums within the same limits add up to the bits of one call.

    Raises
    ------
    InvalidInput
        As for `Scene.deposit`.
    """
    given, channels = arguments.check_weights(weights, rays, workers)
    options = DepositOptions(given, per == "hit", limits, channels, (), is_list=False)
    (sums,) = scene._run(_PARTIAL, rays, options, workers=workers, where=where, groups=groups).sums
    return cast("FixedSums", sums)
