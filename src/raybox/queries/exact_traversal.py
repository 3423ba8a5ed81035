"""Queries ray by ray, every decision exact in the loop: for what `traversal.ray_groups` leaves open.

And for primitives that cannot be screened many at a time.
"""

import numpy as np

from raybox.geometry import noting
from raybox.queries import exact_fallback, exact_loops, exact_recorders
from raybox.queries.hit_sorting import make_contacts
from raybox.traversal.single import Job, make_scratch
from raybox.validation import Bools, Floats, Ints

_ROOM = 4096  # contacts that `everything` first makes room for


def some(job: Job, numbers: Ints | slice) -> Job:
    """Return the job of these rays alone."""
    rays = job.rays
    ranges = [bound[numbers] if bound.size > 1 else bound for bound in (rays.t_min, rays.t_max)]
    rows = rays._replace(
        origins=rays.origins[numbers], directions=rays.directions[numbers], t_min=ranges[0], t_max=ranges[1]
    )
    for array in rows:
        array.flags.writeable = False  # Numba compiles anew for arrays that can be written to
    return job._replace(rays=rows, rows=noting(job.rows, len(rows.origins)), frame=None)


def nearest(job: Job) -> tuple[Ints, Floats]:
    """Return index and time of each ray's first contact."""
    total = len(job.rays.origins)
    index, t = np.empty(total, np.int64), np.empty(total)
    sink = exact_recorders.Nearest(np.empty(1, np.int64), np.empty(1))
    exact_loops.nearest(job, (0, total), make_scratch(), sink, index, t)
    for k, found, times in exact_fallback.settled(job):
        index[k], t[k] = (found[0], times[0]) if found.size else (-1, np.inf)
    return index, t


def occluded(job: Job) -> Bools:
    """Return whether each ray meets anything."""
    met = np.empty(len(job.rays.origins), np.bool_)
    exact_loops.occluded(
        job, (0, met.size), make_scratch(), exact_recorders.Occluded(np.empty(1, np.bool_)), met
    )
    for k, found, _ in exact_fallback.settled(job):
        met[k] = found.size > 0
    return met


def count(job: Job) -> Ints:
    """Return how many each ray meets."""
    number = np.empty(len(job.rays.origins), np.int64)
    exact_loops.count(
        job, (0, number.size), make_scratch(), exact_recorders.Count(np.empty(1, np.int64)), number
    )
    for k, found, _ in exact_fallback.settled(job):
        number[k] = found.size
    return number


def first(job: Job, k: int) -> tuple[Ints, Floats]:
    """Return index and time of each ray's k nearest contacts, rows padded with misses."""
    total = len(job.rays.origins)
    index, t = np.full((total, k), -1, np.int64), np.full((total, k), np.inf)
    exact_loops.first(job, (0, total), make_scratch(), np.empty(1, np.int64), index, t)
    for n, found, times in exact_fallback.settled(job):
        index[n], t[n] = -1, np.inf
        index[n, : found.size], t[n, : found.size] = found[:k], times[:k]
    return index, t


def everything(job: Job) -> tuple[Ints, Ints, Floats]:
    """Return counts, index and time of every contact, sorted ray by ray."""
    begin, end = 0, len(job.rays.origins)
    counts = np.empty(end, np.int64)
    indexes, times = [np.empty(0, np.int64)], [np.empty(0)]
    size = _ROOM
    number = np.empty(1, np.int64)
    while begin < end:
        room = make_contacts(size)
        begin, used, needed = exact_loops.collect(job, (begin, end), make_scratch(), number, room, counts)
        indexes.append(room.index[:used].copy())
        times.append(room.t[:used].copy())
        size = max(2 * size, needed)
    return _corrected(job, counts, np.concatenate(indexes), np.concatenate(times))


def _corrected(job: Job, counts: Ints, index: Ints, t: Floats) -> tuple[Ints, Ints, Floats]:
    """Put in what rays in doubt meet, in place of what the loop found."""
    late = list(exact_fallback.settled(job))
    if not late:
        return counts, index, t
    rays, found, times = zip(*late, strict=True)
    numbers = np.array(rays)
    kept = ~np.repeat(np.isin(np.arange(counts.size), numbers), counts)
    counts[numbers] = 0
    places = np.repeat(np.cumsum(counts)[numbers], [part.size for part in found])
    counts[numbers] = [part.size for part in found]
    return (
        counts,
        np.insert(index[kept], places, np.concatenate(found)),
        np.insert(t[kept], places, np.concatenate(times)),
    )
