"""Questions of a scene of several geometries: each is asked on its own, and answers are put together.

Reported times are the exact ones rounded once, so of two that differ the smaller is first. Where two are
equal and of different geometries, the exact ones are compared in whole numbers
(`raybox.primitives.small_batch`); a true tie goes to the geometry that comes first.
"""

from functools import cmp_to_key
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from raybox.primitives import small_batch
from raybox.queries import scheduler
from raybox.queries.exact_traversal import some
from raybox.traversal.single import Job
from raybox.validation import Bools, Floats, Ints


class Asked(NamedTuple):
    """A question's geometries, laid out for the kernels, and the first number of each."""

    jobs: tuple[Job, ...]
    starts: tuple[int, ...]


def nearest(asked: Asked, **how: Any) -> tuple[Ints, Floats]:
    """Return number and time of each ray's first contact."""
    first, *others = asked.jobs
    number, t = scheduler.nearest(first, **how)
    for job, start in zip(others, asked.starts[1:], strict=True):
        # what comes later than a contact known is of no interest; its exact time may be half a unit later
        ends = np.minimum(job.rays.t_max, np.nextafter(t, np.inf))
        ends.flags.writeable = False
        other, t_other = scheduler.nearest(job._replace(rays=job.rays._replace(t_max=ends)), **how)
        found = other >= 0
        other[found] += start
        tied = np.flatnonzero(found & (number >= 0) & (t_other == t))
        found[tied] = [_before(asked, int(k), int(other[k]), int(number[k])) for k in tied]
        found &= ~((number >= 0) & (t_other > t))
        number[found], t[found] = other[found], t_other[found]
    return number, t


def occluded(asked: Asked, **how: Any) -> Bools:
    """Return whether each ray meets anything."""
    first, *others = asked.jobs
    met = scheduler.occluded(first, **how)
    for job in others:
        left = np.flatnonzero(~met)
        met[left] = scheduler.occluded(some(job, left)._replace(frame=job.frame), **how)
    return met


def count(asked: Asked, **how: Any) -> Ints:
    """Return how many each ray meets."""
    first, *others = asked.jobs
    number = scheduler.count(first, **how)
    for job in others:
        number += scheduler.count(job, **how)
    return number


def first(asked: Asked, k: int, **how: Any) -> tuple[Ints, Floats]:
    """Return number and time of each ray's k nearest contacts, rows padded with misses."""
    if len(asked.jobs) == 1:
        return scheduler.first(asked.jobs[0], k, **how)
    parts = [scheduler.first(job, k, **how) for job in asked.jobs]
    rays = len(parts[0][0])
    flat = [(np.repeat(np.arange(rays), k), number.reshape(-1), t.reshape(-1)) for number, t in parts]
    kept = [tuple(column[part[1] >= 0] for column in part) for part in flat]
    ray, numbers, times = _merged(asked, kept)
    place = np.arange(ray.size) - np.searchsorted(ray, ray)
    near = place < k
    number, t = np.full((rays, k), -1), np.full((rays, k), np.inf)
    number[ray[near], place[near]], t[ray[near], place[near]] = numbers[near], times[near]
    return number, t


def everything(asked: Asked, **how: Any) -> tuple[Ints, Ints, Floats]:
    """Return offsets, number and time of every contact, sorted ray by ray."""
    if len(asked.jobs) == 1:
        return scheduler.everything(asked.jobs[0], **how)
    parts = [scheduler.everything(job, **how) for job in asked.jobs]
    rays = np.arange(len(parts[0][0]) - 1)
    flat = [(np.repeat(rays, np.diff(offsets)), number, t) for offsets, number, t in parts]
    ray, number, t = _merged(asked, flat)
    return np.concatenate([[0], np.cumsum(np.bincount(ray, minlength=rays.size))]), number, t


def _merged(asked: Asked, parts: list[Any]) -> tuple[Ints, Ints, Floats]:
    """Put contacts (ray, number, t) of each geometry together, in exact order along each ray."""
    starts = zip(parts, asked.starts, strict=True)
    columns = zip(*((ray, number + start, t) for (ray, number, t), start in starts), strict=True)
    ray, number, t = (np.concatenate(column) for column in columns)
    order = np.lexsort((t, ray))  # contacts with one geometry stay in their order
    ray, number, t = ray[order], number[order], t[order]
    geometry = np.searchsorted(asked.starts, number, side="right")
    same = (ray[1:] == ray[:-1]) & (t[1:] == t[:-1])
    runs = np.concatenate([[0], np.cumsum(~same)])  # of equal times
    crossed = np.unique(runs[1:][same & (geometry[1:] != geometry[:-1])])
    members = np.flatnonzero(np.isin(runs, crossed))
    for _, group in groupby(members.tolist(), key=runs.__getitem__):
        places = list(group)
        exact = [(_moment(asked, int(ray[places[0]]), int(number[k])), int(number[k])) for k in places]
        number[places] = [i for _, i in sorted(exact, key=cmp_to_key(small_batch.in_order))]
    return ray, number, t


def _before(asked: Asked, ray: int, one: int, other: int) -> bool:
    """Tell whether a ray's contact `one` comes before another, exactly."""
    return small_batch.in_order((_moment(asked, ray, one), one), (_moment(asked, ray, other), other)) < 0


def _moment(asked: Asked, ray: int, number: int) -> Any:
    """Return the exact time of a contact."""
    which = int(np.searchsorted(asked.starts, number, side="right")) - 1
    job = asked.jobs[which]
    return small_batch.moment(job.rows, small_batch.ray_at(job.rays, ray), number - asked.starts[which])
