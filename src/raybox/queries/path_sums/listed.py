"""Path sums of rays that the stream traversal leaves out: hits are listed as by `all`, exactly, then added.

Instances, rays that are undecided, and rays whose numbers are out of the range of
`raybox.primitives.box_lengths`. A pair's length has the same bits here as there, so sums do not depend on
which rays are listed.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from raybox.geometry import BoxRows, InstanceRows, RayRows, with_scratch
from raybox.hits.path_lengths import path_lengths, write_exactly
from raybox.primitives import exact_table
from raybox.primitives import pairs as pair_loops
from raybox.primitives.box_lengths import CROSSING_WORDS, CrossingRays
from raybox.primitives.box_simd import LANES
from raybox.primitives.exact_table import instance_contact
from raybox.queries.all_hits.run import run_exact
from raybox.queries.hit_pairs import HitPairs
from raybox.queries.path_sums.stream import write_listed_lengths
from raybox.queries.per_ray import select_rays
from raybox.traversal.job import Job
from raybox.validation import Bools, Floats, Ints, freeze

_AT_ONCE = 4096  # rays whose hits are in memory


class ListedHits(NamedTuple):
    """Hits of the rays begin <= k < begin + len(counts), ray after ray, by the number of the primitive."""

    begin: int
    counts: Ints
    pairs: HitPairs
    lengths: Floats


def listed_hits(job: Job) -> Iterator[ListedHits]:
    """Yield the hits of all rays of a job; of instances, `item` is the instance."""
    total = len(job.rays.directions)
    for begin in range(0, total, _AT_ONCE):
        part = select_rays(job, slice(begin, begin + _AT_ONCE))
        found = run_exact(part)
        ray = np.repeat(np.arange(len(found.counts)), found.counts)
        index = found.index[np.lexsort((found.index, ray))]
        lengths = _lengths(part, ray, index)
        if isinstance(job.rows, InstanceRows):
            index = index // max(1, job.rows.size)
        yield ListedHits(begin, found.counts, _pairs(ray, index), lengths)


def _pairs(ray: Ints, item: Ints) -> HitPairs:
    room = np.zeros(LANES, np.int32)
    return HitPairs(*(np.concatenate([column.astype(np.int32), room]) for column in (ray, item)))


def _lengths(job: Job, ray: Ints, index: Ints) -> Floats:
    """Return the length of each path."""
    if not isinstance(job.rows, BoxRows):
        return _timed_lengths(job, ray, index)
    lengths = np.empty(len(ray) + LANES)
    rays = len(job.rays.directions)
    memory = CrossingRays(np.empty((rays, CROSSING_WORDS)), np.empty(rays))
    write_listed_lengths(job.rows, _numbers(job.rays), _pairs(ray, index), memory, lengths)
    lengths = lengths[: len(ray)]
    left = np.flatnonzero(np.isnan(lengths))
    if left.size:
        lengths[left] = _timed_lengths(job._replace(rays=near_one(job.rays)[0]), ray[left], index[left])
    return lengths


def _numbers(rays: RayRows) -> Floats:
    """Return rays as rows of eight numbers."""
    numbers = np.empty((len(rays.directions), 8))
    numbers[:, :3], numbers[:, 3:6] = rays.origins, rays.directions
    numbers[:, 6], numbers[:, 7] = rays.t_min, rays.t_max
    return numbers


class ScaledRays(NamedTuple):
    """The same rays, their directions scaled, and which of them stay as they were: those would lose bits."""

    rays: RayRows
    unscaled: Bools


def near_one(rays: RayRows) -> ScaledRays:
    """Return the same rays, their directions scaled by powers of two to lengths of 4 to 14.

    So a time is at most a quarter of a distance, and no time between planes of floats overflows on the axis
    of the longest part. A ray one of whose numbers would lose a bit stays as it is.
    """
    exponents = np.frexp(np.abs(rays.directions).max(axis=1, initial=0.0))[1] - 3
    count = len(exponents)
    given = [rays.directions, *(np.broadcast_to(t, count)[:, None] for t in (rays.t_min, rays.t_max))]
    up, down = _power_of_two(exponents), _power_of_two(-exponents)
    with np.errstate(over="ignore", under="ignore"):
        scaled = [_times(numbers, power) for numbers, power in zip(given, (down, up, up), strict=True)]
        back = [_times(numbers, power) for numbers, power in zip(scaled, (up, down, down), strict=True)]
    unscaled = (given[0] != back[0]).any(axis=1)
    for old, new in zip(given[1:], back[1:], strict=True):
        unscaled |= (old != new)[:, 0]
    if unscaled.any():
        scaled = [np.where(unscaled[:, None], *pair) for pair in zip(given, scaled, strict=True)]
    directions, t_min, t_max = scaled
    made: RayRows = rays._replace(directions=directions, t_min=t_min[:, 0].copy(), t_max=t_max[:, 0].copy())
    freeze(*made)
    return ScaledRays(made, unscaled)


class _Power(NamedTuple):
    """Two to a power each, as two factors: one alone may overflow."""

    half: Floats
    rest: Floats


def _power_of_two(exponents: Ints) -> _Power:
    half = exponents // 2
    return _Power(np.ldexp(1.0, half)[:, None], np.ldexp(1.0, exponents - half)[:, None])


def _times(numbers: Floats, power: _Power) -> Floats:
    product: Floats = numbers * power.half
    product *= power.rest
    return product


def _timed_lengths(job: Job, ray: Ints, index: Ints) -> Floats:
    """Return the lengths of paths from the times, each rounded once, at which lines enter and leave."""
    near, far = np.empty(len(ray)), np.empty(len(ray))
    pair_loops.spans_of(job.rays, with_scratch(job.rows, 0), ray, index, near, far)
    for k in np.flatnonzero(np.isnan(near) | np.isnan(far)):
        assert isinstance(job.rows, InstanceRows)  # spans of other rows are always known
        contact = instance_contact(job.rows, exact_table.ray_at(job.rays, ray[k]), int(index[k]))
        assert contact is not None  # it is a hit
        near[k], far[k] = contact.crossing.t_enter, contact.crossing.t_exit
    lengths, lost = path_lengths(job.rays, ray, near, far)
    if lost.size:
        exact = lengths[lost]
        write_exactly(job.rays, job.rows, (ray[lost], index[lost]), exact)
        lengths[lost] = exact
    return lengths
