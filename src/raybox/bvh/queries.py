"""The loops behind a scene's questions: rays span[0] <= k < span[1], one walk each."""

from typing import Any, NamedTuple

import numpy as np

from raybox.bvh.sinks import Collect, Count, First, Nearest, Occluded, before
from raybox.bvh.traverse import Job, Scratch, walk
from raybox.kernels.jit import device, entry
from raybox.kernels.ray import Ray, get_ray

_RUN = 8  # shorter runs are sorted by insertion


class Contacts(NamedTuple):
    """Room for contacts of many rays, and as much again for sorting them."""

    index: Any
    t: Any
    spare_index: Any
    spare_t: Any


@entry
def nearest(job: Job, span: Any, scratch: Scratch, sink: Nearest, index: Any, t: Any) -> None:
    """Write the first contact of each ray."""
    for k in range(span[0], span[1]):
        sink.index[0] = -1
        sink.t[0] = np.inf
        walk(job, get_ray(job.rays, k), sink, scratch)
        index[k] = sink.index[0]
        t[k] = sink.t[0]


@entry
def occluded(job: Job, span: Any, scratch: Scratch, sink: Occluded, out: Any) -> None:
    """Write whether each ray meets anything."""
    for k in range(span[0], span[1]):
        sink.met[0] = False
        walk(job, get_ray(job.rays, k), sink, scratch)
        out[k] = sink.met[0]


@entry
def count(job: Job, span: Any, scratch: Scratch, sink: Count, out: Any) -> None:
    """Write how many primitives each ray meets."""
    for k in range(span[0], span[1]):
        sink.number[0] = 0
        walk(job, get_ray(job.rays, k), sink, scratch)
        out[k] = sink.number[0]


@entry
def first(job: Job, span: Any, scratch: Scratch, number: Any, index: Any, t: Any) -> None:
    """Write the nearest index.shape[1] contacts of each ray; index and t come filled with misses."""
    for k in range(span[0], span[1]):
        number[0] = 0
        walk(job, get_ray(job.rays, k), First(index[k], t[k], number), scratch)


@entry
def collect(job: Job, span: Any, scratch: Scratch, number: Any, room: Contacts, counts: Any) -> Any:
    """Write every contact, sorted ray by ray, until there is no room.

    Return (the first ray that found no room, items used, what that ray needs): its part is not
    written, and the caller goes on there with new room.
    """
    used = 0
    for k in range(span[0], span[1]):
        ray = get_ray(job.rays, k)
        number[0] = 0
        walk(job, ray, Collect(room.index[used:], room.t[used:], number), scratch)
        end = used + number[0]
        if end > room.index.size:
            return k, used, number[0]
        _sort(job.rows, ray, room, used, end)
        counts[k] = number[0]
        used = end
    return span[1], used, 0


@device
def _sort(rows: Any, ray: Ray, room: Contacts, start: int, stop: int) -> None:
    """Sort one ray's contacts by (t, index), exactly: insertion in short runs, then merging."""
    index, t = room.index, room.t
    for begin in range(start, stop, _RUN):
        for k in range(begin + 1, min(begin + _RUN, stop)):
            i, when = index[k], t[k]
            place = k
            while place > begin and before(rows, ray, (i, when), (index[place - 1], t[place - 1])):
                index[place] = index[place - 1]
                t[place] = t[place - 1]
                place -= 1
            index[place] = i
            t[place] = when
    width = _RUN
    while width < stop - start:
        for begin in range(start, stop, 2 * width):
            _merge(rows, ray, room, (begin, min(begin + width, stop), min(begin + 2 * width, stop)))
        width *= 2


@device
def _merge(rows: Any, ray: Ray, room: Contacts, bounds: tuple[int, int, int]) -> None:
    """Merge two neighbouring sorted runs of contacts, by way of the spare room."""
    index, t = room.index, room.t
    begin, middle, end = bounds
    for k in range(begin, end):
        room.spare_index[k] = index[k]
        room.spare_t[k] = t[k]
    i, j = begin, middle
    for k in range(begin, end):
        one = (room.spare_index[min(i, end - 1)], room.spare_t[min(i, end - 1)])
        other = (room.spare_index[min(j, end - 1)], room.spare_t[min(j, end - 1)])
        if j >= end or (i < middle and not before(rows, ray, other, one)):
            index[k], t[k] = one
            i += 1
        else:
            index[k], t[k] = other
            j += 1
