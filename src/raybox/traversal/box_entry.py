"""The plane by which rays enter a box, where float32 proves it, and what is certain then.

A near time is early by at most the margin and a share of itself (`raybox.traversal.ray_setup`). So the latest
of three near times is exactly the latest, and after the start of the ray's range, where it is no earlier than
what the others, and 0, may `reach`: float32 proves the plane of entry. Where even the latest cannot reach 0,
the ray starts inside the slabs: times count from the start of its range or, if later, from shortly before its
entry into the bounds of all boxes: it enters none before that.

**Flat boxes.** Let the entry plane be certain. The ray leaves the slab of its axis no sooner than it enters,
exactly: lower <= upper, and (p - o)/d is monotone in p. So it hits the box if the entry time is before the
far times of the *other* two axes and the end of its range: a box may be flat on its entry axis. The entry
time is that of a plane that was moved by a rounding alone: it is before `TAME`.
"""

from typing import NamedTuple

from raybox.compiler.simd import F32, I32, I64, Builder, Lanes, Scalar, constant, greater, lesser, splat
from raybox.traversal.node_test import TAME, reach

INSIDE = 6  # in place of the number of a plane: the ray starts inside
NO_PLANE = -1  # neither is proven


class BoxTimes(NamedTuple):
    """When rays enter and leave boxes, by the node test."""

    slabs: list[tuple[Lanes, Lanes]]  # those of each axis
    margin: Lanes
    planes: list[Lanes]  # on each axis, the number of the plane by which they enter


class BoxEntry(NamedTuple):
    """How rays enter a box that they may hit."""

    plane: Lanes  # its number: 0 to 2 are lower planes, 3 to 5 upper ones; `INSIDE` or `NO_PLANE`
    late: Lanes  # when they have certainly entered it, if they hit it
    room: Lanes  # they hit it for certain if this is no later than `far` and the end of their range
    far: Lanes  # when they leave it, less what the entry plane makes certain


def plane_number(b: Builder, octant: Scalar, axis: int) -> Scalar:
    """Return the number of the plane by which rays of an octant enter boxes on an axis."""
    backward = b.and_(b.lshr(octant, I64(axis)), I64(1))
    return b.add(I32(axis), b.mul(b.trunc(backward, I32), I32(3)))


def planes_of(b: Builder, octant: Scalar, count: int) -> list[Lanes]:
    """Return the numbers of the planes by which so many rays of an octant enter boxes, axis by axis."""
    return [splat(b, plane_number(b, octant, axis), count) for axis in range(3)]


def entry_of(b: Builder, times: BoxTimes) -> BoxEntry:
    """Return how rays enter boxes."""
    near, far = ([slab[side] for slab in times.slabs] for side in range(2))
    later, zero = greater(near[0], near[1]), constant(b, F32, times.margin.count, 0.0)
    last = greater(later, near[2])
    other = greater(lesser(later, near[2]), lesser(near[0], near[1]))
    known = reach(greater(other, zero), times.margin) <= last
    inside = reach(last, times.margin) < 0.0
    plane = inside.choose(INSIDE, constant(b, I32, last.count, NO_PLANE))
    end = constant(b, F32, last.count, TAME)
    for axis in range(3):
        by = known & near[axis].equals(last)
        plane = by.choose(times.planes[axis], plane)
        end = lesser(by.choose(TAME, far[axis]), end)
    late = reach(greater(last, zero), times.margin)
    return BoxEntry(plane, late, reach(late, times.margin), end)
