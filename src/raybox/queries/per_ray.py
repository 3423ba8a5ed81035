"""Queries whose results have one size for each ray: allocated at once, written by all threads."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from raybox.compiler import huge_pages
from raybox.compiler.buffer_pool import BufferPool
from raybox.geometry import with_scratch
from raybox.geometry.ray_rows import select_rows
from raybox.queries.batches import GRAINS
from raybox.queries.exact_fallback import OrderedHits, undecided_hits
from raybox.queries.one_by_one import MOST_RAYS
from raybox.traversal.job import Job, Recorder
from raybox.traversal.single import RaySpan, make_scratch, traverse_rays
from raybox.validation import Ints, first_rows

N = TypeVar("N", bound=np.generic)
Opt = TypeVar("Opt")
Res = TypeVar("Res", bound=tuple[Any, ...])
_SCRATCH = BufferPool(make_scratch)
_ALWAYS_FIT = 1 << 20  # so many results: their size is not checked, as that would slow single rays


_MISSES: dict[type, tuple[NDArray[Any], ...]] = {}
"""Results of `MOST_RAYS` misses, one number each, by their class."""


class ResultArray(NamedTuple):
    """One array of the results: its dtype, and its value for a ray that hits nothing."""

    dtype: type[np.generic]
    miss: float


class Speed(NamedTuple):
    """What makes a query fast: its results are the same without."""

    group_widths: tuple[int, ...] = (1, 1, 1, 1)
    """by the size of the tree: groups are of up to so many times as many rays"""
    scattered: bool = False
    """whether groups are wide only if few rays go one way from one place"""
    grains: float = GRAINS
    """how many boxes a packet may be wide, by the length of a box"""
    triangle_grains: float = 0.0
    """the same where primitives are triangles; 0: these have no packets"""


PLAIN = Speed()
"""Of a query for which nothing is chosen."""


class PerRay(NamedTuple, Generic[Res, Opt]):
    """How a query with results of one size for each ray is run."""

    results: type[Res]
    """NamedTuple of the result arrays"""
    arrays: tuple[ResultArray, ...]
    recorder: Callable[[Res, int, Opt], Recorder]
    """(results, rays, options) -> recorder of groups of up to so many rays, or of packets of so many"""
    exact_recorder: Callable[[Res], Recorder]
    """(results) -> recorder of the single-ray traversal"""
    write_hits: Callable[[Res, OrderedHits], None]
    """(results, hits): write the result of a ray that the exact fallback decided"""
    shape: Callable[[Opt], tuple[int, ...]] = lambda _options: ()
    """(options) -> the shape of one ray's result: by default, a number"""
    speed: Speed = PLAIN
    packets: Callable[[Opt], bool] = lambda _options: True
    """(options) -> whether packets are looked for"""
    grow: Callable[[Any, float], Any] | None = None
    """see `raybox.queries.batches.Recording`"""
    release: Callable[[Any], Any] | None = None
    """likewise"""

    def allocate(self, rays: int, options: Opt) -> Res:
        """Return the result arrays of so many rays, not yet written."""
        shape = (rays, *self.shape(options))
        if (count := prod(shape)) > _ALWAYS_FIT:
            huge_pages.check_size(count * sum(np.dtype(array.dtype).itemsize for array in self.arrays))
        return self.results(*[huge_pages.pooled(shape, array.dtype) for array in self.arrays])

    def allocate_misses(self, rays: int, options: Opt) -> Res:
        """Return the result arrays of rays that hit nothing."""
        rows = _MISSES.get(self.results) or self._miss_rows(options)
        if rows and rays <= MOST_RAYS:
            return tuple.__new__(self.results, first_rows(rays, *rows))
        results = self.allocate(rays, options)
        self.write_misses(results, 0, rays)
        return results

    def _miss_rows(self, options: Opt) -> tuple[NDArray[Any], ...]:
        """Return results of misses, which are made once; () where a ray has several."""
        if self.shape(options):
            return ()
        rows = tuple(np.full(MOST_RAYS, array.miss, array.dtype) for array in self.arrays)
        return _MISSES.setdefault(self.results, rows)

    def write_misses(self, results: Res, begin: int, end: int) -> None:
        """Write that the rays begin <= k < end hit nothing."""
        for array, (_, miss) in zip(results, self.arrays, strict=True):
            array[begin:end] = miss

    def run_exact(self, job: Job, options: Opt) -> Res:
        """Return the results of all rays of a job, one by one: every decision is exact in the loop."""
        total = len(job.rays.directions)
        results = self.allocate_misses(total, options)
        scratch = _SCRATCH.take()
        traverse_rays(job, RaySpan(0, total), scratch, self.exact_recorder(results))
        _SCRATCH.put_back(scratch)
        for hits in undecided_hits(job):
            self.write_hits(results, hits)
        return results


def exact_job(job: Job) -> Job:
    """Return a job on all rays, which are in memory, for the single-ray traversal."""
    rows = with_scratch(job.rows, len(job.rays.directions))
    return job if rows is job.rows else job._replace(rows=rows)


def select_rays(job: Job, numbers: Ints | slice) -> Job:
    """Return the job of some rays alone, for the single-ray traversal."""
    rays = select_rows(job.rays, numbers)
    return job._replace(rays=rays, rows=with_scratch(job.rows, len(rays.directions)), frame=None)


def join_arrays(arrays: Sequence[NDArray[N]], dtype: type[N]) -> NDArray[N]:
    """Return arrays one after the other, in pooled memory."""
    joined = huge_pages.pooled((sum(len(array) for array in arrays),), dtype)
    np.concatenate([np.empty(0, dtype), *arrays], out=joined)
    return joined
