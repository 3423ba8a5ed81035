"""Path sums in grids: a ray's stretches, each in one cell, are added while the ray is cut."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from raybox.compiler.decorators import device, inlined, whole
from raybox.primitives.ray import Ray
from raybox.queries.path_sums.listed import near_one
from raybox.queries.path_sums.sums import add_length, finish_ray, start_ray
from raybox.traversal.job import Job
from raybox.traversal.protocol import SegmentHooks
from raybox.traversal.segments import cut_rays
from raybox.validation import Floats


class CellRecorder(NamedTuple):
    """What the lengths of a ray's stretches are added to."""

    sums: Any
    speeds: Floats
    """of each ray: the length of its direction"""


@device
def _begin(recorder: CellRecorder, k: int) -> int:
    """Begin the sums of a ray; return its number."""
    start_ray(recorder.sums, whole(k), whole(k), True)
    return whole(k)


@inlined
def _record(recorder: CellRecorder, k: int, _ray: Ray, cell: int, t_enter: float, t_exit: float) -> int:
    add_length(recorder.sums, k, cell, (t_exit - t_enter) * recorder.speeds[k])
    return k


@device
def _end(recorder: CellRecorder, _state: int, k: int) -> bool:
    finish_ray(recorder.sums, whole(k), whole(k))
    return True


HOOKS = SegmentHooks(_begin, _record, _end)


def add_cells(job: Job, sums: Any) -> None:
    """Add the stretches of all rays of a job to sums that have an entry for each ray."""
    rays = near_one(job.rays)  # times are distances or less: no length over- or underflows on the way
    speeds = np.sqrt(np.square(rays.directions).sum(axis=1))
    speeds.flags.writeable = False
    cut_rays(job._replace(rays=rays), (0, len(speeds)), CellRecorder(sums, speeds))
