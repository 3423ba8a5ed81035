"""The state of a ray in a group, as queries record hits: ended, undecided, at the start of its range."""

import numpy as np

from raybox.bvh.node import NUDGE
from raybox.compiler.decorators import device
from raybox.compiler.intrinsics import larger
from raybox.exact.error_free import power_of_two
from raybox.primitives.status import UNDECIDED_INDEX
from raybox.primitives.triangle_slots import BEFORE
from raybox.traversal.ray_setup import LATER, PASSES, RESULT, STOP
from raybox.traversal.workspace import Workspace

_ROUND = 2.0**-50
_LEAST = 2.0**-1074  # where times are subnormal


@device
def mark_undecided(workspace: Workspace, ray: int) -> None:
    """Leave a ray to the exact fallback."""
    workspace.state[ray, RESULT] = UNDECIDED_INDEX
    workspace.packed_rays[ray, STOP] = PASSES


@device
def latest_for(workspace: Workspace, ray: int, t: float) -> np.float32:
    """Return a time in the units of a packed ray, rounded up to float32, and not before its beginning."""
    x = t * power_of_two(workspace.power[ray])
    shift = np.float64(workspace.shift[ray])
    y = x - shift + (abs(x) + abs(shift)) * _ROUND
    return np.float32(larger(y + (abs(y) * LATER + NUDGE), 0.0))


@device
def end_at(workspace: Workspace, ray: int, t: float) -> None:
    """End a ray at t, if it does not end sooner: nothing after it matters."""
    late = latest_for(workspace, ray, t)
    workspace.packed_rays[ray, STOP] = min(workspace.packed_rays[ray, STOP], late)


@device
def start_before(workspace: Workspace, ray: int, t: float) -> None:
    """Write the time before which a certain hit of a ray at triangles comes before one at t."""
    x = t * power_of_two(workspace.power[ray])
    shift = np.float64(workspace.shift[ray])
    y = x - shift - (abs(x) + abs(shift)) * _ROUND
    workspace.ways[ray, BEFORE] = np.float32(y - (abs(y) * LATER + NUDGE))


@device
def bound_by_packed(workspace: Workspace, ray: int) -> None:
    """Write bounds of the time of a ray's hit with a triangle, which float32 recorded."""
    unit, shift = power_of_two(-workspace.power[ray]), np.float64(workspace.shift[ray])
    first, last = np.float64(workspace.ways[ray, BEFORE]), np.float64(workspace.packed_rays[ray, STOP])
    off = (abs(first) + abs(last) + abs(shift)) * _ROUND
    workspace.bounds[ray, 0] = (first + shift - off) * unit - _LEAST
    workspace.bounds[ray, 1] = (last + shift + off) * unit + _LEAST


@device
def both_at_range_start(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Return whether two times, each given by its bounds, are both the beginning of the ray's range."""
    return one[0] == one[1] and other[0] == other[1] and one[0] == other[0]
