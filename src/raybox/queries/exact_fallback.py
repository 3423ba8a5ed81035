"""Rays that compiled code cannot decide: decided in integers of any length, primitive by primitive.

Only instances need it: elsewhere every decision of the single-ray traversal is exact. Such rays touch an
edge, a corner or two primitives at the very same time, all but exactly, or have huge or tiny numbers. The
tree returns the candidates; `raybox.primitives.exact_table` decides.
"""

from collections.abc import Iterator
from functools import cmp_to_key
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from raybox.compiler.decorators import inlined
from raybox.exact import definition
from raybox.exact.definition import Ratio
from raybox.geometry import InstanceRows, PrimitiveRows
from raybox.primitives import exact_table
from raybox.primitives.instance_ray import AnyRay
from raybox.traversal.job import Job
from raybox.traversal.protocol import ExactHooks, register
from raybox.traversal.single import make_scratch, traverse_ray
from raybox.validation import Floats, Ints

_ROOM = 256


class Candidates(NamedTuple):
    """All primitives that a ray may hit; count[0] counts on past the end of the array."""

    index: Ints  # type: ignore[assignment]  # not the method of tuples
    count: Ints  # type: ignore[assignment]  # not the method of tuples


@inlined
def _add(recorder: Candidates, _rows: PrimitiveRows, _ray: AnyRay, i: int) -> float:
    place = recorder.count[0]
    if place < recorder.index.size:
        recorder.index[place] = i
    recorder.count[0] = place + 1
    return np.inf


class OrderedHits(NamedTuple):
    """All hits of one ray, in exact order: by time, then by index."""

    ray: int
    index: Ints  # type: ignore[assignment]  # not the method of tuples
    t: Floats
    rank: Ints
    """of each hit's exact time among those of the ray, from 0: hits that tie have the same"""


register(ExactHooks(Candidates, _add))


def undecided_hits(job: Job) -> Iterator[OrderedHits]:
    """Yield the hits of each undecided ray."""
    if not isinstance(job.rows, InstanceRows):
        return
    for k in np.flatnonzero(job.rows.undecided_rays).tolist():
        hits = _hits(job, k)
        times = [definition.rounded(time) for time, _ in hits]
        later = [definition.order(one[0], other[0]) < 0 for one, other in pairwise(hits)]
        rank = np.cumsum([0, *later][: len(hits)], dtype=np.int64)
        yield OrderedHits(k, np.array([i for _, i in hits], np.int64), np.array(times, np.float64), rank)


def _hits(job: Job, k: int) -> list[tuple[Ratio, int]]:
    """Return the hits of ray k, in exact order."""
    ray = exact_table.ray_at(job.rays, k)
    times = ((exact_table.exact_time(job.rows, ray, i), i) for i in _candidates(job, k).tolist())
    hits = ((time, i) for time, i in times if time is not None)
    return sorted(hits, key=cmp_to_key(exact_table.compare_contacts))


def _candidates(job: Job, k: int) -> Ints:
    """Return the primitives that ray k may hit."""
    recorder = Candidates(np.empty(_ROOM, np.int64), np.zeros(1, np.int64))
    while True:
        recorder.count[0] = 0
        traverse_ray(job, k, make_scratch(), recorder)
        if recorder.count[0] <= recorder.index.size:
            return recorder.index[: recorder.count[0]]
        recorder = Candidates(np.empty(recorder.count[0], np.int64), recorder.count)
