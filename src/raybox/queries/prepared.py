"""Few rays at a time: queries whose arguments are laid out once, but for the rays and the results.

Objects and arguments of calls would take several times as long as the traversal of one ray.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any, Generic

import numpy as np

from raybox.compiler.buffer_pool import BufferPool
from raybox.compiler.entry_points import prepared
from raybox.geometry import InstanceRows, RayRows, with_scratch
from raybox.queries import batches
from raybox.queries.exact_fallback import undecided_hits
from raybox.queries.per_ray import Opt, PerRay, Res
from raybox.queries.scheduler import write_exact
from raybox.traversal import ray_groups
from raybox.traversal.job import Job
from raybox.traversal.ray_groups import SMALL_BATCH
from raybox.traversal.single import RaySpan, make_scratch, traverse_rays
from raybox.traversal.workspace import Span
from raybox.validation import freeze

_COUNT = -(1 << 40)  # stands for the number of rays
_MOST_NUMBERS = 16  # of a ray's result: memory is proportional to them
_MAX_FREE = 16  # prepared queries of one kind that are stored, for as many threads


class PreparedQueries:
    """The prepared queries of one geometry."""

    def __init__(self, job: Job) -> None:
        self._job = job  # without rays
        self._free: dict[tuple[str, object], BufferPool[_Prepared[Any, Any]]] = {}

    def run(self, per_ray: PerRay[Res, Opt], name: str, rays: RayRows, options: Opt) -> Res | None:
        """Return the results of few rays; None of others, or if a query takes long.

        name: of the query.
        """
        if len(rays.directions) > ray_groups.SMALL_BATCH:
            return None
        free = self._free.get((name, options))
        if free is None:
            if prod(per_ray.shape(options)) > _MOST_NUMBERS:
                return None
            kind = _Streams if self._job.frame else _Exact
            made = BufferPool(partial(kind, per_ray, self._job, options), _MAX_FREE)
            free = self._free.setdefault((name, options), made)
        one = free.take()
        results: Res | None = one.run(rays)
        free.put_back(one)
        return results


class _Prepared(ABC, Generic[Res, Opt]):
    """A query with memory of its own, for one thread at a time."""

    def __init__(self, per_ray: PerRay[Res, Opt], job: Job, options: Opt) -> None:
        samples = RayRows(np.zeros((1, 3)), np.zeros((1, 3)), np.zeros(1), np.zeros(1))
        freeze(*samples)
        self._job, self._per_ray, self._options = job._replace(rays=samples), per_ray, options
        self._misses = per_ray.results(*per_ray.miss_rows(options))
        # in a third of the time of the class itself
        self._make: Callable[[tuple[Any, ...]], Res] = partial(tuple.__new__, type(self._misses))

    @abstractmethod
    def run(self, rays: RayRows) -> Res | None:
        """Return the results of rays; None if they take long."""


class _Streams(_Prepared[Res, Opt]):
    """A query of a geometry with vector code."""

    def __init__(self, per_ray: PerRay[Res, Opt], job: Job, options: Opt) -> None:
        super().__init__(per_ray, job, options)
        memory, size = batches.SMALL.take(), SMALL_BATCH
        order, workspace, *_ = memory
        recorder = per_ray.recorder(self._misses, len(self._misses[0]), options)
        self._call: Callable[..., tuple[bool, tuple[Any, ...]]] = prepared(
            ray_groups.traverse_groups,
            (self._job, Span(0, 0, _COUNT), order, workspace, recorder, size),
            (_COUNT, *self._job.rays, order, workspace),
            self._misses,
        )
        batches.SMALL.put_back(memory)

    def run(self, rays: RayRows) -> Res | None:
        """Return the results of rays; None if they take long."""
        o, d, low, high = rays
        count, memory = len(d), batches.SMALL.take()
        order, workspace, undecided, place = memory
        has_room, arrays = self._call(count, o, d, low, high, order, workspace)
        end, undecided_count = place.tolist()
        results = self._make(arrays)
        if undecided_count:
            numbers = undecided[:undecided_count].astype(np.int64)
            write_exact(self._per_ray, self._job._replace(rays=rays), results, self._options, numbers)
        batches.SMALL.put_back(memory)
        return results if has_room and end == count else None


class _Exact(_Prepared[Res, Opt]):
    """A query of a geometry without vector code."""

    def __init__(self, per_ray: PerRay[Res, Opt], job: Job, options: Opt) -> None:
        rows = with_scratch(job.rows, SMALL_BATCH)
        super().__init__(per_ray, job._replace(rows=rows), options)
        self._call: Callable[..., tuple[int, tuple[Any, ...]]] = prepared(
            traverse_rays,
            (self._job, RaySpan(0, _COUNT), make_scratch(), per_ray.exact_recorder(self._misses)),
            (_COUNT, *self._job.rays),
            self._misses,
        )

    def run(self, rays: RayRows) -> Res:
        """Return the results of rays."""
        count, rows = len(rays.directions), self._job.rows
        _, arrays = self._call(count, *rays)
        results = self._make(arrays)
        if isinstance(rows, InstanceRows) and rows.undecided_rays[:count].any():
            for hits in undecided_hits(self._job._replace(rays=rays)):
                self._per_ray.write_hits(results, hits)
            rows.undecided_rays[:] = False
        return results
