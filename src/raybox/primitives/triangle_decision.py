"""What float32 decides of rays at triangles, by volumes and times and bounds of their errors.

The volumes are those of `raybox.primitives.triangle`, over any positive factor: all of one sign beyond the
bound, and the line hits the triangle; two of different signs beyond it, and the line misses.
`raybox.primitives.triangle_slots` computes them and proves the bounds.

**Range.** A packed ray begins and ends in float32, by `off` at most before and after its range, in all
(`raybox.traversal.slab_coefficients`). So a time above `off` is after t_min. One below `before`, the end of
the range less `off`, is before t_max: also where the packed ray ends sooner, with the scene. A time below 0
or above `stop` is out of the range, or later than a hit so far. NaN, of what divides 0 by 0, fails each
comparison that would make a pair certain.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from raybox.compiler.intrinsics import Fields
from raybox.compiler.simd import Builder, Lanes, Scalar, greater, lesser
from raybox.primitives.triangle_simd import Vector, everywhere


class Ends(NamedTuple):
    """Where rays are, and where they end now."""

    before: Lanes  # certain hits so early are within the range, and before the first hit so far
    stop: Lanes  # no hit after it matters; negative: the ray has ended
    off: Lanes  # by how much the range may begin late, or end early


class Times(NamedTuple):
    """Bounds of the times at which rays cross a plane, and which of these are known."""

    low: Lanes
    high: Lanes
    known: Lanes


class TriangleHits(NamedTuple):
    """Rays at triangles, lane by lane."""

    hits: Lanes  # certain
    undecided: Lanes
    low: Lanes  # bounds of the times of hits
    high: Lanes
    inside: Lanes  # whether the line hits for certain, at any time


class RaysAtTriangle(NamedTuple):
    """Rays at a triangle, and their state so far: what a query decides there."""

    hits: Lanes  # certain
    low: Lanes  # bounds of the times of hits
    late: Lanes  # above, with room for the errors of node tests
    item: Scalar
    stop: Lanes
    before: Lanes
    result: Lanes
    recorder: Fields  # the query's


class TriangleState(NamedTuple):
    """Stops, times before which hits come first, and results of rays."""

    stop: Lanes
    before: Lanes
    result: Lanes


RecordTriangle: TypeAlias = Callable[[Builder, RaysAtTriangle], TriangleState]


def decided(
    volumes: Vector, bound: Lanes, times: Callable[[], Times], ends: Ends, culled: Scalar
) -> tuple[Lanes, Callable[[], TriangleHits]]:
    """Return which rays do not certainly miss the triangle's sides, and what decides these.

    bound: of the errors of volumes; culled: whether back faces are culled.
    """
    least, most = (pick(pick(volumes[0], volumes[1]), volumes[2]) for pick in (lesser, greater))
    below, above = least < -bound, most > bound
    left = (ends.stop >= 0.0) & ~(below & (above | everywhere(above, culled)))

    def decide() -> TriangleHits:
        low, high, known = times()
        inside = (least > bound) | (most < -bound)
        hits = left & inside & known & (low > ends.off) & (high < ends.before)
        misses = known & ((high < 0.0) | (low > ends.stop))
        return TriangleHits(hits, left & ~hits & ~misses, low, high, inside)

    return left, decide
