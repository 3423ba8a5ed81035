"""Rays of which compiled code could not tell everything: decided in whole numbers, primitive by primitive.

Only for moved copies: elsewhere every decision is exact in the loop. Such rays touch an edge, a corner or
two things at the very same time, all but exactly, or have huge or tiny numbers. The tree proposes what
they may meet; `raybox.primitives.small_batch` decides.
"""

from collections.abc import Iterator
from functools import cmp_to_key

import numpy as np

from raybox.exact import definition
from raybox.exact.definition import Ratio
from raybox.geometry import CopyRows
from raybox.primitives import small_batch
from raybox.queries import exact_loops
from raybox.traversal.single import Job, make_scratch
from raybox.validation import Floats, Ints

_ROOM = 256


def settled(job: Job) -> Iterator[tuple[int, Ints, Floats]]:
    """Yield each ray in doubt with everything that it meets, in exact order: index and time."""
    if not isinstance(job.rows, CopyRows):
        return
    for k in np.flatnonzero(job.rows.doubts).tolist():
        met = _contacts(job, k)
        times = [definition.rounded(time) for time, _ in met]
        yield k, np.array([i for _, i in met], np.int64), np.array(times, np.float64)


def _contacts(job: Job, k: int) -> list[tuple[Ratio, int]]:
    """Return what ray k meets, in exact order."""
    ray = small_batch.ray_at(job.rays, k)
    times = ((small_batch.moment(job.rows, ray, i), i) for i in _proposed(job, k).tolist())
    return sorted(((time, i) for time, i in times if time is not None), key=cmp_to_key(small_batch.in_order))


def _proposed(job: Job, k: int) -> Ints:
    """Return what ray k may meet."""
    number, index = np.zeros(1, np.int64), np.empty(_ROOM, np.int64)
    while True:
        exact_loops.propose(job, k, make_scratch(), number, index)
        if number[0] <= index.size:
            return index[: number[0]]
        index = np.empty(number[0], np.int64)
