"""The traversal of instances: each instance has a tree, traversed with the ray in its coordinates.

The tree of instances is traversed nearest first, and so are the instances: a near hit ends the ray before the
farther ones. The ray in an instance's coordinates is rounded (`raybox.primitives.instance_ray`), so its slabs
are wider by a bound of the error: at time t the exact ray is within ``origin_error + abs(t) direction_error``
of the rounded one, on each axis, and abs(t) is at most that of the times at which the ray is within the box
around the instance. So no primitive is lost.
"""

import math

import numpy as np

from raybox.bvh.node import CHILD, EMPTY
from raybox.compiler.decorators import inlined
from raybox.compiler.intrinsics import lowest_bit
from raybox.geometry import InstanceRows
from raybox.primitives.instance_ray import InstanceRay, to_instance
from raybox.primitives.ray import Ray
from raybox.traversal.job import Job, Recorder
from raybox.traversal.single_ray_setup import SHARP, RaySlabs, make_ray_slabs
from raybox.traversal.tree import (
    Scratch,
    earlier,
    intersect_node,
    is_allowed,
    push,
    push_starts,
    resolve_other,
    traverse_tree,
)

_MORE = 1.0 + 2.0**-49  # of a time: its own rounding, and that of the limit
_LESS = 1.0 - 2.0**-49
_TINY = 1e-300
_LARGEST = 1.7976931348623157e308


@inlined
def _clip(low: float, up: float, o: float, d: float) -> tuple[float, float]:
    """Return a range of times that contains all those at which a ray is within a slab."""
    if d == 0.0:
        return (-np.inf, np.inf) if low <= o <= up else (np.inf, -np.inf)
    a, b = (low - o) / d, (up - o) / d
    # What overflows is after the largest float, not at infinity; the other end likewise.
    near, far = min(a, b, _LARGEST), max(a, b, -_LARGEST)
    return min(near * _LESS, near * _MORE) - _TINY, max(far * _LESS, far * _MORE) + _TINY


@inlined
def _range(rows: InstanceRows, ray: InstanceRay, limit: float) -> tuple[float, float]:
    """Return the range of times in which a hit of an instance matters."""
    o, d, i = ray.origin, ray.direction, ray.instance
    if not ray.bounded:
        return -np.inf, np.inf
    ax, bx = _clip(rows.lower[i, 0], rows.upper[i, 0], o[0], d[0])
    ay, by = _clip(rows.lower[i, 1], rows.upper[i, 1], o[1], d[1])
    az, bz = _clip(rows.lower[i, 2], rows.upper[i, 2], o[2], d[2])
    last = min(ray.t_max, max(limit * _LESS, limit * _MORE) + _TINY)
    return max(ax, ay, az, ray.t_min), min(bx, by, bz, last)


@inlined
def _error(origin_error: float, direction_error: float, longest: float) -> float:
    """Return how far a ray may be from its image on one axis, up to a time of this size."""
    if direction_error == 0.0:
        return origin_error
    return (origin_error + direction_error * longest) * _MORE + _TINY  # a small product may have been lost


@inlined
def _enter(
    rows: InstanceRows, job: Job, ray: InstanceRay, limit: float, recorder: Recorder, scratch: Scratch
) -> float:
    """Resolve the primitives of one instance that the ray may hit; see `traverse_tree`."""
    begin, end = _range(rows, ray, limit)
    if not begin <= end:
        return np.inf
    if rows.size == 1:
        return resolve_other(recorder, job, rows, ray, ray.base, scratch)
    longest = max(abs(begin), abs(end))
    x = _error(ray.origin_error[0], ray.direction_error[0], longest) if ray.bounded else np.inf
    y = _error(ray.origin_error[1], ray.direction_error[1], longest) if ray.bounded else np.inf
    z = _error(ray.origin_error[2], ray.direction_error[2], longest) if ray.bounded else np.inf
    # numbers of an unbounded ray may have overflowed: one that stands still, as wide as space, hits every box
    origin, direction = (ray.local_origin, ray.local_direction) if ray.bounded else (SHARP, SHARP)
    local = Ray(origin, direction, begin, end)
    hit, slabs = make_ray_slabs(rows.tree, local, (x, y, z))  # type: ignore[arg-type]
    if not hit:
        return np.inf
    # no rays: that in the instance's coordinates is traversed
    inner = Job(rows.tree, rows, (), rows.undecided[:0], None, ray.base, job.owners, job.first)  # type: ignore[arg-type]
    return traverse_tree(rows, inner, slabs, ray, recorder, scratch)


@inlined
def traverse_instances(
    rows: InstanceRows, job: Job, slabs: RaySlabs, ray: Ray, recorder: Recorder, scratch: Scratch
) -> float:
    """Resolve the primitives of every allowed instance whose box the ray may hit; see `traverse_tree`."""
    nodes, allowed = job.tree.nodes, job.allowed
    limit, stop = np.inf, slabs.stop
    top = push_starts(scratch, job.tree.starts, slabs)
    while top > 0:
        # Pop the nearest node or instance; the ray may end before it by now.
        top -= 1
        if scratch.time[top] > stop:
            continue
        node = int(scratch.node[top])
        if node < 0:
            above = Scratch(scratch.node[top:], scratch.time[top:], *scratch[2:])
            time = _enter(rows, job, to_instance(rows, ray, ~node), limit, recorder, above)
            if math.isnan(time):
                return time
            limit, stop = earlier(limit, time, stop, slabs)
            continue

        # Push the slots that the ray may hit, instances too.
        mask, base = intersect_node(nodes, node, slabs, stop, scratch), top
        while mask != 0:
            slot = lowest_bit(mask)
            mask &= mask - 1
            child = nodes[node, CHILD + slot]
            if child >= 0 or (child != EMPTY and is_allowed(allowed, child)):
                top = push(scratch, base, top, child, scratch.slots[slot])
    return limit
