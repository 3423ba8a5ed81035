"""A scene's questions, from what is asked to arrays of answers: chunks of rays through compiled loops."""

from typing import Any

import numpy as np

from raybox.bvh import queries, sinks
from raybox.bvh.traverse import Job, make_scratch
from raybox.parallel import run_chunks
from raybox.validate import Bools, Floats, Ints

_ROOM = 4096  # contacts that `everything` first makes room for


def nearest(job: Job, **how: Any) -> tuple[Ints, Floats]:
    """Return index and time of each ray's first contact."""
    total = len(job.rays.origins)
    index, t = np.empty(total, np.int64), np.empty(total)

    def work(begin: int, end: int) -> None:
        sink = sinks.Nearest(np.empty(1, np.int64), np.empty(1))
        queries.nearest(job, (begin, end), make_scratch(), sink, index, t)

    run_chunks(work, total, **how)
    return index, t


def occluded(job: Job, **how: Any) -> Bools:
    """Return whether each ray meets anything."""
    met = np.empty(len(job.rays.origins), np.bool_)

    def work(begin: int, end: int) -> None:
        queries.occluded(job, (begin, end), make_scratch(), sinks.Occluded(np.empty(1, np.bool_)), met)

    run_chunks(work, met.size, **how)
    return met


def count(job: Job, **how: Any) -> Ints:
    """Return how many each ray meets."""
    number = np.empty(len(job.rays.origins), np.int64)

    def work(begin: int, end: int) -> None:
        queries.count(job, (begin, end), make_scratch(), sinks.Count(np.empty(1, np.int64)), number)

    run_chunks(work, number.size, **how)
    return number


def first(job: Job, k: int, **how: Any) -> tuple[Ints, Floats]:
    """Return index and time of each ray's k nearest contacts, rows padded with misses."""
    total = len(job.rays.origins)
    index, t = np.full((total, k), -1, np.int64), np.full((total, k), np.inf)

    def work(begin: int, end: int) -> None:
        queries.first(job, (begin, end), make_scratch(), np.empty(1, np.int64), index, t)

    run_chunks(work, total, **how)
    return index, t


def everything(job: Job, **how: Any) -> tuple[Ints, Ints, Floats]:
    """Return offsets, index and time of every contact, sorted ray by ray."""
    total = len(job.rays.origins)
    offsets = np.zeros(total + 1, np.int64)
    counts = offsets[1:]
    parts = run_chunks(lambda begin, end: _collect(job, begin, end, counts), total, **how)
    np.cumsum(offsets, out=offsets)
    index = np.concatenate([part[0] for part in parts] or [np.empty(0, np.int64)])
    return offsets, index, np.concatenate([part[1] for part in parts] or [np.empty(0)])


def _collect(job: Job, begin: int, end: int, counts: Ints) -> tuple[Ints, Floats]:
    """Return all contacts of some rays; room grows as they turn out to need it."""
    indexes, times = [], []
    size = _ROOM
    number = np.empty(1, np.int64)
    while begin < end:
        room = queries.Contacts(*(np.empty(size, kind) for kind in (np.int64, np.float64) * 2))
        begin, used, needed = queries.collect(job, (begin, end), make_scratch(), number, room, counts)
        indexes.append(room.index[:used].copy())
        times.append(room.t[:used].copy())
        size = max(2 * size, needed)
    return np.concatenate(indexes), np.concatenate(times)
