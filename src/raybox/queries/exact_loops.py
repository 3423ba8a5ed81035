"""The loops behind a scene's questions: rays span[0] <= k < span[1], one walk each."""

from typing import Any

import numpy as np

from raybox.compiler.decorators import entry, exact_entry
from raybox.primitives.ray import get_ray
from raybox.primitives.table import close
from raybox.queries.exact_recorders import Collect, Count, Exactly, First, Nearest, Occluded, Propose
from raybox.queries.hit_sorting import Contacts, sort
from raybox.traversal import instances  # noqa: F401  # how they are walked
from raybox.traversal.single import Job, Scratch, walk


@exact_entry
def nearest(job: Job, span: Any, scratch: Scratch, sink: Nearest, index: Any, t: Any) -> None:
    """Write the first contact of each ray."""
    for k in range(span[0], span[1]):
        sink.index[0] = -1
        sink.t[0] = np.inf
        walk(job, k, sink, scratch)
        index[k] = sink.index[0]
        t[k] = sink.t[0]
        close(job.rows, k)


@exact_entry
def occluded(job: Job, span: Any, scratch: Scratch, sink: Occluded, out: Any) -> None:
    """Write whether each ray meets anything."""
    for k in range(span[0], span[1]):
        sink.met[0] = False
        walk(job, k, sink, scratch)
        out[k] = sink.met[0]
        close(job.rows, k)


@exact_entry
def count(job: Job, span: Any, scratch: Scratch, sink: Count, out: Any) -> None:
    """Write how many primitives each ray meets."""
    for k in range(span[0], span[1]):
        sink.number[0] = 0
        walk(job, k, sink, scratch)
        out[k] = sink.number[0]
        close(job.rows, k)


@exact_entry
def first(job: Job, span: Any, scratch: Scratch, number: Any, index: Any, t: Any) -> None:
    """Write the nearest index.shape[1] contacts of each ray; index and t come filled with misses."""
    for k in range(span[0], span[1]):
        number[0] = 0
        walk(job, k, First(index[k], t[k], number), scratch)
        close(job.rows, k)


@exact_entry
def collect(job: Job, span: Any, scratch: Scratch, number: Any, room: Contacts, counts: Any) -> Any:
    """Write every contact, sorted ray by ray, until there is no room.

    Return (the first ray that found no room, items used, what that ray needs): its part is not
    written, and the caller goes on there with new room.
    """
    used = 0
    for k in range(span[0], span[1]):
        number[0] = 0
        walk(job, k, Collect(room.index[used:], room.t[used:], number), scratch)
        end = used + number[0]
        if end > room.index.size:
            return k, used, number[0]
        sort(Exactly(job.rows, get_ray(job.rays, k)), room, used, end)
        counts[k] = number[0]
        used = end
        close(job.rows, k)
    return span[1], used, 0


@entry
def propose(job: Job, k: int, scratch: Scratch, number: Any, index: Any) -> None:
    """Write which primitives ray k may meet, undecided; number[0] of them, more than there is room for."""
    number[0] = 0
    walk(job, k, Propose(index, number), scratch)
